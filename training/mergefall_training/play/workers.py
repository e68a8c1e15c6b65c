"""Play episodes side by side: in this process, over worker processes, or on a Ray cluster.

An episode is a function of a task and a seed. This module maps that function over seeds.
"""

from __future__ import annotations

import inspect
import json
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, TypeAlias

import cloudpickle
import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.error import DependencyNotInstalled
from gymnasium.error import Error as GymnasiumError
from mergefall.checks import integer, known, near
from mergefall.games import ENVIRONMENTS, game_of, games, take
from mergefall.imports import import_extra, load, strings_in
from mergefall.threads import cores
from mergefall.typing import Array, Environment, Options
from mergefall_baselines import Player, Trajectory, make, play_in_env
from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.player import Step, name_of_player, steps
from mergefall_baselines.registry import added, adopt, player_of

from mergefall_training.play.preferences import player_of_model
from mergefall_training.play.records import RECORDED, Episode, played
from mergefall_training.wrappers.adversary import adversary as with_adversary
from mergefall_training.wrappers.adversary import arguments

WORTH = 4.0  # seconds that workers must save: they take some to start
PART = 0.5  # seconds of games that a worker gets at a time
AT_ONCE = 1024  # games of one batch
MATCHES = 32  # of one batch
LOOK = 0.25  # seconds in which a game is tried
MAIN_GUARD = "in a script, call this under `if __name__ == '__main__':`, because worker processes import the script"


@dataclass(frozen=True)
class Task:
    """A player in an environment, perhaps against an adversary: enough to play the episode of any seed."""

    player: Player
    env_id: str
    env_kwargs: dict[str, Any]
    max_episode_steps: int | None
    adversary: dict[str, Any] | None = None

    @cached_property
    def _opponent(self) -> Player:
        # Made once: a network takes longer to read than a game to play.
        assert self.adversary is not None
        return player_of(self.adversary["player"])

    def opposed(self, env: Environment) -> Any:
        """A single or batched environment with the task's adversary in it."""
        return env if self.adversary is None else with_adversary(env, self._opponent, self.adversary["rate"])

    @property
    def _together(self) -> bool:
        """Whether an opponent decides too, which is fastest for many matches at once."""
        return self.env_id in ENVIRONMENTS and game_of(self.env_id).matches and isinstance(self.player, KernelPlayer)

    def episodes(self, seeds: Sequence[int]) -> Generator[Episode]:
        """The episodes from ``reset(seed=seed)``, each as it ends."""
        if self._together:
            for first in range(0, len(seeds), MATCHES):
                yield from play_together(self, seeds[first : first + MATCHES])
            return
        for seed in seeds:
            start = perf_counter()
            one = self.trajectory(seed)
            yield played(seed, one.actions, len(one), one.terminated, perf_counter() - start, one.figures)

    def trajectories(self, seeds: Sequence[int]) -> Generator[Trajectory]:
        """The episodes from ``reset(seed=seed)``, in the order of `seeds`."""
        yield from map(self.trajectory, seeds)

    def trajectory(self, seed: int, cap: int | None = None) -> Trajectory:
        """The episode from ``reset(seed=seed)``, truncated after `cap` actions; default: the task's own cap."""
        cap = self.max_episode_steps if cap is None else cap
        if self.adversary is None:
            return self.player.play(self.env_id, seed, self.env_kwargs, cap)
        return play_in_env(self.player, self.env_id, seed, self.env_kwargs, cap, self.opposed)

    def pack(self) -> bytes:
        """The task as bytes for another process; raises ValueError if the player cannot be pickled.

        A player that `make` made travels by name and options: a network has megabytes, and each seed takes a copy. What
        users registered travels along; cloudpickle also takes functions and classes of scripts and notebooks.
        """
        player: Any = self.player
        if player.made_as is not None:
            player = player.made_as, {**player.options, **player.functions}
        parts = self.env_id, self.env_kwargs, self.max_episode_steps, self.adversary
        names = set(strings_in([player if isinstance(player, tuple) else (), *parts]))
        heuristics = {
            game.name: {name: heuristic for name, heuristic in game.library().added().items() if name in names}
            for game in games().values()
        }
        try:
            return cloudpickle.dumps(((added(names), heuristics), player, *parts))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            name = name_of_player(self.player)
            raise ValueError(f"{name} cannot be sent to other processes; workers=1 uses only this one") from error


@lru_cache(maxsize=1)
def unpack_task(packed: bytes) -> Task:
    """The task that `Task.pack` returned as bytes."""
    (factories, heuristics), player, env_id, kwargs, *others = pickle.loads(packed)
    adopt(factories)
    for name, those in heuristics.items():
        games()[name].library().adopt(those)
    if isinstance(player, tuple):
        name, options = player
        player = _in_rules(make(name, **options), environment(env_id, kwargs), kwargs)
    return Task(player, env_id, kwargs, *others)


Work: TypeAlias = Callable[[Task, Sequence[int]], Iterable[Any]]  # `Task.episodes` or `Task.trajectories`


def _played(packed: bytes, work: Work, seeds: Sequence[int]) -> list[Any]:
    """In a worker process: what `work` returns for the seeds."""
    job = unpack_task(packed)
    job.trajectory(seeds[0], 1)  # loads kernels, so that no episode's `seconds` includes that
    return list(work(job, seeds))


def task(
    player: Any,
    env_id: str,
    env_kwargs: Options | None,
    max_episode_steps: int | None,
    adversary: Options | None = None,
) -> Task:
    """A task whose parts fit together, with the defaults of the environment and of the adversary filled in.

    `player`: what `registry.player_of` takes.

    Raises ValueError if the environment does not exist, does not take the kwargs, or has other rules than the player,
    and for arguments that `mergefall_training.wrappers.adversary` does not take.
    """
    kwargs = dict(env_kwargs or {})
    if max_episode_steps is not None:
        max_episode_steps = integer("max_episode_steps", max_episode_steps, 1)
    env = environment(env_id, kwargs, max_episode_steps=max_episode_steps)
    against = None if adversary is None else arguments(adversary)
    if against is not None:
        with_adversary(env, **against)  # raises what games would raise
    env.close()
    spec: Any = env.spec
    # Players know ids without "mergefall:". The prefix of another package stays: worker processes must import it.
    plain_id = spec.id if spec.namespace == "mergefall" else env_id
    kwargs = all_kwargs(env, kwargs)
    player = _in_rules(player_of(player), env, kwargs)
    if against is not None and against["rate"] == 0:
        against = None  # the plain game, draw by draw, which compiled loops can play
    if against is None and isinstance(player, KernelPlayer):
        rules = player.form.rules_of(plain_id, kwargs)  # raises for an environment of another game
        if player.heuristic is not None:
            player.heuristic.check_size(rules.rows, rules.cols)
    return Task(player, plain_id, kwargs, spec.max_episode_steps, against)


def _in_rules(player: Player, env: gym.Env[Any, Any], kwargs: Options) -> Player:
    """A player that knows the rules of an environment, which `kwargs` says in full."""
    return player_of_model(player, env, kwargs).with_rules(kwargs)


def environment(env_id: str, kwargs: Options, **options: Any) -> gym.Env[Any, Any]:
    """``gym.make`` with Gymnasium's `options`; raises ValueError for bad `kwargs`, also for those of no JSON type."""
    for name, value in kwargs.items():
        try:
            json.dumps(value)
        except TypeError:
            expected = "JSON types, as records hold them; a player is a name or a mapping of `player` and options"
            raise ValueError(f"{name} is {value!r}; expected {expected}") from None
    try:
        if ":" in env_id:  # Gymnasium imports the module, but does not know where else to look
            load(env_id.partition(":")[0])
        return gym.make(env_id, **options, **kwargs)
    except DependencyNotInstalled:
        raise
    except (GymnasiumError, ImportError, TypeError) as error:
        entry: Any = gym.registry.get(env_id.removeprefix("mergefall:"))
        if entry is not None and entry.id in ENVIRONMENTS:
            known(env_id, kwargs, inspect.signature(load_env_creator(entry.entry_point)).parameters)
        meant = near(f"mergefall/{env_id.rpartition('/')[2]}", [one for one in ENVIRONMENTS if one != env_id])
        reason = meant.removeprefix("; ") or error
        raise ValueError(f"no environment {env_id!r} with kwargs {dict(kwargs)}: {reason}") from error


def all_kwargs(env: gym.Env[Any, Any], kwargs: Options) -> dict[str, Any]:
    """All arguments of an environment that was made with `kwargs`, but for how it is shown: with the defaults."""
    parameters = inspect.signature(type(env.unwrapped)).parameters.values()
    spec: Any = env.spec
    values = {p.name: p.default for p in parameters if p.default is not p.empty} | spec.kwargs | dict(kwargs)
    return {name: value for name, value in values.items() if name != "render_mode"}


def spread(
    task: Task,
    work: Work,
    seeds: Sequence[int],
    workers: int,
    executor: str | ProcessPoolExecutor = "processes",
    in_order: bool = False,
) -> Generator[Any]:
    """`work(task, seeds)`, as each game ends or `in_order`.

    - executor "processes": `workers` processes, or this one alone where games are so few or short that it is faster.
    - executor "ray" or a `process_pool`: the games run there.

    Short games are sent many at a time, and matches that are played side by side.
    """
    if not seeds:
        return
    task.trajectory(seeds[0], 1)  # errors show at once, and workers find compiled kernels on disk
    alone = executor == "processes"
    workers = min(workers, len(seeds))
    seconds = math.inf if alone and workers == 1 else _seconds_of_a_game(task, seeds[0])
    if alone and (workers == 1 or seconds * len(seeds) * (1 - 1 / workers) < WORTH):
        yield from work(task, seeds)
        return
    few = max(1, min(int(PART / seconds), len(seeds) // (4 * workers)))
    size = min(MATCHES, -(-len(seeds) // workers)) if task._together else few
    parts = [seeds[first : first + size] for first in range(0, len(seeds), size)]
    if executor == "ray":
        yield from chain.from_iterable(_on_ray(task.pack(), work, parts))
        return
    jobs = [(task.pack(), work, part) for part in parts]
    with nullcontext(executor) if isinstance(executor, ProcessPoolExecutor) else process_pool(workers) as pool:
        yield from chain.from_iterable(on_processes(pool, _played, jobs, in_order))


def _seconds_of_a_game(task: Task, seed: int) -> float:
    """How long the game from a seed takes; infinite if that is more than about a second."""
    cap, begun = 1, perf_counter()
    while perf_counter() - begun < LOOK:
        start = perf_counter()
        length = len(task.trajectory(seed, min(cap, task.max_episode_steps or cap)))
        if length < cap or length == task.max_episode_steps:
            return perf_counter() - start
        cap *= 4
    return math.inf


# -- side by side in one batched environment ---------------------------------------------------------------------------


def play_all(
    job: Task, seeds: Sequence[int], workers: int = 1, executor: str | ProcessPoolExecutor = "processes"
) -> Generator[Episode]:
    """Play the task's episodes from `seeds`; yields each as it ends, in any order.

    A `Player.batched` plays side by side in this process, others as `spread` does; Ray plays both.
    """
    if executor != "ray" and job.player.batched:
        for first in range(0, len(seeds), AT_ONCE):
            yield from play_together(job, seeds[first : first + AT_ONCE])
    else:
        yield from spread(job, Task.episodes, seeds, workers, executor)


def play_together(job: Task, seeds: Sequence[int]) -> Generator[Episode]:
    """The task's episodes as `spread` plays them, each as it ends; for a `Player.batched` or a `KernelPlayer`.

    The `seconds` of a game are its share of the total time, those of a match of the player's own decisions.
    """
    player, n = job.player, len(seeds)
    game, kwargs = game_of(job.env_id), {name: v for name, v in job.env_kwargs.items() if name != "render_mode"}
    envs = job.opposed(gym.make_vec(job.env_id, num_envs=n, max_episode_steps=job.max_episode_steps, **kwargs))
    playing = np.arange(n)  # games that are not over; the others are stepped too, but ignored
    actions, table, seconds = np.zeros(n, np.int64), np.empty((1024, n), np.uint16), 0.0
    memories = [player.start(seed) for seed in seeds]
    memory: Any = None if memories[0] is None else np.stack(memories)
    decided = 0.0  # seconds of the last decisions

    def choose(step: Step) -> Array | None:
        nonlocal memory, decided
        if not playing.size:
            return None
        start = perf_counter()
        masks = {} if player.batched else {"action_masks": step.info["action_mask"][playing]}
        actions[:] = 0
        actions[playing], memory = player.predict(take(step.observation, playing), memory, **masks)
        decided = perf_counter() - start
        return actions

    begun = perf_counter()
    for length, step in enumerate(steps(envs, list(seeds), choose)):
        if length == 0:
            player.act(step.observation)  # compiles, so that no game's `seconds` includes compiling
        else:
            seconds += (decided if game.matches else perf_counter() - begun) / playing.size
            if length <= RECORDED:
                table = table if length <= len(table) else np.concatenate([table, np.empty_like(table)])
                table[length - 1] = actions
            over = (step.terminated | step.truncated)[playing]
            for i in playing[over]:
                figures = {name: step.info[name][i] for name in game.figures}
                yield played(seeds[i], table[: min(length, RECORDED), i], length, step.terminated[i], seconds, figures)
            playing, memory = playing[~over], None if memory is None else memory[~over]
        begun = perf_counter()


# -- processes ---------------------------------------------------------------------------------------------------------


def workers_of(workers: int | None) -> int:
    """A number of worker processes, by default one per core; 1, with a warning, if they cannot import the script.

    The script that Python reads from standard input is such a one. Raises ValueError for a number below 1.
    """
    workers = cores() if workers is None else integer("workers", workers, 1)
    main = sys.modules["__main__"]
    script = getattr(main, "__file__", None)
    if workers > 1 and script and getattr(main, "__spec__", None) is None and not Path(script).exists():
        reason = f"the script comes from {script}, which worker processes cannot import"
        warnings.warn(f"{reason}, so this process does all work", RuntimeWarning, stacklevel=3)
        return 1
    return workers


@contextmanager
def process_pool(workers: int) -> Generator[ProcessPoolExecutor]:
    """A pool of worker processes. Ctrl-C stops them without tracebacks, and they end when this process dies.

    The processes are spawned, because a forked child would inherit locks held by threads that it does not have. They
    share the cores: PyTorch has as many threads in each as there are cores for it.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # as Python's own check does
        raise SystemExit(f"mergefall: {MAIN_GUARD}")
    if sys.platform == "win32":
        workers = min(workers, 61)  # Windows waits for no more
    threads = max(1, cores() // workers)
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, spawn, initializer=_start_worker, initargs=(threads,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _start_worker(threads: int) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    if "torch" in sys.modules:  # it has read the variable
        sys.modules["torch"].set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent: Any = multiprocessing.parent_process()
    # A killed parent cannot stop its workers; they would wait for work forever.
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def on_processes(
    pool: ProcessPoolExecutor, function: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], in_order: bool = False
) -> Generator[Any]:
    """What `function` returns for the arguments of each job; in any order, unless `in_order`."""
    # Ctrl-C waits, in the processes that start here until they can end without a traceback.
    previous = None if sys.platform == "win32" else signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        futures = [pool.submit(function, *job) for job in jobs]
    finally:
        if previous is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)
    try:
        for future in futures if in_order else as_completed(futures):
            yield future.result()
    except BrokenProcessPool as error:
        sleep(2)  # Ctrl-C kills workers too, and its signal may reach this thread a moment later
        error.add_note(MAIN_GUARD)
        raise


def _on_ray(packed: bytes, work: Work, parts: Sequence[Sequence[int]]) -> Generator[list[Any]]:
    ray: Any = import_extra("ray")
    if not ray.is_initialized():
        ray.init()  # the cluster at RAY_ADDRESS, or one on this machine
    play, shared = ray.remote(_played), ray.put(packed)
    pending = [play.remote(shared, work, part) for part in parts]
    while pending:
        done, pending = ray.wait(pending)
        yield from ray.get(done)
