"""Networks for Stable-Baselines3: feature extractors for both games, and policies over afterstates."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import torch
from mergefall.checks import choice
from mergefall.game2048.rules import Rules as Rules2048
from mergefall.tetris.game import COLUMN, QUEUE, ROTATION, ROW
from mergefall.tetris.keys.game import HARD_DROP, STORAGE, press
from mergefall.tetris.keys.rules import KEYS, STATUS_SCALES
from mergefall.tetris.keys.rules import Rules as KeysRules
from mergefall.tetris.pieces import PIECE_SETS, TETROMINOES
from mergefall.tetris.rules import Rules
from mergefall.tetris.srs import SHAPES
from mergefall.typing import Array, Arrays, Bytes, Dict, Options
from mergefall_baselines.player import NotFiniteError
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3 import DQN
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor
from stable_baselines3.dqn.policies import DQNPolicy
from torch import nn

from mergefall_training.learn.afterstate.inputs import tetris_afterstates, tetris_inputs
from mergefall_training.learn.sb3.lines import DIFFERENCES, Layers, canonical, neighbours, table_of

ILLEGAL = -1e8  # the logit of an illegal action
SHARP = 10.0  # makes the worth, the cost and the bias of `KeysAfterstates` learn faster than the weights of layers
FAR = 64  # more keys than any placement takes


class Scaled(BaseFeaturesExtractor):
    """The observation itself as numbers from 0 to 1, float[n, features_dim], for any policy of Stable-Baselines3.

    Takes the observation as Stable-Baselines3 prepares it, with piece ids and places one-hot. Ranks are divided by the
    highest one. Numbers of the `status` are divided as `mergefall.wrappers.flat` does it.
    """

    scales: Any

    def __init__(self, observation_space: gym.Space[Any]) -> None:
        super().__init__(observation_space, get_flattened_obs_dim(observation_space))
        spaces = observation_space.spaces if isinstance(observation_space, gym.spaces.Dict) else {"": observation_space}
        flat: Any = gym.spaces.flatten_space
        scales = [STATUS_SCALES if name == "status" else flat(space).high for name, space in spaces.items()]
        self.names = list(spaces)
        # Kept in checkpoints, so that none of a network without scales fits.
        self.register_buffer("scales", torch.from_numpy(np.concatenate(scales)).float())

    def forward(self, observations: Any) -> torch.Tensor:
        parts = [observations[name] for name in self.names] if isinstance(observations, dict) else [observations]
        return (torch.cat([part.flatten(1) for part in parts], dim=1) / self.scales).clamp(max=1)


class RanksAfterstates(BaseFeaturesExtractor):
    """2048: features of the four afterstates, by the same layers for each, and the score of each move.

    float[n, rows, cols] -> float[n, 4 · features_dim + 4]; the scores are last, 0 for an illegal move, which leaves the
    board unchanged.

    Each afterstate is turned and mirrored to its canonical image (`lines.py`), so that symmetric boards are
    one. The first layer sees one row or column at a time, each with weights of its own: the ranks, one-hot with
    `rows·cols + 2` planes, and the differences between neighbours, one-hot. Layers that see all of them follow. So
    the network need not learn how tiles slide and merge, nor for each rank anew which tiles are equal.

    - `channels`: features of each row and column; `hidden`, `features_dim`: of each afterstate, in the layers after it.
    - `blocks`: residual blocks of two layers each, between the layers of `hidden` and of `features_dim` features; for
      large networks, which are slow without a GPU.

    With `mixed_precision` the layers compute in bfloat16, and without a GPU on `threads` threads. Learners set both.
    """

    kinds: Any

    def __init__(
        self,
        observation_space: gym.spaces.Box,
        channels: int = 64,
        hidden: int = 256,
        features_dim: int = 128,
        blocks: int = 0,
    ) -> None:
        rows, cols = observation_space.shape
        self.rules, self.width, self.channels = Rules2048(rows, cols), features_dim + 1, channels
        self.ranks = self.rules.max_rank + 1
        super().__init__(observation_space, 4 * self.width)
        self.across = nn.Linear(cols * self.ranks + (cols - 1) * DIFFERENCES, rows * channels)
        self.down = nn.Linear(rows * self.ranks + (rows - 1) * DIFFERENCES, cols * channels)
        self.middle = nn.Linear((rows + cols) * channels, hidden)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
            for _ in range(blocks)
        )
        self.last = nn.Linear(hidden, features_dim)
        self.register_buffer("kinds", torch.from_numpy(neighbours(self.ranks)), persistent=False)
        self.mixed_precision, self.threads = False, 1

    def forward(self, observations: torch.Tensor, actions: torch.Tensor | None = None) -> torch.Tensor:
        """The features of all afterstates, or those of one of the `actions` int64[n] of each board alone."""
        device, states = observations.device, self.rules.states(observations.cpu().numpy().astype(np.uint8))
        boards, scores, legal = self.rules.afterstates(states)
        scores = torch.from_numpy(1 + scores + legal).to(device, torch.float32).log2() / 4  # 0 for an illegal move
        if actions is not None:
            boards, scores = boards[np.arange(len(boards)), actions.cpu().numpy()], scores.gather(1, actions[:, None])
        # Higher ranks than the highest one, which no game has, count as this.
        ranks = np.minimum(boards.reshape(-1, *boards.shape[-2:]), np.uint8(self.ranks - 1))
        with torch.autocast(device.type, torch.bfloat16, enabled=self.mixed_precision):
            features = self._features(ranks, device)
        return torch.cat([features.float().view(len(boards), -1), scores], dim=1)

    def _features(self, boards: Bytes, device: torch.device) -> torch.Tensor:
        """The features of boards, [n, features_dim]."""
        tables = [table_of(layer, self.channels) for layer in (self.across, self.down)]
        dtype = torch.bfloat16 if self.mixed_precision else torch.float32
        after = [self.middle] if len(self.blocks) else [self.middle, self.last]
        if device.type == "cpu":
            parameters = [part for layer in after for part in (layer.weight, layer.bias)]
            features: Any = Layers.apply(self.threads, boards, self.kinds.numpy(), dtype, *tables, *parameters)
        else:
            ranks = torch.from_numpy(canonical(boards)).to(device).int()
            both = zip((ranks, ranks.transpose(1, 2)), tables, strict=True)
            features = torch.cat([self._products(one, table.to(dtype)) for one, table in both], dim=1).flatten(1).relu()
            for layer in after:
                features = layer(features).relu()
        for block in self.blocks:
            features = features + block(features)
        return self.last(features).relu() if len(self.blocks) else features

    def _products(self, ranks: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        """The sums of table rows for lines int32[n, lines, cells], by matrix products, which suit GPUs."""
        pairs = self.kinds[ranks[:, :, :-1], ranks[:, :, 1:]]
        # `nn.functional.one_hot` is int64, which takes four times the memory of bfloat16.
        planes = [
            (part[..., None] == torch.arange(size, device=part.device)).to(table.dtype).flatten(2)
            for part, size in ((ranks, self.ranks), (pairs, DIFFERENCES))
        ]
        products = torch.einsum("nli,lic->nlc", torch.cat(planes, dim=2), table[:, :-1])
        return products + table[:, -1]

    def each(self, latent: torch.Tensor) -> torch.Tensor:
        """The features by action: float[n, 4, width]; the last feature is positive if the action is legal, else 0."""
        return torch.cat([latent[:, :-4].unflatten(1, (4, -1)), latent[:, -4:, None]], dim=2)


class BoardAfterstates(BaseFeaturesExtractor):
    """Tetris: features of the afterstates of all placements, by the same layers for each; for `AfterstatesPolicy`.

    Takes the observation as Stable-Baselines3 prepares it, and returns float[n, (actions + 1) · features_dim]:

    - for each action, features of its afterstate and a 1; zeros if it is illegal. The layers see the inputs of
      `afterstate/inputs.py` (heights, holes, wells, …), the reward, whether the placement is fatal, and the queue.
    - the maximum of each feature over all actions.

    With hold the layers also see the held piece, and whether the action places another piece than the current one.

    `placements` and `overflow` are the environment's rules, which observations do not show.
    """

    unshown: tuple[str, ...] = ("placements", "overflow")

    def __init__(
        self,
        observation_space: gym.spaces.Dict,
        channels: int = 64,
        features_dim: int = 16,
        placements: Literal["drop", "slide", "reachable"] = "drop",
        overflow: Literal["strict", "clear_first"] = "strict",
    ) -> None:
        rows, cols = observation_space["board"].shape  # pyright: ignore[reportGeneralTypeIssues]
        five = observation_space["piece"] == gym.spaces.Discrete(len(PIECE_SETS["five"].names))
        pieces, hold = "five" if five else "tetromino", "hold" in observation_space.spaces
        self.rules = Rules(cols, rows, pieces, placements=placements, hold=hold, overflow=overflow)
        self.actions, self.width = self.rules.n_actions, features_dim
        super().__init__(observation_space, (self.actions + 1) * features_dim)
        self.following = gym.spaces.flatdim(observation_space["queue"]) if "queue" in observation_space.spaces else 0
        held = 1 + gym.spaces.flatdim(observation_space["hold"]) if hold else 0
        self.layers = nn.Sequential(
            nn.Linear(tetris_inputs(cols) + 2 + self.following + held, channels),
            nn.ReLU(),
            nn.Linear(channels, features_dim - 1),
            nn.ReLU(),
        )

    def forward(self, observations: dict[str, torch.Tensor], actions: torch.Tensor | None = None) -> torch.Tensor:
        """As above, or float[n, features_dim] of one of the `actions` int64[n] of each board alone."""
        _, _, features = self._features(observations, actions)
        if actions is not None:
            return features
        each = features.unflatten(0, (-1, self.actions))
        return torch.cat([each.flatten(1), each.amax(dim=1)], dim=1)

    def _features(
        self, observations: dict[str, torch.Tensor], chosen: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(features of afterstates, their places among all actions or the `chosen` ones, features of all of these).

        Features of illegal actions are 0.
        """
        board, n = observations["board"], len(observations["board"])
        one_hot = {name: part.reshape(n, -1) for name, part in observations.items() if name != "board"}
        seen = {"piece": one_hot["piece"].argmax(dim=1)}
        if self.rules.hold:
            first = one_hot["queue"][:, : self.rules.n_pieces].argmax(dim=1, keepdim=True)
            seen |= {"queue": first, "hold": one_hot["hold"].argmax(dim=1)}
        arrays = {"board": board.cpu().numpy().astype(np.uint8)}
        arrays |= {name: part.cpu().numpy() for name, part in seen.items()}
        table = tetris_afterstates(arrays, self.rules, None if chosen is None else chosen.cpu().numpy())
        rows = np.repeat(np.arange(n), np.diff(table.begins))  # the board of each afterstate
        games = torch.from_numpy(rows).to(board.device)
        parts = table.inputs, table.rewards[:, None], table.over[:, None]
        columns = [torch.from_numpy(part).to(board.device, torch.float32) for part in parts]
        if self.following:
            columns.append(one_hot["queue"][games])
        if self.rules.hold:
            other = torch.from_numpy(table.actions >= self.actions // 2).to(board.device, torch.float32)
            columns += [one_hot["hold"][games], other[:, None]]
        features = nn.functional.pad(self.layers(torch.cat(columns, dim=1)), (0, 1), value=1.0)
        count, places = (self.actions, rows * self.actions + table.actions) if chosen is None else (1, rows)
        to = torch.from_numpy(places).to(board.device)
        return features, to, features.new_zeros(n * count, features.shape[1]).index_copy(0, to, features)

    def each(self, latent: torch.Tensor) -> torch.Tensor:
        """The features by action: float[n, actions, width]; the last feature is 1 if the action is legal, else 0."""
        return latent[:, : -self.width].unflatten(1, (self.actions, self.width))


class KeysAfterstates(BoardAfterstates):
    """Tetris by keys: how far each key brings the piece towards good placements; for `AfterstatesPolicy`.

    The layers of `BoardAfterstates` see the afterstate of each straight drop of the falling piece, and a linear map of
    their features is the worth of this placement. The logit of a key is a bias, plus the logarithm of the sum of
    exp(worth − `cost` · keys) over all placements. There keys counts those that bring the piece to the placement on an
    empty board, beginning with this one and up to the hard drop. So the network need not learn how pieces move and
    fall, but which placements are good. It does not see the held piece.

    Takes the observation as Stable-Baselines3 prepares it, and returns float[n, keys + features_dim]: the logits, then
    the maximum of each feature over all placements. `rotate_180` is the environment's rule, which observations do not
    show.
    """

    unshown = ("rotate_180",)
    distances: Any

    def __init__(
        self,
        observation_space: gym.spaces.Dict,
        channels: int = 64,
        features_dim: int = 16,
        rotate_180: bool = False,
    ) -> None:
        board = observation_space["board"]
        spaces = {name: space for name, space in observation_space.spaces.items() if name != "hold"}
        height, cols = board.shape  # pyright: ignore[reportGeneralTypeIssues]
        spaces["board"] = gym.spaces.Box(0, 1, (height - STORAGE, cols), np.uint8)
        super().__init__(gym.spaces.Dict(spaces), channels, features_dim)
        self.keys, self.width = len(KEYS) - 1 + rotate_180, 1
        self._features_dim = self.keys + features_dim
        self.register_buffer("distances", torch.from_numpy(key_distances(cols, self.keys)), persistent=False)
        self.worth, self.bias = nn.Parameter(torch.randn(features_dim) / 10), nn.Parameter(torch.zeros(self.keys))
        self.cost = nn.Parameter(torch.full((1,), 0.1))

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        board, n = observations["board"][:, STORAGE:], len(observations["board"])
        piece, place = (observations[name].reshape(n, -1) for name in ("piece", "place"))
        rotation, column = place[:, :4].argmax(dim=1), place[:, 4 : 4 + self.rules.cols].argmax(dim=1)
        features, places, each = self._features({**observations, "board": board})
        worth = features.new_full((len(each),), ILLEGAL).index_copy(0, places, features @ self.worth)
        keys = self.cost * self.distances[piece.argmax(dim=1), rotation, column]
        logits = (SHARP * (worth.view(n, 1, -1) - keys)).logsumexp(dim=2).clamp(min=-SHARP * FAR) + SHARP * self.bias
        return torch.cat([logits, each.view(n, self.actions, -1).amax(dim=1)], dim=1)

    def each(self, latent: torch.Tensor) -> torch.Tensor:
        """The logits by key: float[n, keys, 1]."""
        return latent[:, : self.keys, None]


@cache
def key_distances(cols: int, keys: int) -> Array:
    """How many keys bring a piece from a place to a placement on an empty board, by the key that is pressed first.

    float32[pieces, rotations, columns, keys, placements]. The first key and the hard drop count; holding counts as a
    wait. `FAR` or more if the first key is the hard drop of another placement, or if there is no such placement.
    """
    places, found = np.arange(4 * cols), np.empty((len(TETROMINOES), 4 * cols, keys, 4 * cols), np.float32)
    rules = KeysRules(cols=cols, preview=0, hold=False, rotate_180=True)
    state, after = rules.new_states(1)[0], np.empty((4 * cols, keys), np.int64)
    for piece in range(len(TETROMINOES)):
        state[QUEUE] = piece
        for place, key in np.ndindex(after.shape):
            state[[ROTATION, COLUMN, ROW]] = *divmod(place, cols), rules.rows // 2
            press(state, key)
            after[place, key] = int(state[ROTATION]) * cols + int(state[COLUMN])
        below = SHAPES[piece, places // cols] * cols + places % cols
        fewest = drop = np.where(below[:, None] == places, 1, FAR)
        for _ in places:
            fewest = np.minimum(fewest, 1 + fewest[after].min(axis=1))
        found[piece] = 1 + fewest[after]
        found[piece, :, HARD_DROP] = drop
    return found.reshape(len(TETROMINOES), 4, cols, keys, 4 * cols)


class EachAction(nn.Module):
    """A head that applies the same linear map to the features of each action: [n, …] -> [n, actions].

    The logits of `KeysAfterstates` remain as they are.

    With `q_values`, an illegal action is worth 1 less than the worst legal one. It changes nothing, so its learned
    value would be that of an average board, even on a lost one.

    Raises ValueError if a policy's or network's extractor has no features of each action, or hidden layers follow it.
    """

    def __init__(self, network: Any, hidden: Any, q_values: bool = False) -> None:
        super().__init__()
        extractor = network.features_extractor
        if not hasattr(extractor, "each"):
            _, *names = EXTRACTORS
            raise ValueError(
                f"features_extractor_class is {type(extractor).__name__}; AfterstatesPolicy takes {', '.join(names)}"
            )
        if q_values and isinstance(extractor, KeysAfterstates):
            raise ValueError("dqn with AfterstatesPolicy plays games by placements alone; expected maskable-ppo")
        if len(hidden):
            raise ValueError(f"net_arch is {network.net_arch}; AfterstatesPolicy takes []")
        self.each, self.q_values = extractor.each, q_values
        self.linear = nn.Linear(extractor.width, 1) if extractor.width > 1 else nn.Identity()

    def forward(self, latent: torch.Tensor) -> torch.Tensor:
        each = self.each(latent)
        values = self.linear(each)[:, :, 0]
        if self.q_values:
            legal = each[:, :, -1] > 0
            worst = values.masked_fill(~legal, torch.inf).amin(dim=1, keepdim=True).nan_to_num(posinf=0.0)
            values = torch.where(legal, values, worst.detach() - 1)
        return values


class Policy(MaskableActorCriticPolicy):
    """MaskablePPO's policy, computed without distributions.

    Making and checking objects of `torch.distributions` takes as long as a small network. `exploration_rate`: share of
    the actions that `forward` draws; the others are the most probable ones.
    """

    exploration_rate = 1.0

    def __init__(self, observation_space: gym.Space[Any], *arguments: Any, **kwargs: Any) -> None:
        if isinstance(observation_space, gym.spaces.Dict):
            kwargs.setdefault("features_extractor_class", CombinedExtractor)
        super().__init__(observation_space, *arguments, **kwargs)

    def log_probabilities(self, observations: Any, masks: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        """(log-probabilities [n, actions], values [n, 1]); `masks` bool[n, actions] are the legal actions."""
        features: Any = self.extract_features(observations)
        actor, critic = (features, features) if self.share_features_extractor else features
        logits = self.action_net(self.mlp_extractor.forward_actor(actor))
        if masks is not None:
            legal = torch.as_tensor(masks, dtype=torch.bool, device=logits.device).view_as(logits)
            logits = logits.masked_fill(~legal, ILLEGAL)
        return logits.log_softmax(dim=1), self.value_net(self.mlp_extractor.forward_critic(critic))

    def forward(
        self, obs: Any, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(actions [n], values [n, 1], the actions' log-probabilities [n])."""
        log_probs, values = self.log_probabilities(obs, action_masks)
        if not log_probs.isfinite().all():
            raise NotFiniteError("the policy's outputs are no longer finite; expected a smaller learning_rate")
        best = log_probs.argmax(dim=1, keepdim=True)
        actions = best if deterministic else log_probs.exp().multinomial(1)
        if self.exploration_rate < 1 and not deterministic:
            actions = torch.where(torch.rand_like(values) < self.exploration_rate, actions, best)
        return actions.squeeze(1), values, log_probs.gather(1, actions).squeeze(1)

    def evaluate_actions(
        self, obs: Any, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(values [n, 1], the actions' log-probabilities [n], entropies [n])."""
        log_probs, values = self.log_probabilities(obs, action_masks)
        chosen = log_probs.gather(1, actions.long().view(-1, 1)).squeeze(1)
        return values, chosen, -(log_probs.exp() * log_probs).sum(dim=1)


class AfterstatesPolicy(Policy):
    """MaskablePPO's policy over afterstates: the same linear map values the features of each action (`EachAction`).

    For `MaskablePPO(AfterstatesPolicy, envs)`. The feature extractor defaults to the game's, `RanksAfterstates` or
    `BoardAfterstates`, and `net_arch` to []. `BoardAfterstates` must know rules that differ from the default:
    ``policy_kwargs={"features_extractor_kwargs": {"placements": "slide"}}``.
    """

    def __init__(self, observation_space: gym.Space[Any], *arguments: Any, **kwargs: Any) -> None:
        spaces = getattr(observation_space, "spaces", ())
        of_game = KeysAfterstates if "place" in spaces else BoardAfterstates if spaces else RanksAfterstates
        super().__init__(
            observation_space, *arguments, **{"features_extractor_class": of_game, "net_arch": [], **kwargs}
        )

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        self.action_net: Any = EachAction(self, self.mlp_extractor.policy_net)
        self.action_net.apply(partial(self.init_weights, gain=0.01))
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # pyright: ignore[reportCallIssue]


class AfterstatesDQNPolicy(DQNPolicy):
    """DQN's policy over afterstates."""

    def make_q_net(self) -> Any:
        network = super().make_q_net()
        network.q_net = nn.Sequential(EachAction(network, network.q_net[:-1], q_values=True)).to(self.device)
        return network


def parameters_of(policy: nn.Module) -> dict[str, Array]:
    """A policy's parameters by name, without those of target networks; shared parameters have one name."""
    return {
        name: parameter.detach().cpu().numpy().copy()
        for name, parameter in policy.named_parameters()
        if "_target." not in name
    }


def set_parameters(policy: nn.Module, arrays: Arrays) -> None:
    """Load the parameters that `parameters_of` returned, into target networks too.

    Raises ValueError if names, dtypes or shapes differ.
    """
    ours, theirs = (
        {f"{name} {array.dtype}{list(array.shape)}" for name, array in found.items()}
        for found in (parameters_of(policy), arrays)
    )
    if theirs != ours:
        raise ValueError(f"the arrays do not fit the network; they differ in {', '.join(sorted(theirs ^ ours))}")
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            array = arrays[name.replace("_target.", ".")]
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(array)))


SCALED = "scaled"
EXTRACTORS: dict[str, type[BaseFeaturesExtractor]] = {
    SCALED: Scaled,
    "ranks-afterstates": RanksAfterstates,
    "board-afterstates": BoardAfterstates,
    "keys-afterstates": KeysAfterstates,
}
POLICIES: dict[str, Dict] = {  # the policies of an algorithm by name
    "maskable-ppo": {"MlpPolicy": Policy, "MultiInputPolicy": Policy, "AfterstatesPolicy": AfterstatesPolicy},
    "dqn": {
        "MlpPolicy": DQN.policy_aliases["MlpPolicy"],
        "MultiInputPolicy": DQN.policy_aliases["MultiInputPolicy"],
        "AfterstatesPolicy": AfterstatesDQNPolicy,
    },
}


def policy_class(algorithm: str, network: Options, env_kwargs: Options) -> tuple[Any, Dict]:
    """(class, arguments) of the policy of a `network`, in whose `policy_kwargs` extractors are names.

    The rules that a network needs come from `env_kwargs`. Raises ValueError for an unknown name.
    """
    name, policy_kwargs = network["policy"], network.get("policy_kwargs")
    kind, kwargs = POLICIES[algorithm][choice("policy", name, POLICIES[algorithm])], dict(policy_kwargs or {})
    extractor = "features_extractor_class"
    if extractor in kwargs:
        kwargs[extractor] = EXTRACTORS[choice(f"policy_kwargs: {extractor}", kwargs[extractor], EXTRACTORS)]
    names = getattr(kwargs.get(extractor), "unshown", ())
    if rules := {name: env_kwargs[name] for name in names if name in env_kwargs}:
        kwargs["features_extractor_kwargs"] = {**kwargs.get("features_extractor_kwargs", {}), **rules}
    return kind, kwargs


def network_of(given: Options) -> Dict:
    """The description of a policy's network in model files, from hyper-parameters.

    Policies that see the observation itself see it `Scaled`; those in model files of version 0.1.0 do not.
    """
    policy, kwargs = given.get("policy"), given.get("policy_kwargs") or {}
    if not isinstance(kwargs, Mapping):
        raise ValueError(f"policy_kwargs is {kwargs!r}; expected a mapping")
    by_default = {} if policy == "AfterstatesPolicy" else {"features_extractor_class": SCALED}
    return {"policy": policy, "policy_kwargs": {**by_default, **kwargs}}
