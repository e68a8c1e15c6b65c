"""The folder of a training run: its configuration, learning curve, models and checkpoint.

    config.json      algorithm, environment, hyper-parameters, seed, versions, digests of the user's own code and models
    model.npz        the model at the last evaluation (`models.py`)
    best.npz         the model with the highest mean in an evaluation so far
    checkpoint.npz   everything that resuming from the last evaluation needs, the curve up to it included
    curve.jsonl      the curve to read: a header, then a line for each evaluation
    tensorboard/     logs of the algorithm
    lock             held by the process that trains

Each file is written whole, and in this order, so a run may be killed at any moment: it resumes from the last
checkpoint, and has ended if its curve has.
"""

import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from importlib import metadata
from inspect import signature
from operator import attrgetter
from pathlib import Path
from time import perf_counter
from typing import Any

from mergefall import __version__
from mergefall.checks import choice, in_place, integer, number
from mergefall.typing import Dict, FilePath, Options
from mergefall_baselines.arrays import read_arrays, write_arrays

from mergefall_training.files import (
    differences,
    in_places,
    json_text,
    made,
    open_alone,
    read_json,
    read_lines,
    write_whole,
)
from mergefall_training.learn import ALGORITHMS, player_maker, trainer
from mergefall_training.learn.models import flatten, save_model, unflatten
from mergefall_training.play.evaluation import SEEDS, evaluate
from mergefall_training.play.match import Match
from mergefall_training.play.records import code_of
from mergefall_training.play.statistics import short
from mergefall_training.progress import progress_bar

VERSION = 1
CONFIG, CURVE, CHECKPOINT = "mergefall training run", "mergefall learning curve", "mergefall checkpoint"
EVALUATION_SEED = 900_000  # of evaluations during training, which pick the best model; others count from 0
MOST_SEED = 4000  # with SEEDS = 10⁶, first seeds stay below 2³², the limit of NumPy's seeds
PACKAGES = ("gymnasium", "numpy", "numba", "torch", "stable_baselines3", "sb3_contrib")


@dataclass(frozen=True)
class Config:
    """The configuration of a run.

    - `env_id`: may be `module:id`, and is stored without the module.
    - `env_kwargs`: the environment's arguments; defaults are filled in.
    - `hyperparameters`: the algorithm's, with rl_zoo3's names.
    - `timesteps`: steps of all environments together.
    - `interval`, `episodes`: steps from one evaluation and checkpoint to the next, and games of an evaluation.
    - `seed`: training seed.
    - `max_episode_steps`: cap of every game, in training and in evaluations.

    Raises ValueError if a value is out of range, and whatever the environment raises for bad arguments.
    """

    algorithm: str
    env_id: str
    env_kwargs: Dict
    hyperparameters: Dict
    timesteps: int
    interval: int
    episodes: int = 30
    seed: int = 0
    max_episode_steps: int | None = None

    def __post_init__(self) -> None:
        choice("algorithm", self.algorithm, sorted(ALGORITHMS))
        integer("timesteps", self.timesteps, 1)
        integer("interval", self.interval, 1)
        integer("episodes", self.episodes, 1, SEEDS - EVALUATION_SEED)
        integer("seed", self.seed, 0, MOST_SEED)
        kwargs, gamma = dict(self.env_kwargs), self.hyperparameters.get("gamma")
        if isinstance(shaping := kwargs.get("shaping"), Mapping):  # its discount must be the learner's
            if gamma is None or shaping.get("gamma", gamma) != gamma:
                raise ValueError(
                    f"shaping is {dict(shaping)}, but the learner's gamma is {gamma}; expected the same, or none"
                )
            kwargs["shaping"] = {**shaping, "gamma": gamma}
        read = Match.read(self.env_id, kwargs, self.max_episode_steps)
        object.__setattr__(self, "env_id", read.env_id.rpartition(":")[2])  # files name no modules
        object.__setattr__(self, "env_kwargs", read.env_kwargs)

    @property
    def first_seed(self) -> int:
        """Seed of the first training environment: beyond those of evaluations, and different for each training seed."""
        return SEEDS * (self.seed + 1)

    @property
    def match(self) -> Match:
        """Where evaluations play: where the training does, without shaping."""
        kwargs = {name: None if name == "shaping" else value for name, value in self.env_kwargs.items()}
        return Match(env_id=self.env_id, env_kwargs=kwargs, max_episode_steps=self.max_episode_steps)


@dataclass(frozen=True)
class Point:
    """One evaluation of a learning curve.

    - `step`, `seconds`: steps and time so far, evaluations included.
    - `episodes`: number of games; `capped` of them were cut off by `max_episode_steps`.
    - `headline`, `mean`, `low`, `high`: name of the figure, its mean, and the 95 % interval of the mean.
    - `tiles`: share of games that reached each tile (2048).
    """

    step: int
    seconds: float
    episodes: int
    headline: str
    mean: float
    low: float
    high: float
    capped: int
    tiles: dict[str, float]


@dataclass
class Run:
    """A run folder that this process has locked; made by `open_run`.

    `learner` is that of a new run, which has begun.
    """

    folder: Path
    config: Config
    points: list[Point]
    device: str
    progress: bool
    learner: Any
    _begun: float = field(default_factory=perf_counter)

    @property
    def seconds(self) -> float:
        """Time taken so far, with that of earlier sessions up to their last checkpoint."""
        return perf_counter() - self._begun

    @property
    def evaluated(self) -> int:
        """The step of the last evaluation; −1 if there is none."""
        return self.points[-1].step if self.points else -1

    def train(self) -> None:
        """Train to the end, from the last checkpoint if there is one. On Ctrl-C, a note says how to resume."""
        config, checkpoint = self.config, self.load_checkpoint()
        learner, self.learner = self.learner or trainer(config.algorithm).Learner(config, self.device), None
        if checkpoint is not None:
            kinds = ValueError, LookupError, TypeError, AttributeError, OverflowError, RuntimeError
            with in_place(f"{self.folder / 'checkpoint.npz'} does not fit the run", kinds):
                learner.restore(*checkpoint)
        logs = self.folder / "tensorboard"
        bar = progress_bar(f"{config.algorithm}: steps", config.timesteps, note=self._means(), enabled=self.progress)
        with bar as show, tensorboard(logs) as log:

            def goes_on(figures: Mapping[str, float]) -> bool:
                if self.due(learner.step):
                    point = self.evaluate(learner)
                    self.save_checkpoint(learner.step, learner.state())
                    log(learner.step, {f"train/{name}": figure for name, figure in figures.items()})
                    log(learner.step, {f"eval/mean_{point.headline}": point.mean})
                show(learner.step, self._means())
                return learner.step < config.timesteps

            try:
                learner.train(goes_on, logs)
            except KeyboardInterrupt as interrupt:
                at = max(self.evaluated, 0)
                interrupt.add_note(
                    f"{self.folder} has a checkpoint at step {at}; add --resume to the command to continue"
                )
                raise

    def _means(self) -> str:
        """The last and the best evaluation."""
        means = [point.mean for point in self.points]
        return f"mean {short(means[-1])}, best {short(max(means))}" if means else ""

    def due(self, step: int) -> bool:
        """Whether an evaluation and a checkpoint are due after `step` steps: at 0, once in every interval, at the end.

        Right after a checkpoint, and after resuming from it, none is due.
        """
        last, interval = self.evaluated, self.config.interval
        return step // interval > last // interval or step >= self.config.timesteps > last

    def evaluate(self, learner: Any) -> Point:
        """Evaluate a learner's model: write `model.npz`, play, and write `best.npz` if it is the best so far."""
        config, arrays = self.config, learner.arrays()
        spec = {
            "algorithm": config.algorithm,
            "env_id": config.env_id,
            "env_kwargs": config.env_kwargs,
            "network": learner.network(),
            "step": learner.step,
            "timesteps": config.timesteps,
            "seed": config.seed,
        }
        save_model(self.folder / "model.npz", spec, arrays)
        make_player = player_maker(config.algorithm)
        on_device = {"device": self.device} if "device" in signature(make_player).parameters else {}
        player = make_player(spec, arrays, **on_device)
        games = evaluate(player, config.match, config.episodes, EVALUATION_SEED, workers=1, progress=False).summary()
        point = Point(
            learner.step,
            round(self.seconds, 3),
            games.episodes,
            games.headline,
            games.mean.value,
            games.mean.low,
            games.mean.high,
            games.capped,
            {str(tile): share.value for tile, share in games.tiles.items()},
        )
        if not self.points or rank(point) > max(map(rank, self.points)):
            save_model(self.folder / "best.npz", spec, arrays)
        self.points.append(point)
        return point

    def _write_curve(self) -> None:
        config = self.config
        about = {"algorithm": config.algorithm, "env_id": config.env_id, "seed": config.seed}
        lines = [{"format": CURVE, "version": VERSION, **about}, *map(asdict, self.points)]
        write_whole(self.folder / "curve.jsonl", "".join(f"{json_text(line)}\n" for line in lines).encode())

    def save_checkpoint(self, step: int, state: Options) -> None:
        """Write everything that resuming from here needs, nested data as `models.flatten` takes it, and the curve."""
        tree, arrays = flatten(dict(state))
        curve, _ = flatten([asdict(point) for point in self.points])
        spec = {"step": step, "seconds": self.seconds, "curve": curve, "state": tree}
        write_arrays(self.folder / "checkpoint.npz", CHECKPOINT, VERSION, spec, arrays)
        self._write_curve()

    def load_checkpoint(self) -> tuple[int, Dict] | None:
        """(step, state) of the last checkpoint, None if there is none; forgets later evaluations."""
        step, state, seconds = -1, None, 0.0
        if (self.folder / "checkpoint.npz").exists():
            step, state, seconds, points = read_checkpoint(self.folder)
            self.points = points or self.points  # version 0.1.0 kept none
        self._begun = perf_counter() - seconds
        self.points = [point for point in self.points if point.step <= step]
        self._write_curve()
        return None if state is None else (step, state)


@contextmanager
def open_run(
    folder: FilePath, config: Config, *, resume: bool = False, device: str = "auto", progress: bool = True
) -> Iterator[Run]:
    """Open a run folder, and lock it until the block ends.

    Args:
        resume: continue the run in the folder, if there is one; by default a run there is an error.
        device: PyTorch's device; "auto": a GPU if there is one.
        progress: show a progress bar.

    Raises ValueError, before anything is written, if:

    - the learner refuses the configuration of a new run,
    - there is a run and `resume` is False,
    - the folder holds a run with another configuration (versions aside), or one of which the user's own code or a model
      has changed (but for `warm_start`, which is read when the run begins),
    - another process trains in the folder.
    """
    folder = Path(folder)
    path = folder / "config.json"
    if path.exists() and not resume:
        raise ValueError(f"{folder} holds a training run; resume it (--resume) or choose another folder")
    learner = None if (folder / "checkpoint.npz").exists() else begun(config, device)
    used = {name: value for name, value in config.hyperparameters.items() if name != "warm_start"}
    ours, code = asdict(config), code_of(config.env_kwargs, used)
    try:
        ours = json.loads(json.dumps(ours, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"the run's configuration is {ours}; expected JSON types ({error})") from error
    with open_alone(folder / "lock", "lock of the training run"):
        for torn in folder.glob(".*.part"):  # a process was killed while it wrote this
            torn.unlink()
        if path.exists():
            there = asdict(read_config(folder, ours))
            there["code"] = read_json(path, ours).get("code", code)
            if differing := differences(there, ours | {"code": code}):
                advice = f"Choose another folder, there perhaps with warm_start={folder}"
                raise ValueError(f"{folder} holds another run: {'; '.join(differing)}. {advice}")
        else:
            versions = {
                "mergefall": __version__,
                "python": platform.python_version(),
                "machine": f"{platform.system()} {platform.machine()}",
                **{one.name: one.version for one in metadata.distributions() if one.name in PACKAGES},
            }
            about = {"format": CONFIG, "version": VERSION, **ours, "code": code, "versions": versions}
            write_whole(path, json_text(about, indent=2).encode())
        points = read_curve(folder) if (folder / "curve.jsonl").exists() else []
        yield Run(folder, config, points, device, progress, learner)


@contextmanager
def tensorboard(folder: Path) -> Iterator[Callable[[int, Mapping[str, float]], object]]:
    """Logs for TensorBoard in a folder; yields a function that takes the steps so far and figures by name.

    Without the package `tensorboard`, nothing is logged, which a note on stderr says.
    """
    try:
        from tensorboard.summary import Writer
    except ModuleNotFoundError:
        print(f"mergefall: {folder} gets no logs, because tensorboard is not installed", file=sys.stderr, flush=True)
        yield lambda step, figures: None
        return
    with closing(Writer(str(folder))) as writer:
        yield lambda step, figures: [writer.add_scalar(name, value, step) for name, value in figures.items()]


def begun(config: Config, device: str = "auto") -> Any:
    """The learner of a new run. Raises ValueError for a configuration that cannot be trained on this device."""
    learner = trainer(config.algorithm).Learner(config, device)
    learner.begin()
    return learner


def train(
    folder: FilePath, config: Config, *, resume: bool = False, device: str = "auto", progress: bool = True
) -> Run:
    """Train in a run folder to the end. The folder can then be used as a player: `make(folder)`.

    PyTorch computes on one thread, because small networks are not faster on two, but for the layers that share boards
    between threads (`sb3/lines.py`). The environment variable `OMP_NUM_THREADS` changes that. The arguments are those
    of `open_run`.
    """
    trainer(config.algorithm)  # before the folder is made: packages may be missing
    torch: Any = sys.modules.get("torch")
    threads = torch and torch.get_num_threads()
    try:
        if torch and "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(1)  # on two threads, small networks are much slower beside other work
        with open_run(folder, config, resume=resume, device=device, progress=progress) as run:
            if run.evaluated < config.timesteps:
                run.train()
            return run
    finally:
        if torch:
            torch.set_num_threads(threads)


def read_config(folder: FilePath, typed: Any = ()) -> Config:
    """The configuration of the run in a folder.

    `typed`: nested data of the user's, such as the options of a command.

    Raises ValueError if there is no run, or if it names anything to import or run that `typed` does not name
    (`mergefall.imports.inert`).
    """
    path = Path(folder) / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder} holds no training run: there is no {path}")
    with in_place(str(path)):
        record = read_json(path, typed)
        kind = isinstance(record, dict) and (record.pop("format", None), record.pop("version", None))
        if kind != (CONFIG, VERSION):
            raise ValueError(f"it is no {CONFIG} of format version {VERSION}")
        record.pop("versions", None)
        record.pop("code", None)  # `open_run` compares it
        return made(Config, record)


def read_checkpoint(folder: FilePath) -> tuple[int, Dict, float, list[Point]]:
    """(step, state, seconds, curve) of the last checkpoint of the run in a folder; `state` is the learner's."""
    path = Path(folder) / "checkpoint.npz"
    spec, arrays, _ = read_arrays(path, CHECKPOINT, VERSION)
    step, seconds = integer("step", spec.get("step"), 0), number("seconds", spec.get("seconds"), 0)
    with in_place(f"{path} holds no state of a learner", (ValueError, LookupError, TypeError)):
        return step, unflatten(spec["state"], arrays), seconds, list(map(_point, unflatten(spec.get("curve", []), {})))


def read_curve(folder: FilePath) -> list[Point]:
    """The evaluations of the run in a folder, in order."""
    path = Path(folder) / "curve.jsonl"
    if not path.is_file():
        raise ValueError(f"{folder} holds no training run: there is no {path}")
    return in_places(f"{path}, line", _point, read_lines(path, "evaluations")[0][1:], 2)  # after the header


def _point(record: Dict) -> Point:
    """A line of a curve. Null stands for what JSON lacks: an infinite mean (no game ended), or the ends of one game."""
    beyond = math.nan if record.get("low") is None else math.inf
    missing = {"mean": math.inf, "low": math.nan, "high": beyond}
    record.pop("figures", None)  # of an earlier version
    return made(Point, {name: missing.get(name) if value is None else value for name, value in record.items()})


# What evaluations are compared by: the mean; then, as without a death it is infinite, the interval's lower end.
rank = attrgetter("mean", "low")
