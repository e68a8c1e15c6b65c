"""Parts that learners share: training in rounds, the progress bar, learning-rate schedules, the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from mergefall.typing import Arrays, Options
from stable_baselines3.common.logger import configure

from mergefall_training.learn.run import Run
from mergefall_training.play.statistics import plain
from mergefall_training.progress import progress_bar


class Learner(Protocol):
    """What `train_in_rounds` trains.

    - `step`: steps done so far.
    - `learn()`: does one round, and returns figures to log.
    - `arrays()`, `network()`: the model, as `Run.evaluate` takes it.
    - `state()`, `restore(step, state)`: everything that resuming needs.
    """

    step: int

    def learn(self) -> dict[str, float]: ...

    def arrays(self) -> Arrays: ...

    def network(self) -> dict[str, Any]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, step: int, state: Options) -> None: ...


def train_in_rounds(run: Run, learner: Learner, begin: Callable[[], None] = lambda: None) -> None:
    """Train in a run folder to the end, with evaluations and checkpoints in between.

    Continues from the last checkpoint. Without one, calls `begin` first.
    """
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


@contextmanager
def training_progress(run: Run) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr with the last and the best evaluation; yields a function that takes the steps so far.

    On Ctrl-C, a note says how to resume.
    """

    def note() -> str:
        means = [point.mean for point in run.points]
        return f"mean {plain(means[-1])}, best {plain(max(means))}" if means else ""

    title, total = f"{run.config.algorithm}: steps", run.config.timesteps
    with progress_bar(title, total, note=note(), enabled=run.progress) as show:
        try:
            yield lambda step: show(step, note())
        except KeyboardInterrupt as interrupt:
            at = run.points[-1].step if run.points else 0
            interrupt.add_note(f"{run.folder} has a checkpoint at step {at}; add --resume to the command to continue")
            raise


def schedule(name: str, value: Any) -> Any:
    """A learning rate from a hyper-parameter: a number, or a function for text such as `lin_0.5`.

    The function takes the remaining share of training, from 1 to 0, and falls linearly to 0, as SB3's schedules do.
    Raises ValueError, with the hyper-parameter's `name`, for anything else.

    >>> schedule("learning_rate", "lin_0.5")(0.5), schedule("learning_rate", 0.5)
    (0.25, 0.5)
    """
    text = isinstance(value, str)
    try:
        number = float(value.removeprefix("lin_")) if text and value.startswith("lin_") else value
    except ValueError:
        number = None
    if not isinstance(number, int | float) or isinstance(number, bool) or not number >= 0:
        raise ValueError(f"{name} is {value!r}; expected a number, or text such as 'lin_0.001'")
    if not text:
        return number
    return lambda remaining: number * max(remaining, 0.0)  # the last rollout may end beyond the last step


def device_of(name: str) -> torch.device:
    """PyTorch's device from its name; "auto": a GPU if there is one, else the CPU.

    Raises ValueError if PyTorch does not find the device.
    """
    try:
        device = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError, TypeError) as error:
        raise ValueError(f"device is {name!r}; expected auto, cpu, or another that PyTorch finds here") from error
    return device


def fuse(optimizer: torch.optim.Optimizer) -> None:
    """Let Adam update all parameters in one call, which is several times as fast for small networks."""
    if isinstance(optimizer, torch.optim.Adam):
        for group in optimizer.param_groups:
            group["fused"] = True


def use_mixed_precision(policy: torch.nn.Module) -> None:
    """Let extractors with a `mixed_precision` compute in bfloat16 where that is much faster than float32.

    It is on GPUs, and on CPUs with AMX.
    """
    device = next(policy.parameters()).device
    fast = device.type == "cuda" or bool(torch.cpu.get_capabilities().get("amx_bf16"))
    module: Any
    for module in policy.modules():
        if hasattr(module, "mixed_precision"):
            module.mixed_precision = fast
