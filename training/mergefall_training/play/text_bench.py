"""How well a function plays puzzles in text, such as a language model: its rewards beside those of players."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import compress, islice
from statistics import fmean
from typing import Any

import mergefall
import numpy as np
from mergefall.checks import integer
from mergefall.games import game_of
from mergefall.imports import name_of
from mergefall.text import rules_text
from mergefall.typing import Dict, FilePath, Options
from mergefall_baselines.player import title
from mergefall_baselines.registry import player_of

from mergefall_training.files import LineFile
from mergefall_training.play.advice import Adviser
from mergefall_training.play.puzzles import Puzzle, default_judge, judged, puzzles, rules_of
from mergefall_training.play.records import code_of
from mergefall_training.play.statistics import bootstrap, percent, wilson
from mergefall_training.play.tables import Cell, Table
from mergefall_training.progress import progress_bar

REFERENCES: dict[str, tuple[Dict, ...]] = {
    "2048": ({"player": "2048/greedy"}, {"player": "2048/expectimax", "heuristic": "nneonneo", "depth": 2}),
    "tetris": ({"player": "tetris/dellacherie"}, {"player": "tetris/bcts"}, {"player": "tetris/two-tetrad"}),
}
KINDS = ("legal", "illegal", "unreadable")


def bench_text(
    function: Callable[[Any], Any],
    env_id: str = "mergefall/Game2048-v0",
    env_kwargs: Options | None = None,
    *,
    count: int = 200,
    batch: int | None = None,
    judge: Any = None,
    seed: int = 0,
    references: Sequence[Any] | None = None,
    out: FilePath | None = None,
    progress: bool = True,
) -> Table:
    """Ask a function for its move in test puzzles; returns a table of what it and some players earn.

    Args:
        function: takes a prompt and returns an answer, both text. A prompt is the rules, an empty line, and a puzzle's
            prompt.
        env_id, env_kwargs, judge, seed: the puzzles, as in `puzzles`.
        count: number of puzzles.
        batch: `function` takes a list of up to so many prompts and returns a list of answers; default: one prompt.
        references: players to compare with: names, mappings of `player` and options, or players; default: a few of the
            game. What random moves are expected to earn comes first.
        out: JSON-lines file to which each prompt, answer, verdict and reward is appended. The same call on it asks for
            the missing answers only.
        progress: whether to show a progress bar.

    Raises ValueError as `puzzles` does, for an answer that is no text, and for a file of another bench.

    Example:
        >>> table = bench_text(lambda prompt: "up", env_kwargs={"rows": 2, "cols": 2}, count=20, progress=False)
        >>> table.columns["player"][1:3], round(table.columns["mean reward"][1].value, 3)
        (['random (expected)', '2048/greedy'], 0.5)
    """
    integer("count", count, 1)
    kwargs = dict(env_kwargs or {})
    judge = player_of(default_judge(env_id, kwargs) if judge is None else judge, "judge")
    endless = puzzles(env_id, kwargs, judge=judge, split="test", seed=seed)
    tests = list(islice(endless, count))
    lines = [_random(tests)]
    # First, because a wrong name must not be found after a costly model has answered.
    for spec in REFERENCES[game_of(env_id).name] if references is None else references:
        player = player_of(spec, "reference")
        adviser = Adviser(player, env_id, kwargs)
        names = [adviser.choices(puzzle.position)[0].name for puzzle in tests]
        lines.append(_line(title(player.name, player.options), tests, names))
    header = {
        "format": "mergefall bench-text",
        "version": 2,
        "package": mergefall.__version__,
        "function": name_of(function),
        "env_id": env_id,
        "env_kwargs": kwargs,
        "judge": title(judge.name, judge.options),
        "seed": seed,
        "code": code_of(function),
    }
    answers = _answers(function, tests, batch, out, header, progress)
    lines.insert(0, _line(name_of(function), tests, [answers[puzzle.id] for puzzle in tests]))
    env = " ".join([env_id, *(f"{name}={value}" for name, value in kwargs.items())])
    about = f"{count} test puzzles, seed {seed}, judged by {header['judge']}"
    note = "Intervals of 95%: bootstrap, Wilson's for shares. The judge earns 1."
    return Table(env, about, {name: [line[name] for line in lines] for name in lines[0]}, note)


def question(puzzle: Puzzle) -> str:
    """A prompt: the rules, an empty line, and the puzzle's prompt."""
    return f"{rules_text(rules_of(puzzle))}\n\n{puzzle.prompt}\n"


def _answers(
    function: Callable[[Any], Any],
    tests: list[Puzzle],
    batch: int | None,
    out: FilePath | None,
    header: Dict,
    progress: bool,
) -> dict[str, str]:
    """The answers by the puzzles' ids: those of the file `out`, and those that the function gives now."""
    answers: dict[str, str] = {}

    def read(record: Dict) -> None:
        if not all(isinstance(record.get(name), str) for name in ("id", "answer")):
            raise ValueError(f"expected a record with id and answer; found {str(record)[:200]}")
        answers[record["id"]] = record["answer"]

    size = 1 if batch is None else integer("batch", batch, 1)
    file = LineFile(out, "answers", header, read, ["prompt", "answer"]) if out else nullcontext()
    with file, progress_bar("asking", len(tests), enabled=progress) as show:
        show(len(answers), "")
        asked = [puzzle for puzzle in tests if puzzle.id not in answers]
        for first in range(0, len(asked), size):
            part = asked[first : first + size]
            prompts = [question(puzzle) for puzzle in part]
            given = [function(prompts[0])] if batch is None else list(function(prompts))
            if len(given) != len(part):
                raise ValueError(f"{name_of(function)} returned {len(given)} answers to {len(part)} prompts")
            for puzzle, prompt, answer in zip(part, prompts, given, strict=True):
                verdict, earned = judged(puzzle, answer)
                answers[puzzle.id] = answer
                if isinstance(file, LineFile):
                    action = None if verdict.action is None else puzzle.names[verdict.action]
                    record = {"id": puzzle.id, "prompt": prompt, "answer": answer, "verdict": verdict.kind}
                    file.write(record | {"action": action, "reward": earned})
                show(len(answers), "")
    return answers


# -- lines of the table -----------------------------------------------------------------------------------------------


def _line(name: str, tests: Sequence[Puzzle], answers: Sequence[str]) -> dict[str, Cell]:
    verdicts, rewards = zip(*(judged(*pair) for pair in zip(tests, answers, strict=True)), strict=True)
    kinds = Counter(str(verdict.kind) for verdict in verdicts)
    return _cells(name, rewards, rewards.count(1), kinds)


def _random(tests: Sequence[Puzzle]) -> dict[str, Cell]:
    """What uniformly random legal moves are expected to earn."""
    legal = [list(compress(puzzle.rewards, puzzle.mask)) for puzzle in tests]
    best = sum(rewards.count(1) / len(rewards) for rewards in legal)
    return _cells("random (expected)", list(map(fmean, legal)), best, Counter(legal=len(tests)))


def _cells(name: str, rewards: Sequence[float], best: float, kinds: Counter[str]) -> dict[str, Cell]:
    n = len(rewards)
    cells = {"player": name, "mean reward": bootstrap(np.mean, rewards), "best move": wilson(best, n)}
    return cells | {kind: percent(kinds[kind] / n) for kind in KINDS}
