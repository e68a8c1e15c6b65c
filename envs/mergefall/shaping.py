"""Potential-based reward shaping by the heuristics of both games (Ng, Harada & Russell 1999).

    F = γΦ(s′) − Φ(s)

A step from s to s′ pays F in addition to its reward. Over an episode the discounted sum of F is −Φ(s₀), whatever the
actions, so the optimal policy stays the same; what changes is how soon a learner finds it. This holds if γ is the
learner's own discount and Φ is 0 in terminal states. If an episode is truncated, Φ(s′) keeps its value, because
learners bootstrap from there. An illegal action leaves s′ = s, so it pays (γ − 1)Φ(s). The step on which a batched
environment begins a new episode pays 0.

    Φ(s) = scale · squash(h(s) − offset)

- h is the heuristic's value of the board with `to_move=False`. Of a Tetris heuristic only the terms of the board count,
  because the terms of a placement are no function of a state. The base of nneonneo, the same for all boards, is left
  out.
- `squash` is "identity" or "asinh", which is logarithmic far from 0.
- `offset`, default: h(empty board) − drop · cells. That is about the value of the last boards of random games, so
  better boards have Φ > 0, and the last step of a game is paid like others. (The offset of tile-order is 0; its value
  grows with the tiles.)

`squash`, `scale` and `drop` of each potential are chosen so that F of a typical step is about 1:

                                                 F, random play        F, better play
    potential        squash    scale   drop     rms  median  last     rms  median  last    Φ, empty board
    tile-order       asinh     1       30       1.4   0.5   −13.9     1.3   0.6   −13.4      7
    monotone-smooth  identity  0.5     2.25     2.1   1.0     3.1     1.7   0.7    −3.9     18
    prairie-fire     identity  0.02    50       2.6   0.6     2.0     0.8   0.3    −0.7     16
    nneonneo         identity  0.0001  17500    2.4   0.5     0.4     1.4   0.3    −0.7     28
    two-tetrad       identity  0.002   100      3.4   1.9     5.8     0.5   0.4      −      40
    open-enclosed    identity  0.05    3.5      3.2   1.4     4.7     0.5   0.2      −      35
    dellacherie      identity  0.1     1.75     3.0   1.8     7.1     0.4   0.3      −      35
    bcts             identity  0.015   14       3.3   2.5     8.2     0.6   0.4      −      42
    dt-10            identity  0.1     2.4      3.6   2.8     6.4     0.8   0.5      −      48
    dt-20            identity  0.08    2.8      3.3   2.6     4.5     0.7   0.5      −      45
    el-tetris        identity  0.04    5.6      3.4   2.5     6.9     0.6   0.4      −      45

Columns: root mean square of F, median of |F|, mean F of last steps. Better play is 2048/greedy and tetris/bcts, which
loses no game here. Measured on 4×4 and on 10×20 with uniform pieces, γ = 0.99, in 64 games of 400 steps from seed 0, by
`python tests/benchmarks/shaping.py`. Rewards of 2048 are of order ten (`reward="score"`): raise `scale` to give shaping
more weight there.

Where rewards are rare, choose a lower `offset`, in 2048 about −4 · drop · cells. Φ is then large wherever the game goes
on, and the last step pays −Φ(s). In sum that costs nothing. But a learner whose value network does not yet know Φ sees
the last step alone, so at first it learns to live, on boards of high Φ. With the default offset the last step of a
random game pays about as much as others, or more (column `last`; that of tile-order costs 14), and some agents learn to
end it.

DQN gains where its network sees the board and not the afterstates: in Tetris 6×10 from two-tetrad, open-enclosed and
bcts at 0.3 times the default scale, in 2048 from nneonneo at 3 times (`training/RESULTS.md`). Where every good move is
paid, MaskablePPO over afterstates gains in 2048 from nneonneo, and from monotone-smooth at 3 times the default scale.

A player that values boards is a potential, too: `{"player": "2048/ntuple"}`, or `{"player": {"name": …, …options}}`.
Then h is the value of its best action. Defaults: squash "identity", scale 1, offset 0. An n-tuple network predicts the
rest of the score, so with `reward="score"` a step pays how much better or worse it turned out than predicted.

So is a function of a board, or a heuristic of your own, with the same defaults: Φ is what it returns. In an argument of
an environment, which must be JSON types, name it as `module:name`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol, Self

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from mergefall.checks import choice, mapping, number
from mergefall.games import batch_of_one, board_of
from mergefall.kernels import kernel
from mergefall.library import is_spec, recorded
from mergefall.typing import Info, Observation, Options
from mergefall.vector import GameVectorEnv, resets_itself
from mergefall.weighted import WeightedSum

SQUASHES = ("identity", "asinh")
GAMMA = 0.99  # the default discount, as in Stable-Baselines3


ENTRY_POINTS = "mergefall.potentials"


class Constants(NamedTuple):
    """A potential's defaults; see the table above."""

    squash: str
    scale: float
    drop: float


CONSTANTS = {
    "tile-order": Constants("asinh", 1.0, 30.0),
    "monotone-smooth": Constants("identity", 0.5, 2.25),
    "prairie-fire": Constants("identity", 0.02, 50.0),
    "nneonneo": Constants("identity", 0.0001, 17500.0),
    "two-tetrad": Constants("identity", 0.002, 100.0),
    "open-enclosed": Constants("identity", 0.05, 3.5),
    "dellacherie": Constants("identity", 0.1, 1.75),
    "bcts": Constants("identity", 0.015, 14.0),
    "dt-10": Constants("identity", 0.1, 2.4),
    "dt-20": Constants("identity", 0.08, 2.8),
    "el-tetris": Constants("identity", 0.04, 5.6),
}


AS_IT_IS = Constants("identity", 1.0, 0.0)  # defaults of any other potential


class BoardValues(Protocol):
    """A potential that is no heuristic: h of a batch of observations, float64[n]. It can be pickled."""

    name: str

    def of_observations(self, observations: Observation) -> NDArray[np.float64]: ...


@cache
def _makers() -> dict[str, Callable[[Any, Any], BoardValues]]:
    """Kinds of such potentials: functions (spec, rules) -> `BoardValues`, from the entry points of distributions."""
    return {entry.name: entry.load() for entry in entry_points(group=ENTRY_POINTS)}


@kernel
def squashed(value, offset, scale, bends):
    """scale · squash(value − offset); `bends` is True for "asinh", False for "identity"."""
    return scale * (math.asinh(value - offset) if bends else value - offset)


@dataclass(frozen=True)
class Shaping:
    """A potential of one game's states and a discount: what each step pays in addition to its reward.

    Each game has a subclass, the `shaping_type` of its environments.
    """

    rules: Any
    potential: WeightedSum | BoardValues
    gamma: float
    scale: float
    squash: str
    offset: float

    @classmethod
    def read(cls, options: Any, rules: Any) -> Self | None:
        """The shaping that the argument `shaping` of an environment describes; None for None.

        - `options`: a mapping with the keys `potential` (whatever `heuristic` of the game takes, or `{"player": …}`)
          and, optionally, `gamma` (default: 0.99), `scale`, `squash` and `offset` (defaults: see the
          module). None as a value means the default.
        - `rules`: the environment's.

        Raises ValueError for anything else.
        """
        if options is None:
            return None
        if not isinstance(options, Mapping):
            raise ValueError(f"shaping is {options!r}; expected a mapping with a potential's name as 'potential'")
        names = [field.name for field in fields(cls) if field.name != "rules"]
        if unknown := sorted(map(str, set(options) - set(names))):
            raise ValueError(f"shaping has no option {unknown[0]!r}; expected some of {', '.join(names)}")
        given = {name: value for name, value in options.items() if value is not None}
        spec = given.get("potential")
        if not is_spec(spec):
            raise ValueError(f"potential is {spec!r}; expected a name, a mapping of a name and weights, or a function")
        if isinstance(spec, Mapping) and len(spec) == 1 and (kind := next(iter(spec))) in _makers():
            potential, usual, offset = _makers()[kind](spec[kind], rules), AS_IT_IS, 0.0
        else:
            potential = cls.choose(spec, rules.rows, rules.cols)
            usual, offset = CONSTANTS.get(potential.name, AS_IT_IS), 0.0
            if usual is not AS_IT_IS:
                offset = cls.of_empty(potential, rules.rows, rules.cols) - usual.drop * rules.rows * rules.cols
        offset = number("offset", given.get("offset", offset))
        return cls(
            rules,
            potential,
            number("gamma", given.get("gamma", GAMMA), above=0, most=1),
            number("scale", given.get("scale", usual.scale), above=0),
            choice("squash", given.get("squash", usual.squash), SQUASHES),
            offset,
        )

    @staticmethod
    def choose(spec: Any, rows: int, cols: int) -> Any:
        """The heuristic that `spec` describes; raises ValueError if it has no such size."""
        raise NotImplementedError

    @staticmethod
    def of_empty(potential: Any, rows: int, cols: int) -> float:
        """Σ weight·term of an empty board."""
        raise NotImplementedError

    @staticmethod
    def state_of(board: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """A state uint64[1, words] that holds a board and is not terminal."""
        raise NotImplementedError

    def compiled(self) -> tuple[Any, tuple[Any, ...]]:
        """The kernel (states, …, offset, scale, bends, values) that computes Φ, and its arguments at the dots."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        if isinstance(self.potential, WeightedSum):
            kernel, arguments = self.compiled()
            object.__setattr__(self, "_kernel", kernel)
            object.__setattr__(self, "_arguments", (*arguments, self.offset, self.scale, self.squash == "asinh"))

    def __reduce__(self) -> Any:
        """Copies and pickles hold the fields alone; kernel and tables are made again."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def of_states(self, states: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Φ, float64[n], of states uint64[n, words] as `clone_state` returns them; 0 where the game is over."""
        if not isinstance(self.potential, WeightedSum):
            values, going = np.zeros(len(states)), np.flatnonzero(~self.rules.over(states))
            if going.size:
                values[going] = self._of_observations(self.rules.observations(states[going]))
            return values
        values = np.empty(len(states))
        self._kernel(states, *self._arguments, values)  # pyright: ignore[reportAttributeAccessIssue]
        self.potential.check()
        return values

    def of_observation(self, observation: Observation) -> float:
        """Φ of one observation whose state is not terminal."""
        if not isinstance(self.potential, WeightedSum):
            return self._of_observations(batch_of_one(observation)).item()
        return self.of_states(self.state_of(board_of(observation))).item()

    def _of_observations(self, observations: Observation) -> NDArray[np.float64]:
        assert not isinstance(self.potential, WeightedSum)
        values = self.potential.of_observations(observations) - self.offset
        return self.scale * (np.arcsinh(values) if self.squash == "asinh" else values)

    def pay(self, before: Any, after: Any) -> Any:
        """F = γ · after − before, for Φ of the states before and after a step; floats or arrays."""
        return self.gamma * after - before

    def step(self, state: Callable[[], NDArray[np.uint64]], play: Callable[[Any], Any], action: Any) -> Any:
        """`play(action)`, which steps a single environment, with F added to the reward and to `info["shaping"]`.

        `state` returns the environment's current state uint64[1, words].
        """
        before = self.of_states(state()).item()
        observation, reward, terminated, truncated, info = play(action)
        paid = self.pay(before, 0.0 if terminated else self.of_states(state()).item())
        info = info | {"shaping": info.get("shaping", 0.0) + paid}
        return observation, reward + paid, terminated, truncated, info


class PotentialShaping(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Adds F to the rewards of one of mergefall's environments; F is also `info["shaping"]` (0 after `reset`).

    The wrapper does what the environments' argument `shaping` does. It reads the states that the wrapped environment
    leaves behind, so put it outside of a wrapper that changes them. If the environment has shaping already, the two
    add up. F is 0 on a step by which Gymnasium's `Autoreset` begins an episode.

    - `potential`: a heuristic's name, a mapping of `name` and weights, a function of a board (Φ itself), or
      `{"player": …}`.
    - `gamma`: the learner's discount, default: 0.99.
    - `scale`, `squash`, `offset`: default: see `mergefall.shaping`.

    >>> import mergefall
    >>> env = PotentialShaping(gym.make("mergefall/Tetris-v0"), "bcts", gamma=0.9)
    >>> env.reset(seed=0)[1]["shaping"]
    0.0
    >>> _, reward, _, _, info = env.step(0)
    >>> reward == info["shaping"] < 0
    True
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        potential: str | Options | Callable[..., Any],
        gamma: float = GAMMA,
        scale: float | None = None,
        squash: str | None = None,
        offset: float | None = None,
    ) -> None:
        options: dict[str, Any] = dict(potential=potential, gamma=gamma, scale=scale, squash=squash, offset=offset)
        gym.utils.RecordConstructorArgs.__init__(self, **options | {"potential": recorded(potential)})
        gym.Wrapper.__init__(self, env)
        self._game: Any = env.unwrapped
        self.shaping = _read(self._game, options)
        self._begins = False  # whether the next step is Gymnasium's `Autoreset` beginning an episode

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._begins = False
        return observation, info | {"shaping": 0.0}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, Info]:
        if self._begins:
            played: Any = self.env.step(action)
            played[4]["shaping"] = 0.0
        else:
            played = self.shaping.step(self._state, self.env.step, action)
        self._begins = (played[2] or played[3]) and resets_itself(self.env)
        return played

    def _state(self) -> NDArray[np.uint64]:
        return self._game.clone_state()[None]


class VectorPotentialShaping(gym.vector.VectorWrapper):
    """`PotentialShaping` for batches of mergefall's environments, native or in Gymnasium's `SyncVectorEnv`.

    F is 0 on the step that begins a new episode. With autoreset mode `"SameStep"`, F of an episode's last step is in
    `final_info`.

    >>> import mergefall
    >>> envs = VectorPotentialShaping(gym.make_vec("mergefall/Game2048-v0", num_envs=2), "nneonneo")
    >>> envs.reset(seed=0)[1]["shaping"]
    array([0., 0.])
    >>> _, rewards, _, _, infos = envs.step([0, 1])
    >>> rewards.shape, infos["_shaping"]
    ((2,), array([ True,  True]))
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv[Any, Any, Any],
        potential: str | Options | Callable[..., Any],
        gamma: float = GAMMA,
        scale: float | None = None,
        squash: str | None = None,
        offset: float | None = None,
    ) -> None:
        super().__init__(env)
        options: dict[str, Any] = dict(potential=potential, gamma=gamma, scale=scale, squash=squash, offset=offset)
        self._games: Any = env.unwrapped
        self._native = isinstance(self._games, GameVectorEnv)
        inner = getattr(self._games, "envs", None)
        self.shaping = _read(inner[0].unwrapped if inner else self._games, options)
        self._mode = env.metadata["autoreset_mode"]
        if self._mode is AutoresetMode.SAME_STEP and env.observation_space != self._games.observation_space:
            raise ValueError("autoreset_mode is 'SameStep'; apply shaping before wrappers that change observations")
        self._ended = np.zeros(self.num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: Info | None = None) -> tuple[Observation, Info]:
        mask = mapping("reset options", options or {}).get("reset_mask")
        mask = np.ones(self.num_envs, np.bool_) if mask is None else np.array(mask)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._ended[mask] = False
        return observations, infos | {"shaping": np.zeros(self.num_envs), "_shaping": mask}

    def step(self, actions: Any) -> tuple[Observation, Any, Any, Any, Info]:
        before, begins = self._potentials(), self._games.beginning() if self._native else self._ended
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        after, ended = self._potentials(), terminated | truncated
        if self._mode is AutoresetMode.SAME_STEP:
            for i in np.flatnonzero(ended & ~terminated):
                after[i] = self.shaping.of_observation(infos["final_obs"][i])
        paid = self.shaping.pay(before, np.where(terminated, 0.0, after))
        if self._mode is AutoresetMode.NEXT_STEP:
            paid[begins] = 0.0
        self._ended = ended
        rewards = rewards + paid
        if self._mode is AutoresetMode.SAME_STEP and ended.any():
            final = infos["final_info"]
            total = final.get("shaping", 0.0) + np.where(ended, paid, 0.0)
            infos["final_info"] = final | {"shaping": total, "_shaping": ended.copy()}
            paid[ended] = 0.0
        infos = infos | {"shaping": infos.get("shaping", 0.0) + paid, "_shaping": np.ones(self.num_envs, np.bool_)}
        return observations, rewards, terminated, truncated, infos

    def _potentials(self) -> NDArray[np.float64]:
        states = self._games.clone_state() if self._native else np.stack(self._games.call("clone_state"))
        return self.shaping.of_states(states)


def _read(game: Any, options: Options) -> Any:
    """The shaping of an environment's game that options describe."""
    if not hasattr(game, "shaping_type"):
        raise ValueError(f"environment is {game!r}; expected one of mergefall, or a native or Sync batch of them")
    return game.shaping_type.read(options, game.rules)
