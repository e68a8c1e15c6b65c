"""verifiers: a taskset of endless puzzles, each with a reward for every move."""

from dataclasses import asdict

import verifiers.v1 as vf
from mergefall_training.play.puzzles import Puzzle, puzzles, reward


class PuzzleData(vf.TaskData):
    puzzle: dict


class PuzzleTask(vf.Task[PuzzleData, vf.State, vf.TaskConfig]):
    @vf.reward
    async def puzzle_reward(self, trace) -> float:
        return reward(Puzzle(**trace.task.data.puzzle), trace.last_reply)


class Puzzles(vf.Taskset[PuzzleTask, vf.TasksetConfig]):
    INFINITE = True

    def load(self):
        for puzzle in puzzles("mergefall/Game2048-v0", {"rows": 2, "cols": 3}):
            yield PuzzleTask(PuzzleData(name=puzzle.id, prompt=puzzle.prompt, puzzle=asdict(puzzle)), self.config.task)


# What `make clients` checks beyond that:
import asyncio  # noqa: E402
from types import SimpleNamespace  # noqa: E402

for task in Puzzles(vf.TasksetConfig()).take(5):
    puzzle = Puzzle(**task.data.puzzle)
    for answer in ("up", "<answer>left</answer>", "hm"):
        trace = SimpleNamespace(task=task, last_reply=answer)
        assert asyncio.run(task.puzzle_reward(trace)) == reward(puzzle, answer)
