"""Potential-based reward shaping from the documented heuristics and evaluations (Ng, Harada & Russell 1999).

A step from s to s′ pays F = γΦ(s′) − Φ(s) besides its reward. Discounted, that adds up to −Φ(s₀) over an episode,
whatever is played, so the optimal policy stays what it is, if γ is the learner's own discount and Φ is 0 in terminal
states. Where an episode is truncated Φ(s′) keeps its value, for a learner looks on from there. An illegal action leaves
s′ = s, so it pays (γ − 1)Φ(s). The step on which a batched environment begins an episode anew pays 0.

Φ(s) = scale · squash(h(s) − offset). h is the heuristic's value of the board (`to_move=False`), for Tetris what the
terms of the board add up to: those of a placement are no function of a state. The base of nneonneo, the same for all
boards, is left out. `squash` is "identity" or "asinh", which is logarithmic where far from 0. Unless told, `offset` is
the value of an empty board less `drop` for each cell: about what the last boards of random games are worth, so that
better ones have Φ > 0, and a game's last step is paid like others. (tile-order's is 0; it grows with the tiles.)

Squash, scale and drop of each potential are chosen so that a typical step is paid about 1:

                                                 F, random play        F, better play
    potential        squash    scale   drop     rms  median  last     rms  median  last    Φ, empty board
    tile-order       asinh     1       30       1.4   0.5   −13.9     1.3   0.6   −13.4      0
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

Better play is 2048/greedy and tetris/bcts, which loses no game here; root mean square, median of |F|, and the mean of
last steps, on 4×4 and on 10×20 with uniform pieces, γ = 0.99, 64 games of 400 steps from seed 0. The command is
`python tests/benchmarks/shaping.py`. Rewards of 2048 are of order ten (`reward="score"`): raise `scale` to make more of
shaping there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from mergefall.checks import choice, number
from mergefall.kernels import kernel
from mergefall.vector import GameVectorEnv
from mergefall.weighted import WeightedSum

SQUASHES = ("identity", "asinh")
GAMMA = 0.99  # the discount unless told, as in Stable-Baselines3


class Constants(NamedTuple):
    """What a potential is made of unless told; see the table above."""

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


@kernel
def squashed(value, offset, scale, bends):
    """scale · squash(value − offset); `bends` is True for "asinh"."""
    return scale * (math.asinh(value - offset) if bends else value - offset)


@dataclass(frozen=True)
class Shaping:
    """A potential of one game's states and a discount: what each step pays besides its reward.

    Subclasses know the game. `rules.shaping(options)` of an environment makes one.
    """

    potential: WeightedSum
    gamma: float
    scale: float
    squash: str
    offset: float

    @classmethod
    def read(cls, options: Any, rows: int, cols: int) -> Self | None:
        """The shaping that options ask for on boards of a size, None for None; a ValueError names what is wrong.

        `options` maps `potential`, a name or a mapping of it and weights, and perhaps some of the other fields; those
        left out or None are as the table says, `gamma` is 0.99.
        """
        if options is None:
            return None
        if not isinstance(options, Mapping):
            raise ValueError(f"shaping is {options!r}; expected a mapping with a potential's name as 'potential'")
        names = [field.name for field in fields(cls)]
        if unknown := sorted(map(str, set(options) - set(names))):
            raise ValueError(f"shaping has no option {unknown[0]!r}; expected some of {', '.join(names)}")
        given = {name: value for name, value in options.items() if value is not None}
        spec = given.get("potential")
        if not isinstance(spec, str | Mapping):
            raise ValueError(f"potential is {spec!r}; expected a name or a mapping of a name and weights")
        potential = cls.choose(spec, rows, cols)
        usual = CONSTANTS[potential.name]
        if "offset" in given:
            offset = number("offset", given["offset"])
        else:
            offset = cls.of_empty(potential, rows, cols) - usual.drop * rows * cols
        return cls(
            potential,
            number("gamma", given.get("gamma", GAMMA), above=0, most=1),
            number("scale", given.get("scale", usual.scale), above=0),
            choice("squash", given.get("squash", usual.squash), SQUASHES),
            offset,
        )

    @staticmethod
    def choose(spec: str | Mapping[str, Any], rows: int, cols: int) -> Any:
        """The potential of a name or of a mapping of it and weights; a ValueError if there is none for the size."""
        raise NotImplementedError

    @staticmethod
    def of_empty(potential: Any, rows: int, cols: int) -> float:
        """What the weighted terms of an empty board add up to."""
        raise NotImplementedError

    @staticmethod
    def state_of(board: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """A state uint64[1, words] with a board that does not end the game."""
        raise NotImplementedError

    def compiled(self) -> tuple[Any, tuple[Any, ...]]:
        """The kernel (states, …, offset, scale, bends, values) that values states, and what it takes for the dots."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        kernel, arguments = self.compiled()
        object.__setattr__(self, "_kernel", kernel)
        object.__setattr__(self, "_arguments", (*arguments, self.offset, self.scale, self.squash == "asinh"))

    def __reduce__(self) -> Any:
        """Without kernel and tables, which are made anew."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def of_states(self, states: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Φ of states uint64[n, words], as `clone_state` returns them, float64[n]; 0 where the game is over."""
        values = np.empty(len(states))
        self._kernel(states, *self._arguments, values)  # pyright: ignore[reportAttributeAccessIssue]
        return values

    def of_board(self, board: NDArray[np.uint8]) -> float:
        """Φ of a state that is not terminal, from its board."""
        return self.of_states(self.state_of(board)).item()

    def pay(self, before: Any, after: Any) -> Any:
        """F of steps, from Φ of the states before and after them, floats or arrays."""
        return self.gamma * after - before

    def step(self, game: Any, play: Any, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """What `play(action)` returns, which steps the single environment `game`, with F paid and told."""
        before = self.of_states(game._states).item()
        observation, reward, terminated, truncated, info = play(action)
        paid = self.pay(before, 0.0 if terminated else self.of_states(game._states).item())
        info = info | {"shaping": info.get("shaping", 0.0) + paid}
        return observation, reward + paid, terminated, truncated, info


class PotentialShaping(gym.Wrapper[Any, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """Adds F to the rewards of an environment of mergefall, and tells it as `info["shaping"]` (0 after `reset`).

    What the argument `shaping` of the environments does, around wrappers: states are those the wrapped environment
    leaves behind, so it goes outside of a wrapper that changes them. Where there is shaping within, the two add up.
    Arguments are as in `Shaping.read`.

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
        potential: str | Mapping[str, Any],
        gamma: float = GAMMA,
        scale: float | None = None,
        squash: str | None = None,
        offset: float | None = None,
    ) -> None:
        options: dict[str, Any] = dict(potential=potential, gamma=gamma, scale=scale, squash=squash, offset=offset)
        gym.utils.RecordConstructorArgs.__init__(self, **options)
        gym.Wrapper.__init__(self, env)
        self._game: Any = env.unwrapped
        self.shaping = _read(self._game, options)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | {"shaping": 0.0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.shaping.step(self._game, self.env.step, action)


class VectorPotentialShaping(gym.vector.VectorWrapper):
    """`PotentialShaping` for batches of mergefall's environments, native ones and Gymnasium's `SyncVectorEnv`.

    F is 0 on the step that begins an episode anew, and of an episode's last step it is in `final_info` where that is.

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
        potential: str | Mapping[str, Any],
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
            raise ValueError("autoreset_mode is 'SameStep'; expected shaping within wrappers that change observations")
        self._ended = np.zeros(self.num_envs, np.bool_)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        mask = (options or {}).get("reset_mask")
        mask = np.ones(self.num_envs, np.bool_) if mask is None else np.array(mask)
        observations, infos = self.env.reset(seed=seed, options=options)
        self._ended[mask] = False
        return observations, infos | {"shaping": np.zeros(self.num_envs), "_shaping": mask}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        before, begins = self._potentials(), self._games._ended if self._native else self._ended
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        after, ended = self._potentials(), terminated | truncated
        if self._mode is AutoresetMode.SAME_STEP:
            for i in np.flatnonzero(ended):
                final = infos["final_obs"][i]
                after[i] = self.shaping.of_board(final["board"] if isinstance(final, dict) else final)
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
        told = {"shaping": infos.get("shaping", 0.0) + paid, "_shaping": np.ones(self.num_envs, np.bool_)}
        return observations, rewards, terminated, truncated, infos | told

    def _potentials(self) -> NDArray[np.float64]:
        states = self._games.clone_state() if self._native else np.stack(self._games.call("clone_state"))
        return self.shaping.of_states(states)


def _read(game: Any, options: Mapping[str, Any]) -> Any:
    """The shaping that options ask for, of an environment's own kind."""
    if not hasattr(game, "shaping_type"):
        raise ValueError(f"environment is {game!r}; expected one of mergefall, or a native or Sync batch of them")
    return game.shaping_type.read(options, game.rules.rows, game.rules.cols)
