"""The result of a comparison: plain data, from which tables, files and plots are made."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from mergefall.typing import Dict
from mergefall_baselines.player import title_of

from mergefall_training.learn.run import Point
from mergefall_training.play.evaluation import Evaluation, Summary, Versus
from mergefall_training.play.statistics import Estimate, improvement, mean_of_runs, short
from mergefall_training.play.tables import Cell, Table, to_html

TILE_COLUMNS = 6


def setting(evaluation: Evaluation) -> str:
    """The environment of an evaluation with its size and rules, in one line."""
    header = evaluation.header
    kwargs = {name: value for name, value in header.env_kwargs.items() if value is not None}
    against = f", opponent {title_of(kwargs.pop('opponent'))}" if "opponent" in kwargs else ""
    size = "×".join(str(kwargs.pop(name)) for name in evaluation.game.size if name in kwargs)
    rules = " ".join([size, *(f"{name}={value}" for name, value in kwargs.items())]).strip()
    return f"{header.env_id} ({rules}){against}"


@dataclass(frozen=True)
class Row:
    """The games of one player.

    - `batched`: whether they were played side by side in one process.
    - For a trained agent: `group`, the label that all training seeds share, `training_seed`, and `curve`, the
      evaluations of its run.
    """

    label: str
    evaluation: Evaluation
    batched: bool = False
    group: str = ""
    training_seed: int = 0
    curve: list[Point] = field(default_factory=list)

    @cached_property
    def summary(self) -> Summary:
        """The figures that tables and plots show."""
        return self.evaluation.summary()


@dataclass(frozen=True)
class Line:
    """A player, or all agents that differ in their training seed only: one row for each, in order."""

    label: str
    rows: list[Row]

    @property
    def mean(self) -> Estimate:
        """The mean over the games of a player; over several agents `mean_of_runs`."""
        return self.rows[0].summary.mean if len(self.rows) == 1 else mean_of_runs(self.means)

    @property
    def means(self) -> np.ndarray:
        """The mean of each row."""
        return np.array([row.summary.mean.value for row in self.rows])

    def beside(self, other: "Line") -> Versus:
        """Agents that were trained alike beside others, run by run."""
        gain = mean_of_runs(self.means - other.means) if len(self.rows) == len(other.rows) else None
        return Versus(len(self.rows), gain, improvement(self.means, other.means), None)


def columns_beside(other: str | None, found: Sequence[Versus | None]) -> dict[str, Sequence[Cell]]:
    """The columns of players beside another one, of which None is the other one itself."""
    columns = {
        f"more than {other}": [one and one.difference for one in found],
        f"ratio to {other}": [one and one.ratio for one in found],
        "chance of more": [one and one.higher for one in found],
    }
    return {name: cells for name, cells in columns.items() if any(cells)}


@dataclass(repr=False)
class ContestResult:
    """All players of one contest, the highest mean first.

    - `baseline`: label of the player, or of the agents, that the others are compared with.
    - `adversary`: who drew against the players, as in `evaluate`; default: as their games say, which at rate 0 is None.
    - `series`: name that contests share which differ in the adversary's rate only; otherwise "".
    """

    name: str
    rows: list[Row]
    baseline: str | None = None
    adversary: Dict | None = None
    series: str = ""

    def __post_init__(self) -> None:
        self.adversary = self.adversary or self.rows[0].evaluation.header.adversary
        self.rows = sorted(self.rows, key=lambda row: -row.summary.mean.value)

    @property
    def game(self) -> Any:
        """The game that was played."""
        return self.rows[0].evaluation.game

    @property
    def headline(self) -> str:
        """The figure that players are compared by."""
        return self.rows[0].evaluation.headline

    @property
    def conditions(self) -> str:
        """Everything that a figure depends on, in one line: environment, size, rules, cap, adversary, N and seeds."""
        summaries = [row.summary for row in self.rows]
        match = self.rows[0].evaluation.header
        caps = (match.max_episode_steps, self.game.action), (match.max_pieces, "piece")
        cap = ", ".join(f"cap {most} {what}s" for most, what in caps if most) or "no cap"
        first, last = min(s.first_seed for s in summaries), max(s.last_seed for s in summaries)
        against = ""
        if self.adversary is not None:
            against = f", adversary {title_of(self.adversary['player'])} at rate {self.adversary['rate']}"
        return f"{setting(self.rows[0].evaluation)}, {cap}{against}, {self.count}, seeds {first}-{last}"

    @property
    def count(self) -> str:
        """How many games each player played."""
        counts = sorted({row.summary.episodes for row in self.rows})
        return f"N={counts[0]}" if len(counts) == 1 else f"N={counts[0]}-{counts[-1]}"

    def games_of(self, row: Row) -> int:
        """The number of games that a row's figure is of."""
        return row.summary.episodes

    def figure(self, line: Line) -> tuple[str, Estimate, str | None]:
        """(name, estimate, interval) of the figure that a line is judged by; a bootstrap has no name."""
        one = line.rows[0].evaluation
        interval = "exact Poisson" if one.censored else "Wilson" if one.of_shares else None
        if len(line.rows) > 1:
            interval = f"Student, {len(line.rows)} runs"
        return "share of games won" if self.headline == "wins" else self.headline, line.mean, interval

    @property
    def lines(self) -> list[Line]:
        """The rows by player, and by agents that were trained alike; the highest mean first."""
        rows: dict[tuple[str, str], list[Row]] = {}
        for row in sorted(self.rows, key=lambda row: row.training_seed):
            rows.setdefault((row.group, row.group or row.label), []).append(row)
        return sorted((Line(label, alike) for (_, label), alike in rows.items()), key=lambda line: -line.mean.value)

    @property
    def trained(self) -> list[Line]:
        """The agents that were trained for the comparison."""
        return [line for line in self.lines if line.rows[0].group]

    @cached_property
    def beside(self) -> dict[str, Versus]:
        """By label: a player beside the baseline on the seeds of both; agents trained alike beside such, run by run."""
        base = next((row.evaluation for row in self.rows if row.label == self.baseline), None)
        if base is not None:
            others = [row for row in self.rows if row.label != self.baseline and row.evaluation.seeds & base.seeds]
            return {row.label: row.evaluation.versus(base) for row in others}
        agents = next((line for line in self.trained if line.label == self.baseline), None)
        return {line.label: line.beside(agents) for line in self.trained if agents and line.label != self.baseline}

    @property
    def all_tiles(self) -> list[int]:
        """Tiles that any player reached, smallest first; empty for a game without tiles."""
        return sorted({tile for row in self.rows for tile in row.summary.tiles})

    @property
    def telling_tiles(self) -> list[int]:
        """The tiles worth a column: the largest ones that some games reached and others did not."""
        missed = [t for t in self.all_tiles if any(row.evaluation.tile_rate(t).value < 1 for row in self.rows)]
        return missed[-TILE_COLUMNS:]

    def table(self) -> Table:
        """One line for each player, and where the intervals come from."""
        rows, tiles, turns = self.rows, self.telling_tiles, f"{self.game.turn}s"
        of = [row.summary for row in rows]
        columns = {
            "player": [row.label for row in rows],
            "N": [str(one.episodes) for one in of],
            f"mean {self.headline}": [one.mean for one in of],
            **{name: [one.outcomes[name] for one in of] for name in of[0].outcomes},
            "median": [one.median for one in of],
            "IQM": [one.iqm for one in of],
            **{f"{tile}+": [row.evaluation.tile_rate(tile) for row in rows] for tile in tiles},
            **{name: [one.rates[name] for one in of] for name in of[0].rates},
            turns: [short(one.moves_per_game) for one in of],
            f"ms/{self.game.action}": [short(one.ms_per_move) for one in of],
            "capped": [str(one.capped or "") for one in of],
            "stuck": [str(one.stuck or "") for one in of],
        }
        beside = columns_beside(self.baseline, [self.beside.get(row.label) for row in rows])
        columns = {name: cells for name, cells in columns.items() if any(cells)} | beside
        spare = ("IQM", "median", *(f"{tile}+" for tile in tiles[:-1]), turns, *beside)
        return Table(self.name, self.conditions, columns, self._note, spare)

    @property
    def _note(self) -> str:
        action = self.game.action
        note = "Below each estimate its 95% interval: bootstrap"
        if self.all_tiles:
            note += ", Wilson's for shares of games that reached a tile"
        if self.game.matches:
            note += ", Wilson's for shares of matches; a draw is half a win"
        if self.game.by_keys:
            note += (
                "; attack/piece: rows of attack, over all games; pieces/s: of the game's time, in which 60 keys are 1 s"
            )
        note += _censoring(self.rows, self.headline)
        if any(row.summary.stuck for row in self.rows):
            note += "; stuck: games that ended because the player chose illegal actions, `illegal_limit` in a row"
        if self.rows[0].evaluation.header.adversary is not None:
            note += f"; ms/{action} include the adversary's time"
        if batched := list(dict.fromkeys(row.group or row.label for row in self.rows if row.batched)):
            note += f"; ms/{action} of many games side by side: {', '.join(batched)}"
        return f"{note}."

    def more_tables(self) -> list[Table]:
        """One with a line for all agents that were trained alike; none if no two were."""
        lines = self.trained
        if not any(len(line.rows) > 1 for line in lines):
            return []
        beside = columns_beside(self.baseline, [self.beside.get(line.label) for line in lines])
        columns = {
            "trained alike": [line.label for line in lines],
            "runs": [str(len(line.rows)) for line in lines],
            f"mean {self.headline}": [mean_of_runs(line.means) for line in lines],
            "of each": [" ".join(map(short, line.means)) for line in lines],
            **beside,
        }
        chances = "; chances of more with Newcombe's" * bool(beside)
        return [Table("", "", columns, f"Over training seeds, with Student's 95% intervals{chances}.")]

    def content(self) -> Dict:
        """All figures, as `results.json` has them for each game."""
        header, players, trained = self.rows[0].evaluation.header, [], []
        beside = {label: {"beside": asdict(versus)} for label, versus in self.beside.items()}
        for row in self.rows:
            about = row.evaluation.header
            player = {"label": row.label, "player": about.player, "options": about.options, "batched": row.batched}
            tiles = {str(tile): asdict(row.evaluation.tile_rate(tile)) for tile in self.all_tiles}
            players.append(player | asdict(row.summary) | {"tiles": tiles} | beside.get(row.label, {}))
        for line in self.trained:
            runs, mean = [row.evaluation.header.player for row in line.rows], asdict(mean_of_runs(line.means))
            trained.append({"label": line.label, "runs": runs, "mean": mean} | beside.get(line.label, {}))
        about = {"name": self.name, "env": header.env_id, "env_kwargs": header.env_kwargs}
        about |= {"max_episode_steps": header.max_episode_steps, "adversary": self.adversary}
        return about | {"baseline": self.baseline, "players": players, "trained": trained}

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.rows)} players, {self.conditions}>"

    def _repr_html_(self) -> str:
        return to_html(self.table())


def _censoring(rows: Iterable[Row], headline: str) -> str:
    return any(row.evaluation.censored for row in rows) * (
        f"; where games were capped, the mean is all {headline} / deaths (maximum likelihood for exponential games)"
        " with the exact Poisson interval, and a ratio has the exact binomial one"
    )


def series_table(results: Sequence[ContestResult]) -> Table:
    """The table of contests that differ in the adversary's rate only: a line for each `Line`, a column for each."""
    first, lines = results[0], results[0].lines
    rates = [result.adversary["rate"] for result in results if result.adversary]
    rows = [row for result in results for row in result.rows]
    together = ContestResult(first.series, rows, adversary={**(first.adversary or {}), "rate": rates})
    counts = [(len(line.rows), line.rows[0].summary.episodes) for line in lines]
    means = [{line.label: line.mean for line in result.lines} for result in results]
    columns = {
        "player": [line.label for line in lines],
        "N": [str(episodes) if runs == 1 else f"{runs}×{episodes}" for runs, episodes in counts],
        **{f"rate {rate:g}": [of[line.label] for line in lines] for rate, of in zip(rates, means, strict=True)},
    }
    note = f"Mean {first.headline} at each rate of the adversary, below it its 95% interval: bootstrap"
    if any(runs > 1 for runs, _ in counts):
        note += ", Student's over training seeds where there are several"
    note += _censoring(rows, first.headline)
    return Table(together.name, together.conditions, columns, f"{note}.")
