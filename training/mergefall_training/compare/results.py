"""The result of a comparison: plain data from which tables, files and plots are made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from mergefall.games import Game
from mergefall_baselines.player import title

from mergefall_training.compare.suite import Contest, Contestant
from mergefall_training.learn.run import Point
from mergefall_training.play.evaluation import Evaluation, Summary, frame_of
from mergefall_training.play.markup import shown, table
from mergefall_training.play.statistics import Interval, improvement, mean_of_runs

if TYPE_CHECKING:
    import pandas

TILE_COLUMNS = 6


def setting(evaluation: Evaluation) -> str:
    """The environment of an evaluation with its size and rules, in one line."""
    header = evaluation.header
    kwargs = {name: value for name, value in header.env_kwargs.items() if value is not None}
    size = "×".join(str(kwargs.pop(name)) for name in evaluation.game.size if name in kwargs)
    rules = " ".join([size, *(f"{name}={value}" for name, value in kwargs.items())]).strip()
    return f"{header.env_id} ({rules})"


@dataclass(frozen=True)
class Row:
    """One player's line in a table.

    - `ratio`: its mean divided by the mean of the contest's baseline; None without a baseline.
    - `batched`: whether its games were played side by side in one process.
    - For an agent that was trained for the comparison: `group`, the label that all training seeds share,
      `training_seed`, and `curve`, the evaluations of its run.
    """

    contestant: Contestant
    evaluation: Evaluation
    summary: Summary
    batched: bool = False
    ratio: Interval | None = None
    group: str = ""
    training_seed: int = 0
    curve: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class Group:
    """Agents that differ in their training seed only.

    - `rows`: one for each training seed, in order.
    - `mean`: the mean of their means, with Student's interval.
    - `gain`: the mean difference to the baseline group, seed by seed; None without a baseline group of equal size.
    - `better`: the probability that a run is better than one of the baseline group; None without a baseline group.
    """

    label: str
    rows: list[Row]
    mean: Interval
    gain: Interval | None
    better: Interval | None


@dataclass(frozen=True, repr=False)
class ContestResult:
    """All players of one contest, the highest mean first."""

    contest: Contest
    rows: list[Row]

    @property
    def name(self) -> str:
        """The contest's name."""
        return self.contest.name

    @property
    def game(self) -> Game:
        """The game that was played."""
        return self.rows[0].evaluation.game

    @property
    def headline(self) -> str:
        """The figure that players are compared by."""
        return self.rows[0].summary.headline

    @property
    def conditions(self) -> str:
        """Everything that a figure depends on, in one line: environment, size, rules, cap, adversary, N and seeds."""
        caps = sorted({row.evaluation.header.max_episode_steps or 0 for row in self.rows})
        cap = " or ".join(f"cap {cap} {self.game.turn}s" if cap else "no cap" for cap in caps)
        counts = sorted({row.summary.episodes for row in self.rows})
        n = f"N={counts[0]}" if len(counts) == 1 else f"N={counts[0]}-{counts[-1]}"
        last = max(row.summary.last_seed for row in self.rows)
        return f"{setting(self.rows[0].evaluation)}, {cap}{self._adversary}, {n}, seeds {self.contest.seed}-{last}"

    @property
    def _adversary(self) -> str:
        given = self.contest.adversary
        if given is None:
            return ""
        options = dict(given["player"]) if isinstance(given["player"], Mapping) else {"name": given["player"]}
        return f", adversary {title(str(options.pop('name')), options)} at rate {given['rate']}"

    @property
    def groups(self) -> list[Group]:
        """The agents that were trained for the comparison, the group with the highest mean first."""
        found: dict[str, list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: row.training_seed):
            if row.group:
                found.setdefault(row.group, []).append(row)
        means = {label: np.array([row.summary.mean.value for row in rows]) for label, rows in found.items()}
        base = means.get(self.contest.baseline or "")
        groups = []
        for label, rows in found.items():
            gain = better = None
            if base is not None and label != self.contest.baseline:
                gain = mean_of_runs(means[label] - base) if len(base) == len(rows) else None
                better = improvement(means[label], base)
            groups.append(Group(label, rows, mean_of_runs(means[label]), gain, better))
        return sorted(groups, key=lambda group: -group.mean.value)

    @property
    def all_tiles(self) -> list[int]:
        """Tiles that any player reached, smallest first; empty for a game without tiles."""
        return sorted({tile for row in self.rows for tile in row.summary.tiles})

    @property
    def telling_tiles(self) -> list[int]:
        """The tiles worth a column: the largest ones that some games reached and others did not."""
        missed = [t for t in self.all_tiles if any(row.evaluation.tile_rate(t).value < 1 for row in self.rows)]
        return missed[-TILE_COLUMNS:]

    def records(self) -> list[dict[str, Any]]:
        """One flat mapping for each player, as in `results.csv`; an interval becomes three entries."""
        return [self._record(row) for row in self.rows]

    def _record(self, row: Row) -> dict[str, Any]:
        header = row.evaluation.header
        cells: dict[str, Any] = {
            "game": self.name,
            "label": row.contestant.label,
            "player": header.player,
            "options": json.dumps(header.options),
            "env": header.env_id,
            "env_kwargs": json.dumps(header.env_kwargs),
            "max_episode_steps": header.max_episode_steps,
            "adversary": json.dumps(self.contest.adversary),
        }
        figures = {name: value for name, value in vars(row.summary).items() if name != "tiles"}
        figures |= {f"tile_{tile}": row.evaluation.tile_rate(tile) for tile in self.all_tiles}
        figures |= {} if row.ratio is None else {"ratio": row.ratio}
        for name, value in figures.items():
            if isinstance(value, Interval):
                cells |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
            else:
                cells[name] = value
        return cells

    def to_frame(self) -> pandas.DataFrame:
        """The players as a pandas DataFrame, one row for each (`records`). Needs pandas."""
        return frame_of(self.records())

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.rows)} players, {self.conditions}>"

    def _repr_html_(self) -> str:
        """A table of the players, which a notebook shows for a cell."""
        columns = {
            "player": [row.contestant.label for row in self.rows],
            "N": [f"{row.summary.episodes:,}" for row in self.rows],
            f"mean {self.headline}": [shown(row.summary.mean) for row in self.rows],
            f"ms/{self.game.turn}": [f"{row.summary.ms_per_move:.2g}" for row in self.rows],
        }
        return table(f"{self.name}: {self.conditions}", columns)


@dataclass(frozen=True)
class Line:
    """One line of a series: a player, or agents that differ in their training seed only.

    - `episodes`: the number of games of each at each rate.
    - `runs`: the number of agents; 1 for a player.
    - `means`: the mean at each rate. Its interval is that over the games, or over several training seeds.
    """

    label: str
    episodes: int
    runs: int
    means: list[Interval]


@dataclass(frozen=True)
class Series:
    """The results of contests that differ in the adversary's rate only, in the suite's order."""

    results: list[ContestResult]

    @property
    def name(self) -> str:
        """The name that the contests share."""
        return self.results[0].contest.series

    @property
    def game(self) -> Game:
        """The game that was played."""
        return self.results[0].game

    @property
    def headline(self) -> str:
        """The figure that players are compared by."""
        return self.results[0].headline

    @property
    def rates(self) -> list[float]:
        """The adversary's rate in each contest."""
        return [result.contest.adversary["rate"] for result in self.results if result.contest.adversary]

    @property
    def lines(self) -> list[Line]:
        """The lines of its table and its plot, the highest mean at the first rate first."""
        groups = [{group.label: group for group in result.groups} for result in self.results]
        rows = [{row.contestant.label: row for row in result.rows} for result in self.results]
        lines = []
        for label, row in rows[0].items():
            alike = len(groups[0][row.group].rows) if row.group else 1
            if alike == 1:
                lines.append(Line(label, row.summary.episodes, 1, [found[label].summary.mean for found in rows]))
            elif row.training_seed == 0:
                means = [found[row.group].mean for found in groups]
                lines.append(Line(row.group, row.summary.episodes, alike, means))
        return sorted(lines, key=lambda line: -line.means[0].value)

    @property
    def conditions(self) -> str:
        """The conditions of all contests in one line."""
        contest = self.results[0].contest
        all_rates = replace(contest, adversary={**(contest.adversary or {}), "rate": self.rates})
        return ContestResult(all_rates, [row for result in self.results for row in result.rows]).conditions


def series_of(results: list[ContestResult]) -> list[Series]:
    """The series among the results of a suite."""
    found = groupby((result for result in results if result.contest.series), key=lambda result: result.contest.series)
    return [Series(list(contests)) for _, contests in found]
