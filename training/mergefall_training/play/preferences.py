"""Players that prefer actions: networks whose outputs say how good each action is, legal or not.

`player_of_model` makes one of a model of Stable-Baselines3 or sb3-contrib. It sees what the model was trained on: the
environment's own observations, or those of `mergefall.wrappers.flat` or `planes`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from mergefall.games import batch_of_one, game_of
from mergefall.typing import Observation, Options
from mergefall_baselines import Player, make
from mergefall_baselines.player import OfPredictor, Predictor, check_values, choose_unmasked
from numpy.typing import NDArray

VIEWS = ("flat", "planes")  # of `mergefall.wrappers`


class PreferringPlayer(Player):
    """A player that chooses the legal action with the highest preference; ties: the lowest action.

    Subclasses define `preferences`. `env_id` and `rules` say which actions are legal.
    """

    batched = True

    def __init__(self, env_id: str, rules: Options) -> None:
        # The random player knows which actions are legal: it values them 0 and the others −∞.
        self._any = make(f"{game_of(env_id).name}/random").with_rules(rules)

    def preferences(self, observation: Observation) -> NDArray[np.floating[Any]]:
        """Preferences float[n, actions] of all actions, legal or not, for a batch of observations."""
        raise NotImplementedError

    def values(self, observation: Observation, state: Any = None) -> NDArray[np.float64]:
        """The preferences float64[n_actions], −∞ if illegal; float64[n, n_actions] for a batch."""
        legal = self._any.values(observation)
        if not len(legal):
            return legal
        single = legal.ndim == 1
        found = self.preferences(batch_of_one(observation) if single else observation)
        values = legal + found.reshape(legal.shape)
        check_values(self.name, values)
        return values

    def predict(
        self,
        observation: Observation,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: Any = None,
    ) -> tuple[NDArray[np.int64], Any]:
        """The chosen action and None, because the player remembers nothing; see `Player.predict`."""
        values = self.values(observation)
        actions = np.asarray(values.argmax(axis=-1))
        if action_masks is not None:
            actions = choose_unmasked(actions, action_masks, values.shape[-1], lambda: values)
        return actions, None


def preferences_of(policy: Any, observation: Observation) -> NDArray[np.floating[Any]]:
    """Q-values or log-probabilities float[n, actions] of a policy of Stable-Baselines3, for a batch of observations."""
    torch = sys.modules["torch"]  # with a policy comes PyTorch; players need no extra
    tensors, _ = policy.obs_to_tensor(observation)
    with torch.no_grad():
        if hasattr(policy, "quantile_net"):
            found = policy.quantile_net(tensors).mean(dim=1)
        elif hasattr(policy, "q_net"):
            found = policy.q_net(tensors)
        else:
            found = policy.get_distribution(tensors).distribution.logits
    return found.cpu().numpy()


class ModelPlayer(PreferringPlayer):
    """A policy of Stable-Baselines3, with what it sees of a batch of observations (`view`; None: the batch itself)."""

    def __init__(self, policy: Any, view: Any, env_id: str, rules: Options) -> None:
        super().__init__(env_id, rules)
        self._policy, self._view = policy, view
        policy.set_training_mode(False)

    def preferences(self, observation: Observation) -> NDArray[np.floating[Any]]:
        return preferences_of(self._policy, observation if self._view is None else self._view(observation))


def player_of_model(predictor: Predictor, env: Any, kwargs: Options) -> Predictor:
    """The player of a model of Stable-Baselines3 in an environment; anything else as it is.

    Recurrent policies stay as they are, too, because they remember what they saw. Raises ValueError if the model
    observes neither what the environment shows nor one of its `VIEWS`.
    """
    model: Any = predictor.predictor if isinstance(predictor, OfPredictor) else predictor
    library: Any = sys.modules.get("stable_baselines3.common.base_class")
    if library is None or not isinstance(model, library.BaseAlgorithm) or hasattr(model.policy, "lstm_actor"):
        return predictor
    if not any(hasattr(model.policy, name) for name in ("q_net", "quantile_net", "get_distribution")):
        return predictor
    game = env.unwrapped
    views = {kind: game.view_type.read(game.rules, kind) for kind in VIEWS}
    seen = next((view for view in views.values() if view.space == model.observation_space), None)
    if seen is None and model.observation_space != env.observation_space:
        shown = "; ".join(f"by mergefall.wrappers.{kind} {view.space}" for kind, view in views.items())
        raise ValueError(
            f"the model observes {model.observation_space}, but {env.spec.id} shows {env.observation_space}; {shown}. "
            "A model of other observations plays in its own wrappers, by evaluate_policy of Stable-Baselines3"
        )
    player = ModelPlayer(model.policy, seen, env.spec.id, kwargs)
    player.name, player.made_as = getattr(predictor, "name", Player.name), getattr(predictor, "made_as", None)
    player.options = getattr(predictor, "options", {})
    return player
