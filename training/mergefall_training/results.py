"""What a comparison found: plain data, which tables, files and pictures are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mergefall_training.evaluation import Evaluation, Summary
from mergefall_training.learning.runs import Point
from mergefall_training.records import Episode
from mergefall_training.statistics import Interval, mean_of_runs
from mergefall_training.suites import Entry, Game

TILE_COLUMNS = 6


@dataclass(frozen=True)
class Row:
    """One player's line in the comparison of a game; ``ratio`` is its mean over the mean of the game's baseline.

    An agent that was trained for the comparison has the learning ``curve`` of its run; ``group`` is the label that it
    shares with those of other training seeds, and ``training_seed`` its own. ``batched`` is the player's: its games
    were played side by side.
    """

    entry: Entry
    evaluation: Evaluation
    summary: Summary
    batched: bool = False
    ratio: Interval | None = None
    group: str = ""
    training_seed: int = 0
    curve: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class Group:
    """Agents trained alike but for the seed: their rows by training seed, and the mean of the means of these.

    ``gain`` is what they have more than those of the game's baseline, seed by seed, where that is a group of as many.
    """

    label: str
    rows: list[Row]
    mean: Interval
    gain: Interval | None


@dataclass(frozen=True)
class GameResult:
    """All players of one game, the highest mean first."""

    game: Game
    rows: list[Row]

    @property
    def kind(self) -> type[Episode]:
        """The type of the game's episodes."""
        return self.rows[0].evaluation.kind

    @property
    def conditions(self) -> str:
        """What every figure must carry: size, environment, rules, cap and seeds (each player's first N of them)."""
        header = self.rows[0].evaluation.header
        kwargs = {name: value for name, value in header.env_kwargs.items() if value is not None}
        size = "×".join(str(kwargs.pop(name)) for name in self.kind.size if name in kwargs)
        rules = " ".join([size, *(f"{name}={value}" for name, value in kwargs.items())]).strip()
        cap = f"cap {header.max_episode_steps} {self.kind.turn}s" if header.max_episode_steps else "no cap"
        counts = sorted({row.summary.episodes for row in self.rows})
        n = f"N={counts[0]}" if len(counts) == 1 else f"N={counts[0]}-{counts[-1]}"
        last = max(row.summary.last_seed for row in self.rows)
        return f"{header.env_id} ({rules}), {cap}, {n}, seeds {self.game.seed}-{last}"

    @property
    def groups(self) -> list[Group]:
        """The agents that were trained for the comparison, group by group, the highest mean first."""
        found: dict[str, list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: row.training_seed):
            if row.group:
                found.setdefault(row.group, []).append(row)
        means = {label: np.array([row.summary.mean.value for row in rows]) for label, rows in found.items()}
        base = means.get(self.game.baseline or "")
        groups = []
        for label, rows in found.items():
            paired = base is not None and label != self.game.baseline and len(base) == len(rows)
            gain = mean_of_runs(means[label] - base) if paired else None
            groups.append(Group(label, rows, mean_of_runs(means[label]), gain))
        return sorted(groups, key=lambda group: -group.mean.value)

    @property
    def all_tiles(self) -> list[int]:
        """Tiles that any player reached, smallest first; empty where the game has none."""
        return sorted({tile for row in self.rows for tile in row.summary.tiles})

    @property
    def telling_tiles(self) -> list[int]:
        """The tiles worth a column: the largest ones that some games reached and some did not."""
        missed = [t for t in self.all_tiles if any(row.evaluation.tile_rate(t).value < 1 for row in self.rows)]
        return missed[-TILE_COLUMNS:]
