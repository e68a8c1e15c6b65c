"""The result of a league: every player plays matches against every other one, and the matches make ratings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np
from mergefall.typing import Array, Dict

from mergefall_training.compare.results import ContestResult, Line, Row
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.statistics import Estimate, elo_ratings, percent, short, wilson
from mergefall_training.play.tables import Table


@dataclass(repr=False)
class LeagueResult(ContestResult):
    """All players of a league, the highest rating first.

    - `rows`: of each player the matches in which it was the agent, and the others the environment's opponent.
    - `matches`: these by the labels of the agent and the opponent.
    - `anchor`: label of the player whose rating is 0. Default: none, the mean rating is 0.
    """

    matches: dict[tuple[str, str], Evaluation] = field(default_factory=dict)
    anchor: str | None = None

    @classmethod
    def of(cls, name: str, matches: Mapping[tuple[str, str], Evaluation], anchor: str | None = None) -> Self:
        """The league of some matches, by the labels of agent and opponent."""
        rows = []
        for label in dict.fromkeys(one for one, _ in matches):
            own = [evaluation for (one, _), evaluation in matches.items() if one == label]
            kwargs = {name: value for name, value in own[0].header.env_kwargs.items() if name != "opponent"}
            episodes = [episode for evaluation in own for episode in evaluation.episodes]
            rows.append(Row(label, Evaluation(replace(own[0].header, env_kwargs=kwargs), episodes)))
        return cls(name, rows, matches=dict(matches), anchor=anchor)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rows = sorted(self.rows, key=lambda row: -self.ratings[row.label].value)

    @cached_property
    def ratings(self) -> dict[str, Estimate]:
        """By label: the rating in Elo points (`elo_ratings`)."""
        labels = [row.label for row in self.rows]
        points = [[self.results(one, other).sum() for other in labels] for one in labels]
        anchor = None if self.anchor is None else labels.index(self.anchor)
        return dict(zip(labels, elo_ratings(points, anchor), strict=True))

    def games_of(self, row: Row) -> int:
        return len(self.results(row.label))

    def figure(self, line: Line) -> tuple[str, Estimate, str | None]:
        return "Elo", self.ratings[line.label], "Bayesian bootstrap"

    def results(self, player: str, opponent: str | None = None) -> Array:
        """A player's results in its matches against another one, or against all: 1 for a win, ½ for a draw."""
        own = [e.results for (one, other), e in self.matches.items() if one == player and opponent in (None, other)]
        away = [
            1 - e.results for (one, other), e in self.matches.items() if other == player and opponent in (None, one)
        ]
        return np.concatenate([*own, *away, np.empty(0)])

    @property
    def count(self) -> str:
        pairs = combinations([row.label for row in self.rows], 2)
        counts = sorted({len(self.results(*pair)) for pair in pairs})
        return f"N={'-'.join(map(str, dict.fromkeys([counts[0], counts[-1]])))} for each pair, from either side"

    def table(self) -> Table:
        """One line for each player, and where the intervals come from."""
        results = {row.label: self.results(row.label) for row in self.rows}
        columns = {
            "player": list(results),
            "N": [str(len(won)) for won in results.values()],
            "Elo": [self.ratings[label] for label in results],
        }
        for name, result in (("wins", 1), ("draws", 0.5), ("losses", 0)):
            columns[name] = [wilson(int((won == result).sum()), len(won)) for won in results.values()]
        columns |= {name: [row.summary.rates[name] for row in self.rows] for name in self.rows[0].summary.rates}
        columns["ms/key"] = [short(row.summary.ms_per_move) for row in self.rows]
        zero = "the mean rating is 0" if self.anchor is None else f"{self.anchor} is rated 0"
        note = (
            f"Elo: the ratings that make the results most likely (Bradley-Terry), {zero}; a draw, also by the cap, is"
            " half a win, and each player gets half a win and half a loss more. Below each estimate its 95% interval:"
            " Bayesian bootstrap for ratings, Wilson's for shares of matches, else bootstrap. attack/piece: rows of"
            " attack; pieces/s: 60 keys are 1 s; ms/key: of many matches side by side; all three as agent."
        )
        return Table(self.name, self.conditions, columns, note, ("pieces/s", "draws"))

    def more_tables(self) -> list[Table]:
        """What each player made of its matches against each other one: the mean result."""
        labels = [row.label for row in self.rows]
        columns = {"of its matches against": labels}
        for other in labels:
            won = [self.results(one, other) for one in labels]
            columns[other] = [percent(each.mean()) if len(each) else "" for each in won]
        return [Table("", "", columns, "Won by the player of the line; a draw is half a win.")]

    def content(self) -> Dict:
        """All figures, as `results.json` has them for each game."""
        content = super().content()
        for player in content["players"]:
            player["rating"] = asdict(self.ratings[player["label"]])
        pairs = [
            {"agent": one, "opponent": other} | {n: asdict(e) for n, e in evaluation.outcomes().items()}
            for (one, other), evaluation in self.matches.items()
        ]
        return content | {"anchor": self.anchor, "matches": pairs}
