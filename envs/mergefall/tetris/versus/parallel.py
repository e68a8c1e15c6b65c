"""The match of Tetris by keys for two agents, as PettingZoo's `ParallelEnv`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from mergefall.chance import STREAM
from mergefall.checks import choice, integer, known, made_of
from mergefall.env import Pictures
from mergefall.games import each
from mergefall.imports import import_extra
from mergefall.tetris.game import OPPONENTS_KEY
from mergefall.tetris.keys import match
from mergefall.tetris.seen import Seen
from mergefall.tetris.versus.env import TetrisVersusEnv
from mergefall.tetris.versus.rules import Rules
from mergefall.typing import Dict, Info, Observation, Options
from mergefall.words import stream_from_seed

pettingzoo: Any = import_extra("pettingzoo")
AGENTS = ("player_0", "player_1")


def by_agent(parts: Sequence[Any]) -> Dict:
    return dict(zip(AGENTS, parts, strict=True))


class TetrisParallelEnv(Pictures, pettingzoo.ParallelEnv):
    """A match of Tetris by keys between two agents, who press one key each step.

    Agents, spaces, rewards and infos: those of `mergefall.tetris.versus.TetrisVersusEnv` for each of the two. Both
    agents end together. The masks are in the infos; no key is illegal.

    Args:
        max_cycles: int ≥ 1, steps after which the match is truncated. Default: None, no cap.
        render_mode: ``"ansi"``, ``"rgb_array"`` or ``"human"``. Default: None.
        rules: the arguments of `mergefall/TetrisVersus-v0` other than `opponent` and `shaping`.

    `reset(options={agent: options})` starts an agent's side elsewhere, as the environment of a side does.

    Raises ValueError for wrong arguments, agents, actions and options.

    >>> from mergefall.tetris.versus.parallel import parallel_env
    >>> env = parallel_env(max_cycles=100)
    >>> observations, infos = env.reset(seed=0)
    >>> observations, rewards, terminations, truncations, infos = env.step({"player_0": 6, "player_1": 1})
    >>> rewards, infos["player_0"]["pieces"]
    ({'player_0': 0.0, 'player_1': 0.0}, 1)
    """

    metadata: ClassVar[Dict] = TetrisVersusEnv.metadata | {"name": "mergefall_tetris_versus"}
    title, canvas_type = TetrisVersusEnv.title, TetrisVersusEnv.canvas_type

    def __init__(self, max_cycles: int | None = None, render_mode: str | None = None, **rules: Any) -> None:
        self.max_cycles = None if max_cycles is None else integer("max_cycles", max_cycles, 1)
        self.rules = Rules(**rules)
        self._begin_pictures(render_mode)
        self.possible_agents, self.agents = list(AGENTS), []
        self._spaces = {agent: (self.rules.observation_space(), self.rules.action_space()) for agent in AGENTS}
        self._states = self.rules.new_states(2)  # the match as each agent sees it; one kernel call steps both

    def observation_space(self, agent: str) -> Any:
        return self._spaces[choice("agent", agent, AGENTS)][0]

    def action_space(self, agent: str) -> Any:
        return self._spaces[choice("agent", agent, AGENTS)][1]

    def reset(
        self, seed: int | None = None, options: Options | None = None
    ) -> tuple[dict[str, Observation], dict[str, Info]]:
        """Begin a match: (observations, infos) by agent; `seed` fixes every random draw from here on."""
        given = made_of("reset options", options or {}, Mapping, f"options by agent, {' and '.join(AGENTS)}")
        known("a match", {name: one for name, one in given.items() if isinstance(one, Mapping)}, AGENTS)
        starts = [self.rules.side.start(given.get(agent)) for agent in AGENTS]
        state = self._states[0]
        if seed is not None:
            state[STREAM] = stream_from_seed(integer("seed", seed, 0, None))
        match.begin_sides(state, *(self.rules.pool(None) if start is None else start[None] for start in starts))
        self._states[1:] = self.rules.turned(self._states[:1])
        self.agents = list(AGENTS)
        self._paint(None)
        self._show()
        seen = self.rules.seen(2)
        self.rules.kernels.look(self._states, np.arange(2), seen, *self.rules.more)
        return self._shown(seen)

    def step(self, actions: dict[str, int]) -> tuple[Dict, ...]:
        """Play a key for each agent: (observations, rewards, terminations, truncations, infos) by agent."""
        if not self.agents:
            raise ValueError("the match has not begun or is over; call reset")
        if not isinstance(actions, Mapping) or actions.keys() != set(AGENTS):
            raise ValueError(f"actions are {actions!r}; expected one of each agent, {' and '.join(AGENTS)}")
        keys = np.array([self.rules.action_index(actions[agent]) for agent in AGENTS])
        self._states[:, self._states.shape[1] // 2 + OPPONENTS_KEY] = keys[::-1]
        self._paint(int(keys[0]))
        seen = self.rules.stepped(self._states, keys, self.max_cycles or 0)
        if seen.terminated[0] or seen.truncated[0]:
            self.agents = []
        self._show()
        observations, infos = self._shown(seen)
        ends = (part.tolist() for part in (seen.rewards, seen.terminated, seen.truncated))
        return observations, *map(by_agent, ends), infos

    def _shown(self, seen: Seen) -> tuple[dict[str, Observation], dict[str, Info]]:
        """(observations, infos) by agent."""
        observations, infos = (list(each(part)) for part in self.rules.shown(seen))
        plain = [{name: one if np.ndim(one) else one.item() for name, one in info.items()} for info in infos]
        return by_agent(observations), by_agent(plain)


parallel_env = TetrisParallelEnv


def env(*values: Any, **arguments: Any) -> Any:
    """The match for agents who act in turn, as PettingZoo's `AECEnv`; the arguments are those of `parallel_env`."""
    return pettingzoo.utils.parallel_to_aec(parallel_env(*values, **arguments))
