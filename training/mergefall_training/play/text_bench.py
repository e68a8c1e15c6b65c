"""How well a program plays puzzles in text: its rewards with intervals, beside players on the same puzzles."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import mergefall
import numpy as np
from mergefall.checks import integer, number
from mergefall.games import game_of
from mergefall.text import rules_text
from mergefall.typing import Options
from mergefall_baselines import Player
from mergefall_baselines.player import title
from mergefall_baselines.registry import player_of
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mergefall_training.files import differences, on_line, open_alone, read_lines
from mergefall_training.play.advice import Adviser
from mergefall_training.play.programs import ask_all, ask_each, words_of
from mergefall_training.play.puzzles import Puzzle, default_judge, puzzles, rules_of, verdict_of, worth
from mergefall_training.play.statistics import Interval, bootstrap, wilson
from mergefall_training.progress import progress_bar

FORMAT, VERSION = "mergefall bench-text", 1
REFERENCES: dict[str, tuple[dict[str, Any], ...]] = {
    "2048": ({"name": "2048/greedy"}, {"name": "2048/expectimax", "heuristic": "nneonneo", "depth": 2}),
    "tetris": ({"name": "tetris/dellacherie"}, {"name": "tetris/bcts"}, {"name": "tetris/two-tetrad"}),
}
MOST_SECONDS = 1_000_000  # of a time limit
KINDS = ("legal", "illegal", "unreadable")


@dataclass(frozen=True)
class Row:
    """What one player, or a program, did on some puzzles.

    - `rewards`: of each puzzle. `best`: the share of puzzles with the best move; for `random`, what is expected.
    - `kinds`: the share of each kind of verdict.
    """

    name: str
    rewards: list[float]
    best: Interval
    kinds: dict[str, float]

    @property
    def mean(self) -> Interval:
        """The mean reward with its 95 % bootstrap interval."""
        return bootstrap(np.mean, self.rewards)


@dataclass(frozen=True)
class Bench:
    """Test puzzles of one environment, the same for whoever is asked.

    - `count`: number of puzzles, the first of `puzzles(…, split="test")`.
    - `judge`, `gap`, `afterstates`, `seed`: see `puzzles`.

    Example:
        >>> bench = Bench("mergefall/Game2048-v0", {"rows": 2, "cols": 2}, count=20)
        >>> [(row.name, round(row.mean.value, 3)) for row in bench.references(["2048/optimal"])]
        [('random (expected)', 0.5), ('2048/optimal', 1.0)]
    """

    env_id: str
    env_kwargs: Options
    count: int = 200
    judge: Any = None
    gap: tuple[float, float] = (0.0, 1.0)
    afterstates: bool = False
    seed: int = 0

    @cached_property
    def puzzles(self) -> list[Puzzle]:
        """The puzzles; raises ValueError as `puzzles` does, and for a count below 1."""
        integer("the number of puzzles", self.count, 1)
        endless = puzzles(
            self.env_id,
            self.env_kwargs,
            judge=self.judge,
            split="test",
            gap=self.gap,
            afterstates=self.afterstates,
            seed=self.seed,
        )
        return list(islice(endless, self.count))

    @property
    def judge_title(self) -> str:
        """The judge's name and options."""
        return _title(default_judge(self.env_id, self.env_kwargs) if self.judge is None else self.judge)

    def ask(self, program: str, *, stream: bool = False, seconds: float = 60, out: Path | None = None) -> Row:
        """Ask a program for its move in each puzzle.

        The prompt is the rules (`mergefall.text.rules_text`), an empty line, and the puzzle's prompt.

        Args:
            program: a command line; see `mergefall_training.play.programs`.
            stream: whether one process answers all questions.
            seconds: time limit of an answer.
            out: file to which each answer is appended; answers that it holds are not asked for again.

        Raises ValueError if the program fails, and for a file of another bench.
        """
        number("the time limit in seconds", seconds, most=MOST_SECONDS, above=0)
        words_of(program)
        asked = {puzzle.id: puzzle for puzzle in self.puzzles}
        with ExitStack() as stack:
            file, answers = None, dict[str, str]()
            if out is not None:
                file, answers = _resumed(stack, out, self._header(program, stream), asked)
            prompts = {name: question(puzzle) for name, puzzle in asked.items() if name not in answers}
            show = stack.enter_context(progress_bar("asking", len(asked), completed=len(answers)))
            try:
                for name, answer in (ask_all if stream else ask_each)(program, prompts, seconds):
                    answers[name] = answer
                    if file is not None:
                        _append(file, _record(asked[name], answer))
                    show(len(answers), "")
            except (ValueError, KeyboardInterrupt) as error:
                if out is not None:
                    error.add_note(f"{len(answers)} answers are in {out}; the same command asks for the others")
                raise
        return _row_of(program, [(puzzle, answers[name]) for name, puzzle in asked.items()])

    def references(self, players: Sequence[Any] | None = None) -> list[Row]:
        """What random moves are expected to earn, and what players earn.

        `players`: names, mappings of `name` and options, or players; default: `REFERENCES` of the game.
        """
        specs = REFERENCES[game_of(self.env_id).name] if players is None else players
        found = self.puzzles
        rows = [_random(found)]
        for spec in specs:
            adviser = Adviser(player_of(spec), self.env_id, self.env_kwargs)
            answers = [(puzzle, adviser.choices(puzzle.position)[0].name) for puzzle in found]
            rows.append(_row_of(_title(spec), answers))
        return rows

    def _header(self, program: str, stream: bool) -> dict[str, Any]:
        judge = self.judge_title
        header = {"format": FORMAT, "version": VERSION, "package": mergefall.__version__, "program": program}
        header |= {"stream": stream, "env_id": self.env_id, "env_kwargs": dict(self.env_kwargs), "judge": judge}
        header |= {"gap": list(self.gap), "afterstates": self.afterstates, "seed": self.seed}
        return json.loads(json.dumps(header))


def question(puzzle: Puzzle) -> str:
    """All that a program reads: the rules, an empty line, and the puzzle's prompt."""
    return f"{rules_text(rules_of(puzzle))}\n\n{puzzle.prompt}\n"


def print_rows(bench: Bench, rows: Sequence[Row], screen: Console) -> None:
    """Print a table of rows, with what it is about above and how intervals are made below."""
    env = " ".join([bench.env_id, *(f"{name}={value}" for name, value in bench.env_kwargs.items())])
    gap = "" if tuple(bench.gap) == (0, 1) else f", gap {bench.gap[0]:g} to {bench.gap[1]:g}"
    screen.print(
        Text(f"{env}: {bench.count} test puzzles{gap}, seed {bench.seed}, judged by {bench.judge_title}"),
        soft_wrap=True,
    )
    table = Table(padding=(0, 1, 0, 0), box=None)
    table.add_column("player", overflow="fold", min_width=16)
    for name in ("mean reward", "best move", *KINDS):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        estimates = f"{row.mean.value:.3f}\n{_ends(row.mean, '.3f')}", f"{row.best.value:.0%}\n{_ends(row.best, '.0%')}"
        table.add_row(Text(row.name), *estimates, *(f"{row.kinds[kind]:.0%}" for kind in KINDS))
    screen.print(table)
    screen.print(
        "[dim]Below each estimate its 95% interval: bootstrap, Wilson's for shares. The judge earns 1.[/dim]",
        highlight=False,
        soft_wrap=True,
    )


def _ends(interval: Interval, form: str) -> str:
    return f"{interval.low:{form}}-{interval.high:{form}}"


def _title(spec: Any) -> str:
    if isinstance(spec, str):
        return spec
    if isinstance(spec, Player):
        return title(spec.name, spec.options)
    return title(spec["name"], {name: value for name, value in spec.items() if name != "name"})


# -- rows -------------------------------------------------------------------------------------------------------------


def _row_of(name: str, answers: Sequence[tuple[Puzzle, str]]) -> Row:
    verdicts = [(puzzle, verdict_of(puzzle, answer)) for puzzle, answer in answers]
    rewards, kinds = [worth(*pair) for pair in verdicts], [str(verdict.kind) for _, verdict in verdicts]
    shares = {kind: kinds.count(kind) / len(kinds) for kind in KINDS}
    return Row(name, rewards, wilson(sum(reward == 1 for reward in rewards), len(rewards)), shares)


def _random(found: Sequence[Puzzle]) -> Row:
    """What uniformly random legal moves are expected to earn."""
    legal = [[r for r, legal in zip(puzzle.rewards, puzzle.mask, strict=True) if legal] for puzzle in found]
    best = sum(rewards.count(1.0) / len(rewards) for rewards in legal)
    shares = {"legal": 1.0, "illegal": 0.0, "unreadable": 0.0}
    means = [sum(rewards) / len(rewards) for rewards in legal]
    return Row("random (expected)", means, wilson(best, len(legal)), shares)


# -- files ------------------------------------------------------------------------------------------------------------


def _record(puzzle: Puzzle, answer: str) -> dict[str, Any]:
    verdict = verdict_of(puzzle, answer)
    action = None if verdict.action is None else puzzle.names[verdict.action]
    record: dict[str, Any] = {"id": puzzle.id, "prompt": question(puzzle), "answer": answer}
    return record | {"verdict": verdict.kind, "action": action, "reward": worth(puzzle, verdict)}


def _resumed(
    stack: ExitStack, path: Path, header: dict[str, Any], asked: Mapping[str, Puzzle]
) -> tuple[BinaryIO, dict[str, str]]:
    """The file, open for appending, and the answers that it holds to the puzzles."""
    file = stack.enter_context(open_alone(path, "answers"))
    records, whole = read_lines(path, "answers", torn_header=json.dumps(header).encode())
    if records and (differing := differences(records[0], header)):
        raise ValueError(f"{path} holds answers of another bench: {'; '.join(differing)}. Choose another file.")
    answers = dict[str, str]()
    for line, record in enumerate(records[1:], start=2):
        with on_line(path, line):
            name, answer = record.get("id"), record.get("answer")
            if not isinstance(name, str) or not isinstance(answer, str) or name in answers:
                raise ValueError(f"expected an answer to another puzzle, with id and answer; found {str(record)[:200]}")
            if name in asked and record.get("prompt") != question(asked[name]):
                raise ValueError(f"the puzzle {name} has another prompt here; expected that of the same versions")
            answers[name] = answer
    file.truncate(whole)
    if not records:
        _append(file, header)
    return file, {name: answer for name, answer in answers.items() if name in asked}


def _append(file: BinaryIO, record: dict[str, Any]) -> None:
    file.write(json.dumps(record).encode() + b"\n")
    file.flush()
