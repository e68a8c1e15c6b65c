"""Parts that learners share: hyper-parameters, training in rounds, learning-rate schedules."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mergefall.checks import boolean, integer, known, number
from mergefall.typing import Dict, Options

from mergefall_training.files import differences
from mergefall_training.learn.run import Config, read_checkpoint, read_config

H = TypeVar("H")


def schedule(name: str, value: Any) -> Callable[[float], float]:
    """A rate from a hyper-parameter, a number or text such as `lin_0.5`, as a function of the rest of the training.

    The rest falls from 1 to 0. A number stays as it is; `lin_0.5` falls linearly to 0, as SB3's schedules do. Raises
    ValueError, with the hyper-parameter's `name`, for anything else.

    >>> schedule("learning_rate", "lin_0.5")(0.5), schedule("learning_rate", 0.5)(0.25)
    (0.25, 0.5)
    """
    falls = isinstance(value, str) and value.startswith("lin_")
    try:
        first = number(name, float(value.removeprefix("lin_")) if falls else value, least=0)
    except ValueError:
        raise ValueError(f"{name} is {value!r}; expected a number, or text such as 'lin_0.001'") from None
    # The last rollout may end beyond the last step.
    return lambda rest: first * max(rest, 0.0) if falls else first


def run_or_model(name: str, value: Any) -> None:
    """Raise ValueError for a value that cannot be a path."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}; expected a run folder or a model file")


# Ranges of hyper-parameters by their names, rl_zoo3's where it has one. Other integers are at least 1, other numbers 0.
SHARES = (
    *("gamma", "gae_lambda", "td_lambda", "tau", "average", "coherence", "exploration_rate"),
    *("restarts", "exploration_fraction", "exploration_initial_eps", "exploration_final_eps"),
)
POSITIVE = ("max_grad_norm", "target_kl", "gap_share", "spread")
RATES = ("learning_rate", "clip_range", "clip_range_vf")  # may fall, as `lin_0.1` says
BY_NAME: dict[str, Callable[[str, Any], object]] = {
    **dict.fromkeys(SHARES, partial(number, least=0, most=1)),
    **dict.fromkeys(POSITIVE, partial(number, above=0)),
    **dict.fromkeys(RATES, schedule),
    "threads": partial(integer, low=1),
    "learning_starts": partial(integer, low=0),
    "warm_start": run_or_model,
}
BY_TYPE = {bool: boolean, int: partial(integer, low=1), float: partial(number, least=0)}  # of defaults


def check_values(config: Config, defaults: Options) -> None:
    """Raise ValueError for a run's hyper-parameter that has no default, or is out of range."""
    known(config.algorithm, config.hyperparameters, defaults)
    for name, value in config.hyperparameters.items():
        check = BY_NAME.get(name, BY_TYPE.get(type(defaults[name])))
        if check and not (value is None and defaults[name] is None):
            check(name, value)


def hyperparameters_of(kind: type[H], config: Config) -> H:
    """A run's hyper-parameters as the dataclass `kind`; raises ValueError as `check_values`."""
    check_values(config, vars(kind()))
    return kind(**config.hyperparameters)


class Learner:
    """A learner of a run, made of its configuration and a device.

    - `config`, `hyperparameters`, `step`: of the run; the steps so far.
    - `arrays()`, `network()`: the model's parameters, and JSON types; the algorithm's `player` makes an agent of them.
    - `state()`, `restore(step, state)`: everything that the rest of the run depends on, and going back to it.
    - `take_over(state)`: that part of it which a run with `warm_start` begins with.
    - `alike`: the hyper-parameters that such a run and the one before it must share.
    - `learn()`: one round; returns figures to log.
    """

    def begin(self: Any) -> None:
        """Take over what a new run begins with: the state in the last checkpoint of the run folder `warm_start`.

        Raises ValueError if the run cannot begin, or if that run has another algorithm or environment.
        """
        config, h, abouts = self.config, self.hyperparameters, []
        if not h.warm_start:
            return
        for of in (read_config(h.warm_start), config):
            own = vars(hyperparameters_of(type(h), of)) if of.algorithm == config.algorithm else {}
            about = {"algorithm": of.algorithm, "env_id": of.env_id, "env_kwargs": of.env_kwargs}
            abouts.append(about | {name: own[name] for name in self.alike if own})
        if differing := differences(*abouts):
            raise ValueError(f"warm_start: the run in {h.warm_start} is another one: {'; '.join(differing)}")
        self.take_over(read_checkpoint(h.warm_start)[1])

    def train(self: Any, goes_on: Callable[[Options], bool], logs: Path) -> None:
        """Train until `goes_on`, called between rounds with figures to log, says that no steps are left.

        `logs`: the folder for TensorBoard.
        """
        figures: Dict = {}
        while goes_on(figures):
            figures = self.learn()
