"""Puzzles and games in text for other libraries: `verifiers`, OpenEnv and TextArena.

Each function makes classes of its library, which must be installed; it is imported only then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from typing import Any

import gymnasium as gym
from mergefall.text import rules_text
from mergefall.text_game import FAULTS, TextGame
from mergefall.typing import Options

from mergefall_training.play.puzzles import Puzzle, puzzles, reward, rules_of


@cache
def verifiers_taskset() -> type[Any]:
    """A `Taskset` of `verifiers` (from 0.4): endless puzzles, whose reward is `puzzles.reward`.

    Its configuration has `env_id`, `env_kwargs`, `judge`, `split`, `gap` and `seed`, as `puzzles` takes them. A taskset
    is found in a module named as its id, so write one, such as `my_puzzles.py`::

        from mergefall_training.play.text_adapters import verifiers_taskset
        Puzzles = verifiers_taskset()
        __all__ = ["Puzzles"]
    """
    import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]

    class PuzzleData(vf.TaskData):
        puzzle: dict[str, Any]

    class PuzzleTask(vf.Task[PuzzleData, vf.State, vf.TaskConfig]):
        @vf.reward
        async def puzzle_reward(self, trace: Any) -> float:
            return reward(Puzzle(**trace.task.data.puzzle), trace.last_reply)

    class PuzzlesConfig(vf.TasksetConfig):
        env_id: str = "mergefall/Game2048-v0"
        env_kwargs: dict[str, Any] = {}  # noqa: RUF012 (pydantic copies it)
        judge: str | dict[str, Any] | None = None
        split: str = "train"
        gap: tuple[float, float] = (0.0, 1.0)
        seed: int = 0

    class Puzzles(vf.Taskset[PuzzleTask, PuzzlesConfig]):
        INFINITE = True

        def load(self) -> Iterator[PuzzleTask]:
            options: dict[str, Any] = {n: getattr(self.config, n) for n in ("judge", "split", "gap", "seed")}
            for puzzle in puzzles(self.config.env_id, self.config.env_kwargs, **options):
                data = PuzzleData(
                    name=puzzle.id,
                    prompt=puzzle.prompt,
                    system_prompt=rules_text(rules_of(puzzle)),
                    puzzle=asdict(puzzle),
                )
                yield PuzzleTask(data, self.config.task)

    return Puzzles


@cache
def openenv_types() -> tuple[type[Any], type[Any], type[Any]]:
    """(environment, action, observation): classes for a server of OpenEnv (`openenv-core` from 0.3) with whole games.

    The environment takes an id and arguments of `gym.make`; the action has `answer`, the observation `prompt`,
    `verdict`, `reward` and `done`. See `mergefall.text_game.TextGame`. As a server::

        environment, action, observation = openenv_types()
        app = openenv.core.create_app(lambda: environment("mergefall/Game2048-v0"), action, observation)
    """
    import openenv.core as core  # pyright: ignore[reportMissingImports]

    class Answer(core.Action):
        answer: str

    class Prompt(core.Observation):
        prompt: str
        verdict: str | None = None

    class Game(core.Environment[Answer, Prompt, core.State]):
        SUPPORTS_CONCURRENT_SESSIONS = True

        def __init__(self, env_id: str, env_kwargs: Options | None = None) -> None:
            super().__init__()
            self._env, self._state = TextGame(gym.make(env_id, **(env_kwargs or {})), rules=True), core.State()

        def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Any:
            prompt, _info = self._env.reset(seed=seed)
            self._state = core.State(episode_id=episode_id, step_count=0)
            return Prompt(prompt=prompt)

        def step(self, action: Any, timeout_s: float | None = None, **_: Any) -> Any:
            prompt, earned, terminated, truncated, info = self._env.step(action.answer)
            self._state.step_count += 1
            return Prompt(prompt=prompt, reward=earned, done=terminated or truncated, verdict=info["verdict"].kind)

        @property
        def state(self) -> Any:
            return self._state

    return Game, Answer, Prompt


@cache
def textarena_game() -> type[Any]:
    """A game of TextArena (`textarena` from 0.7) for one player, made of an id and arguments of `gym.make`.

    The reward at the end is the sum of the environment's rewards. An answer without a legal move is an invalid move: by
    TextArena's rule one is allowed, and a second one in a row ends the game.
    """
    import textarena as ta  # pyright: ignore[reportMissingImports]

    class Game(ta.Env):
        def __init__(self, env_id: str, env_kwargs: Options | None = None) -> None:
            self._env = TextGame(gym.make(env_id, **(env_kwargs or {})), rules=True, patience=2**31)

        def reset(self, num_players: int = 1, seed: int | None = None) -> None:
            prompt, _ = self._env.reset(seed=seed)
            self._total = 0.0
            self.state = ta.SinglePlayerState(num_players=num_players, seed=seed)
            self.state.reset(game_state={}, player_prompt_function=lambda player_id, game_state: prompt)

        def step(self, action: str) -> tuple[bool, dict[str, Any]]:
            self.state.add_observation(
                from_id=self.state.current_player_id, message=action, observation_type=ta.ObservationType.PLAYER_ACTION
            )
            prompt, earned, terminated, truncated, info = self._env.step(action)
            self._total += earned
            if (kind := info["verdict"].kind) in FAULTS:
                self.state.set_invalid_move(reason=FAULTS[kind], reward=self._total)
                return self.state.step()
            self.state.add_observation(message=prompt, observation_type=ta.ObservationType.GAME_BOARD)
            if terminated or truncated:
                self.state.set_outcome(reward=self._total, reason="The game is over.")
            return self.state.step()

    return Game
