"""Random-restart hill climbing over named weights, after the two-tetrad document.

A climb changes one weight at a time, first up, then down, and ends after `passes` over all weights, or after a pass
that kept nothing. Changes are relative for large weights, yet able to leave 0 and to change a sign.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

Weights = dict[str, float]
MOST_GAMES = 250_000


@dataclass(frozen=True)
class Climb:
    """How to climb, and how many games to play.

    Args:
        step: Size of a change, as a share of the weight, or of `unit` if that is larger.
        unit: Weights smaller than this are changed as if they had this size.
        passes: Maximum number of passes over the weights in one climb.
        games: Games of a trial.
        slack: A change is kept if it improves the mean by more than this, in per cent.
        restarts: Climbs from random weights after the first one.
        spread: Standard deviation of the random weights, as a share of the given ones, or of `unit` if that is larger.
        trials: Maximum number of trials of all climbs together; default: no limit.
        finals: Games of each finalist; default: ten times `games`.
        seed: Seed of the random weights.
    """

    step: float = 0.5
    unit: float = 1.0
    passes: int = 10
    games: int = 100
    slack: float = 1.0
    restarts: int = 0
    spread: float = 1.0
    trials: int | None = None
    finals: int | None = None
    seed: int = 0

    def check(self) -> None:
        """Raises ValueError if a field is out of range."""
        from mergefall.checks import integer, number  # late, because `mergefall --help` describes the fields

        for name in ("step", "unit", "slack", "spread"):
            number(name, getattr(self, name), 0)
        for name, low in {"games": 1, "finals": 1, "passes": 1, "restarts": 0, "seed": 0, "trials": 1}.items():
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), low, MOST_GAMES if name in ("games", "finals") else None)


def ends(value: Callable[[Weights], float], start: Weights, how: Climb) -> list[Weights]:
    """The weights at which the climbs ended, best first. No weights are valued twice.

    >>> ends(lambda w: 10 - (w["x"] - 3) ** 2, {"x": 0.0}, Climb(step=1, trials=3))
    [{'x': 2.0}]
    """
    values: dict[tuple[float, ...], float] = {}

    def once(weights: Weights) -> float:
        key = tuple(weights.values())
        if key not in values:
            if len(values) == how.trials:
                raise _UsedUpError
            values[key] = value(weights)
        return values[key]

    rng = random.Random(how.seed)
    peaks: list[tuple[float, Weights]] = []
    with suppress(_UsedUpError):
        for restart in range(1 + how.restarts):
            drawn = {name: _changed(weight, how, how.spread * rng.gauss()) for name, weight in start.items()}
            peaks.append((once(drawn), drawn) if restart else (once(start), start))
            for _ in range(how.passes):
                before = peaks[-1]
                for name in start:
                    for direction in (1, -1):
                        best, weights = peaks[-1]
                        changed = weights | {name: _changed(weights[name], how, direction * how.step)}
                        if once(changed) > best + how.slack / 100 * abs(best):
                            peaks[-1] = once(changed), changed
                            break
                if peaks[-1] == before:
                    break
    return [weights for _, weights in sorted(peaks, key=lambda peak: -peak[0])]


class _UsedUpError(Exception):
    """No trials are left."""


def _changed(weight: float, how: Climb, shares: float) -> float:
    return float(f"{weight + shares * max(abs(weight), how.unit):.6g}")
