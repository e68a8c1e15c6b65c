"""The match of Tetris by keys for two agents, as PettingZoo's `ParallelEnv`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mergefall.chance import STREAM
from mergefall.checks import MOST_COUNTED, integer
from mergefall.draw import Window
from mergefall.imports import import_extra
from mergefall.tetris import game as words
from mergefall.tetris.keys import game, match
from mergefall.tetris.keys.env import TetrisKeysEnv
from mergefall.tetris.versus.render import Canvas
from mergefall.tetris.versus.rules import Rules
from mergefall.typing import Array, Info, Observation, Options
from mergefall.words import stream_from_seed

ParallelEnv: Any = import_extra("pettingzoo").ParallelEnv
AGENTS = ("player_0", "player_1")
FIGURES = {"lines": words.LINES, "score": words.SCORE, "pieces": words.PIECES, "attack": words.ATTACK}


class TetrisParallelEnv(ParallelEnv):
    """A match of Tetris by keys between two agents, who press one key each step.

    Agents, spaces, rewards and infos: those of `mergefall.tetris.versus.TetrisVersusEnv` for each of the two. Both
    agents end together. The masks are in the infos; no key is illegal.

    Args:
        max_cycles: int ≥ 1, steps after which the match is truncated. Default: None, no cap.
        render_mode: ``"ansi"``, ``"rgb_array"`` or ``"human"``. Default: None.
        rules: the arguments of `mergefall/TetrisVersus-v0` other than `opponent` and `shaping`.

    `reset(options={agent: options})` starts an agent's side elsewhere, as the environment of a side does; other keys
    are ignored.

    >>> from mergefall.tetris.versus.parallel import parallel_env
    >>> env = parallel_env(max_cycles=100)
    >>> observations, infos = env.reset(seed=0)
    >>> observations, rewards, terminations, truncations, infos = env.step({"player_0": 6, "player_1": 1})
    >>> rewards, infos["player_0"]["pieces"]
    ({'player_0': 0.0, 'player_1': 0.0}, 1)
    """

    metadata: ClassVar[dict[str, Any]] = TetrisKeysEnv.metadata | {"name": "mergefall_tetris_versus"}

    def __init__(self, max_cycles: int | None = None, render_mode: str | None = None, **rules: Any) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode is {render_mode!r}; expected one of {self.metadata['render_modes']} or None")
        self.max_cycles = None if max_cycles is None else integer("max_cycles", max_cycles, 1, MOST_COUNTED)
        self.rules, self.render_mode = Rules(**rules), render_mode
        self.possible_agents, self.agents = list(AGENTS), []
        self._spaces = {agent: (self.rules.observation_space(), self.rules.action_space()) for agent in AGENTS}
        self._states, self._canvas, self._window = self.rules.new_states(1), Canvas(self.rules), None

    def observation_space(self, agent: str) -> Any:
        return self._spaces[agent][0]

    def action_space(self, agent: str) -> Any:
        return self._spaces[agent][1]

    def reset(
        self, seed: int | None = None, options: Options | None = None
    ) -> tuple[dict[str, Observation], dict[str, Info]]:
        """Begin a match: (observations, infos) by agent; `seed` fixes every random draw from here on."""
        starts = [self.rules.side.start((options or {}).get(agent)) for agent in AGENTS]
        state = self._states[0]
        if seed is not None:
            state[STREAM] = stream_from_seed(integer("seed", seed, 0))
        match.begin(state, self.rules.pool(None), True)
        for side, start in zip(match.sides(state), starts, strict=True):
            if start is not None:
                game.begin(side, start[None], False)
        self.agents = list(AGENTS)
        if self.render_mode is not None:
            self._canvas.paint(state, None)
        self._show()
        return self._observations(), self._infos((0, 0))

    def step(self, actions: dict[str, int]) -> tuple[dict[str, Any], ...]:
        """Play a key for each agent: (observations, rewards, terminations, truncations, infos) by agent."""
        if not self.agents:
            raise ValueError("the match has not begun or is over; call reset")
        keys = [self.rules.action_index(actions[agent]) for agent in AGENTS]
        state, before = self._states[0], self._totals()
        own, other = match.sides(state)
        other[words.ILLEGAL] = keys[1]
        if self.render_mode is not None:
            self._canvas.paint(state, keys[0])
        _, over, _, *locks = match.step(own, other, keys[0])
        won, gained = match.won(own, other), self._totals() - before
        paid = [
            (*gains, sign * won)[self.rules.rewards.index(self.rules.reward)]
            for sign, gains in zip((1, -1), gained.tolist(), strict=True)
        ]
        truncated = self.max_cycles is not None and int(own[words.STEPS]) >= self.max_cycles
        if over or truncated:
            self.agents = []
        self._show()
        return (
            self._observations(),
            {agent: float(reward) for agent, reward in zip(AGENTS, paid, strict=True)},
            dict.fromkeys(AGENTS, over),
            dict.fromkeys(AGENTS, truncated),
            self._infos(tuple(lock.clear for lock in locks)),
        )

    def _totals(self) -> Array:
        """Lines, score and attack of each side, int64[2, 3]."""
        return np.array(
            [side[[words.LINES, words.SCORE, words.ATTACK]] for side in match.sides(self._states[0])], np.int64
        )

    def _matches(self) -> Array:
        """The match as each agent sees it, uint64[2, words]."""
        return np.concatenate([self._states, self.rules.turned(self._states)])

    def _observations(self) -> dict[str, Observation]:
        seen = self.rules.observations(self._matches())
        return {agent: {name: part[i] for name, part in seen.items()} for i, agent in enumerate(AGENTS)}

    def _infos(self, clears: tuple[int, ...]) -> dict[str, Info]:
        matches = self._matches()
        masks = self.rules.observed(matches)[0].astype(np.int8)
        return {
            agent: {
                "action_mask": masks[i],
                **{name: int(matches[i, word]) for name, word in FIGURES.items()},
                "clear": clears[i],
                "won": match.won(*match.sides(matches[i])),
            }
            for i, agent in enumerate(AGENTS)
        }

    def _show(self) -> None:
        if self.render_mode == "human":
            self.render()

    def render(self) -> Any:
        """The match as text or uint8[height, width, 3], the first agent on the left; "human" shows it in a window."""
        if self.render_mode is None:
            return None
        frame = self._canvas.frame(self._states[0], self.render_mode)
        if self.render_mode != "human":
            return frame
        if self._window is None:
            self._window = Window("Tetris versus · mergefall", self.metadata["render_fps"], frame.get_size())
        return self._window.show(frame)

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
            self._window = None


parallel_env = TetrisParallelEnv
