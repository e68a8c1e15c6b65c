"""Training in rounds: a learner that plays and learns by turns, evaluated and kept in between, until it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray
from stable_baselines3.common.logger import configure

from mergefall_training.learn.run import Run
from mergefall_training.learn.showing import training_progress


class Learner(Protocol):
    """What is trained: `learn` is one round, after which `step` steps are done, and returns figures to log.

    `arrays` and `network` are what `Run.evaluate` keeps as the model; `state` is all that goes on, `restore` goes back.
    """

    step: int

    def learn(self) -> dict[str, float]: ...

    def arrays(self) -> Mapping[str, NDArray[Any]]: ...

    def network(self) -> dict[str, Any]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, step: int, state: Mapping[str, Any]) -> None: ...


def train_in_rounds(run: Run, learner: Learner, begin: Callable[[], None] = lambda: None) -> None:
    """Train in a run folder to its end; from its last checkpoint, if there is one, else with `begin` first."""
    checkpoint = run.load_checkpoint()
    if checkpoint is None:
        begin()
    else:
        with run.fitting():
            learner.restore(*checkpoint)
    logger = configure(str(run.folder / "tensorboard"), ["tensorboard"])
    figures: dict[str, float] = {}
    with training_progress(run) as show:
        while True:
            done = learner.step >= run.config.timesteps
            if run.due(learner.step) or (done and run.points[-1].step < learner.step):
                point = run.evaluate(learner.step, learner.arrays(), learner.network(), figures)
                run.save_checkpoint(learner.step, learner.state())
                for name, value in (figures | {f"eval/mean_{point.headline}": point.mean}).items():
                    logger.record(name, value)
                logger.dump(learner.step)
            show(learner.step)
            if done:
                return
            figures = {f"train/{name}": value for name, value in learner.learn().items()}
