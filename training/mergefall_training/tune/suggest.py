"""The space of a hyper-parameter search, and what to try next in it, by Optuna's tree-structured Parzen estimator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optuna
from mergefall.checks import number
from mergefall.typing import Options

from mergefall_training.yaml_numbers import load_yaml

ATTEMPTS = 100  # to suggest something new


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`: integers if both ends are; text if there is a `prefix`.

    >>> Range(1e-4, 1e-2, log=True, prefix="lin_").value(0.00123456)
    'lin_0.001235'
    """

    low: float
    high: float
    log: bool = False
    prefix: str = ""

    def __post_init__(self) -> None:
        number("low", self.low)
        number("high", self.high)
        if not self.low < self.high:
            raise ValueError(f"low is {self.low}, high is {self.high}; expected low < high")
        if not isinstance(self.log, bool) or not isinstance(self.prefix, str):
            raise ValueError(f"log is {self.log!r}, prefix is {self.prefix!r}; expected true or false, and text")
        if self.log and not self.low > 0:
            raise ValueError(f"low is {self.low}; expected more than 0 for a logarithm")

    @property
    def distribution(self) -> optuna.distributions.BaseDistribution:
        """Optuna's distribution; its points are the numbers."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return optuna.distributions.IntDistribution(self.low, self.high, log=self.log)
        return optuna.distributions.FloatDistribution(self.low, self.high, log=self.log)

    @property
    def ends(self) -> Sequence[Any]:
        """The values at both ends."""
        return self.value(self.low), self.value(self.high)

    def value(self, point: float) -> Any:
        """The value at a point of the distribution, to four digits."""
        if not isinstance(point, int):
            point = min(max(float(f"{point:.4g}"), self.low), self.high)
        return f"{self.prefix}{point}" if self.prefix else point

    def point(self, value: Any) -> Any:
        """The distribution's point for a value; None if it is outside the range."""
        if self.prefix:
            text = isinstance(value, str) and value.startswith(self.prefix)
            value = load_yaml(value.removeprefix(self.prefix)) if text else None
        inside = isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        return value if inside and (isinstance(value, int) or not whole) else None


@dataclass(frozen=True)
class Choice:
    """One of several values without an order; the distribution's points are their indices."""

    ends: Sequence[Any]

    def __post_init__(self) -> None:
        if not self.ends:
            raise ValueError("there are no choices; expected at least one")

    @property
    def distribution(self) -> optuna.distributions.BaseDistribution:
        return optuna.distributions.CategoricalDistribution(range(len(self.ends)))

    def value(self, point: int) -> Any:
        return self.ends[point]

    def point(self, value: Any) -> Any:
        return self.ends.index(value) if value in self.ends else None


Space = Mapping[str, Range | Choice]


def space_of(spec: Options) -> Space:
    """A space from JSON: for each name a list of choices, or a mapping with the fields of `Range`.

    >>> space_of({"n_epochs": {"low": 1, "high": 8}, "gamma": [0.9, 0.99]})
    {'n_epochs': Range(low=1, high=8, log=False, prefix=''), 'gamma': Choice(ends=[0.9, 0.99])}
    """
    space: dict[str, Range | Choice] = {}
    known = {field.name for field in fields(Range)}
    for name, given in spec.items():
        try:
            if isinstance(given, list):
                space[name] = Choice(given)
            elif isinstance(given, dict) and {"low", "high"} <= given.keys() <= known:
                space[name] = Range(**given)
            else:
                raise ValueError("expected a list, or low and high and perhaps log and prefix")
        except ValueError as error:
            raise ValueError(f"the space of {name} is {given!r}: {error}") from error
    return space


def spec_of(algorithm: str, changed: Options, given: Options) -> dict[str, Any]:
    """The space to search as JSON: the algorithm's in `spaces.yaml`, overridden by `given`, without what is `changed`.

    Raises ValueError if a hyper-parameter is both in `given` and in `changed`, or if none is left.
    """
    for name in given:
        if name in changed:
            raise ValueError(f"{name} is set to {changed[name]!r} and to be searched in {given[name]!r}; expected one")
    usual = load_yaml(Path(__file__).with_name("spaces.yaml").read_text(encoding="utf-8"))[algorithm]
    spec = {name: range_ for name, range_ in usual.items() if name not in changed} | dict(given)
    if not spec:
        raise ValueError(f"{', '.join(usual)} are all set; expected something to search")
    return json.loads(json.dumps(spec))


def corners(space: Space) -> Iterator[dict[str, Any]]:
    """Some points of a space that together have every end of a range and every choice."""
    for k in range(max(len(dimension.ends) for dimension in space.values())):
        yield {name: dimension.ends[k % len(dimension.ends)] for name, dimension in space.items()}


class Tried(Protocol):
    """A finished trial."""

    @property
    def hyperparameters(self) -> dict[str, Any]: ...

    @property
    def value(self) -> float: ...


def suggest(space: Space, trials: Sequence[Tried], seed: int) -> dict[str, Any] | None:
    """The hyper-parameters to try after these trials; None if Optuna finds nothing new.

    They depend on the arguments only.
    """
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # Optuna reports each new study
    try:
        study = optuna.create_study(direction="maximize")
    finally:
        optuna.logging.set_verbosity(verbosity)
    distributions = {name: dimension.distribution for name, dimension in space.items()}
    for trial in trials:
        # The preset may lack a name, or have a value outside the space.
        points = {name: space[name].point(value) for name, value in trial.hyperparameters.items()}
        points = {name: point for name, point in points.items() if point is not None}
        within = {name: distributions[name] for name in points}
        study.add_trial(optuna.trial.create_trial(params=points, distributions=within, value=trial.value))
    tried = [trial.hyperparameters for trial in trials]
    for attempt in range(ATTEMPTS):
        sampler_seed = np.random.SeedSequence([seed, len(trials), attempt]).generate_state(1)[0]
        study.sampler = optuna.samplers.TPESampler(seed=int(sampler_seed))
        points = study.ask(distributions).params
        suggested = {name: dimension.value(points[name]) for name, dimension in space.items()}
        if suggested not in tried:
            return suggested
    return None
