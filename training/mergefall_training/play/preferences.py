"""Players that prefer actions: networks whose outputs say how good each action is, legal or not."""

import sys
from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall.games import batch_of_one, game_of
from mergefall.typing import Array, Floats, Observation, Options
from mergefall.wrappers import ViewObservation
from mergefall_baselines import Player, make
from mergefall_baselines.player import OfPredictor, check_values

VIEWS = ("flat", "planes")  # of `mergefall.wrappers`


class PreferringPlayer(Player):
    """A player that chooses the legal action with the highest preference; ties: the lowest action.

    Subclasses define `preferences`. `env_id` and `rules` say which actions are legal.
    """

    batched = True

    def __init__(self, env_id: str, rules: Options) -> None:
        # The random player knows which actions are legal: it values them 0 and the others −∞.
        self._any = make(f"{game_of(env_id).name}/random").with_rules(rules)

    def preferences(self, observation: Observation) -> Array:
        """Preferences float[n, actions] of all actions, legal or not, for a batch of observations."""
        raise NotImplementedError

    def values(self, observation: Observation, state: Any = None) -> Floats:
        """The preferences float64[n_actions], −∞ if illegal; float64[n, n_actions] for a batch."""
        legal = self._any.values(observation)
        if not len(legal):
            return legal
        preferences = self.preferences(batch_of_one(observation) if legal.ndim == 1 else observation)
        values = np.where(legal > -np.inf, preferences.reshape(legal.shape).astype(np.float64), -np.inf)
        check_values(self.name, values)
        return values


def preferences_of(policy: Any, observation: Observation) -> Array:
    """Q-values or log-probabilities float[n, actions] of a policy of Stable-Baselines3, for a batch of observations."""
    torch = sys.modules["torch"]  # with a policy comes PyTorch; players need no extra
    tensors, _ = policy.obs_to_tensor(observation)
    with torch.no_grad():
        if hasattr(policy, "quantile_net"):
            found = policy.quantile_net(tensors).mean(dim=1)
        elif hasattr(policy, "q_net"):
            found = policy.q_net(tensors)
        else:
            mine = copy(policy)  # shares the parameters; `get_distribution` writes into the policy, which threads share
            mine.action_dist = copy(policy.action_dist)
            found = mine.get_distribution(tensors).distribution.logits
    return found.cpu().numpy()


class ModelPlayer(PreferringPlayer):
    """A policy of Stable-Baselines3 that sees a batch of observations through some functions, one after the other."""

    def __init__(self, policy: Any, views: list[Any], env_id: str, rules: Options) -> None:
        super().__init__(env_id, rules)
        self.policy, self._views = policy, views
        policy.set_training_mode(False)

    def preferences(self, observation: Observation) -> Array:
        for view in self._views:
            observation = view(observation)
        if isinstance(space := self.policy.observation_space, Mapping):  # in a match without the opponent's board
            observation = {name: observation[name] for name in space}
        return preferences_of(self.policy, observation)


def player_of_model(predictor: Player, env: Any, kwargs: Options) -> Player:
    """The player of a model of Stable-Baselines3 or sb3-contrib in an environment; anything else as it is.

    The player sees what the model was trained on: the environment's own observations, or one of its `VIEWS`. The
    statistics of a model's `VecNormalize` are applied; a model that was loaded from a file has them if it was loaded
    with that environment. Recurrent policies stay as they are, because they remember what they saw.

    Raises ValueError if the model observes neither what the environment shows nor one of its `VIEWS`, or if its
    training environment has another observation wrapper.
    """
    model: Any = predictor.predictor if isinstance(predictor, OfPredictor) else predictor
    library: Any = sys.modules.get("stable_baselines3.common.base_class")
    if library is None or not isinstance(model, library.BaseAlgorithm) or hasattr(model.policy, "lstm_actor"):
        return predictor
    if not any(hasattr(model.policy, name) for name in ("q_net", "quantile_net", "get_distribution")):
        return predictor
    game = env.unwrapped
    spaces = {kind: game.rules.view_space(kind) for kind in VIEWS}
    seen = next((kind for kind, space in spaces.items() if space == model.observation_space), None)
    if seen is None and model.observation_space != env.observation_space:
        shown = "; ".join(f"by mergefall.wrappers.{kind} {space}" for kind, space in spaces.items())
        raise ValueError(
            f"the model observes {model.observation_space}, but {env.spec.id} shows {env.observation_space}; {shown}. "
            "A model of other observations plays in its own wrappers, by evaluate_policy of Stable-Baselines3"
        )
    if (wrapper := _observation_wrapper(model.get_env())) is not None:
        raise ValueError(
            f"the model was trained in the observation wrapper {type(wrapper).__name__}; expected mergefall.wrappers' "
            "flat or planes, VecNormalize, or none. Such a model plays in its own wrappers, by evaluate_policy of "
            "Stable-Baselines3"
        )
    normalized = model.get_vec_normalize_env()
    views: list[Any] = [] if seen is None else [partial(game.rules.view, seen)]
    if normalized is not None and normalized.norm_obs:
        views.append(normalized.normalize_obs)
    player = ModelPlayer(model.policy, views, env.spec.id, kwargs)
    player.name, player.made_as, player.options = predictor.name, predictor.made_as, predictor.options
    return player


def _observation_wrapper(envs: Any) -> Any:
    """The first observation wrapper in a model's training environments that can be seen and is not ours, or None."""
    env = getattr(envs and envs.unwrapped, "envs", None)  # of a DummyVecEnv, or of a NativeVecEnv
    env = env[0] if isinstance(env, list) else env
    while isinstance(env, gym.Wrapper | gym.vector.VectorWrapper):
        kinds = gym.ObservationWrapper | gym.vector.VectorObservationWrapper
        if isinstance(env, kinds) and not isinstance(env, ViewObservation):
            return env
        env = env.env
    return None
