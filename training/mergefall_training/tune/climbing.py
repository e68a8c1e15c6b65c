"""Random-restart hill climbing over named weights, as the two-tetrad document did it.

A climb takes one weight at a time and tries it up, then down, by ``step`` times its size or times ``unit``, whichever
is larger: relative for large weights, yet able to leave 0 and to change a sign. A change is kept if it wins by more
than ``slack`` %. A climb ends after ``passes`` over all the weights, or after one that kept nothing. The first climb
begins at the weights given; each restart at these plus normal deviates, of ``spread`` times size or unit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass

Weights = dict[str, float]
MOST_GAMES = 250_000


@dataclass(frozen=True)
class Settings:
    """How to climb, and how much to play for it."""

    step: float = 0.5
    """A weight is changed by this share of itself, or of `unit` where that is larger."""
    unit: float = 1.0
    """The size below which a weight counts as small."""
    passes: int = 10
    """The most passes over the weights in one climb."""
    games: int = 100
    """Games of a trial."""
    slack: float = 1.0
    """Per cent by which a change must win."""
    restarts: int = 0
    """Climbs from random weights after the first one."""
    spread: float = 1.0
    """How far from the given weights the random ones lie, as a share of each, or of `unit` where that is larger."""
    trials: int | None = None
    """The most trials of all climbs together; no limit unless told."""
    finals: int = 1000
    """Games of each finalist."""
    seed: int = 0
    """Where the random weights come from."""

    def check(self) -> None:
        """Raises ValueError for a setting that makes no sense."""
        least = {"passes": 1, "games": 1, "slack": 0, "restarts": 0, "spread": 0, "finals": 1, "seed": 0, "trials": 1}
        for name, low in least.items():
            value = getattr(self, name)
            if value is not None and not value >= low:
                raise ValueError(f"{name}={value!r}; expected at least {low}")
        for name in ("step", "unit"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)!r}; expected more than 0")
        if max(self.games, self.finals) > MOST_GAMES:
            raise ValueError(f"games={self.games}, finals={self.finals}; expected at most {MOST_GAMES}")


def climbs(
    value: Callable[[Weights], float], start: Weights, settings: Settings
) -> Generator[tuple[int, Weights, float]]:
    """Climb and restart; yields (climb, weights, value) whenever a climb has new best weights.

    >>> peak = lambda w: 10 - (w["x"] - 3) ** 2
    >>> [(w["x"], v) for _, w, v in climbs(peak, {"x": 0.0}, Settings(step=1))]
    [(0.0, 1.0), (1.0, 6.0), (2.0, 9.0)]
    """
    settings.check()
    rng = random.Random(settings.seed)
    for climb in range(1 + settings.restarts):
        weights = {name: _plus(weight, settings, settings.spread * rng.gauss()) for name, weight in start.items()}
        weights = weights if climb else start
        best = value(weights)
        yield climb, weights, best
        for _ in range(settings.passes):
            before = best
            for name in start:
                for direction in (1, -1):
                    changed = weights | {name: _plus(weights[name], settings, direction * settings.step)}
                    found = value(changed)
                    if found > best + settings.slack / 100 * abs(best):
                        weights, best = changed, found
                        yield climb, weights, best
                        break
            if best == before:
                break


def ends(value: Callable[[Weights], float], start: Weights, settings: Settings) -> list[Weights]:
    """Where the climbs ended, best first; no weights are valued twice, and the last climb ends when `trials` are spent.

    >>> ends(lambda w: 10 - (w["x"] - 3) ** 2, {"x": 0.0}, Settings(step=1, trials=3))
    [{'x': 2.0}]
    """
    values: dict[tuple[float, ...], float] = {}

    def once(weights: Weights) -> float:
        key = tuple(weights.values())
        if key not in values:
            if len(values) == settings.trials:
                raise _SpentError
            values[key] = value(weights)
        return values[key]

    peaks: dict[int, tuple[float, Weights]] = {}
    with suppress(_SpentError):
        for climb, weights, best in climbs(once, start, settings):
            peaks[climb] = best, weights
    return [weights for _, weights in sorted(peaks.values(), key=lambda peak: -peak[0])]


class _SpentError(Exception):
    """All trials are spent."""


def _plus(weight: float, settings: Settings, shares: float) -> float:
    return float(f"{weight + shares * max(abs(weight), settings.unit):.6g}")
