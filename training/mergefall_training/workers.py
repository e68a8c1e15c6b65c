"""Playing episodes side by side: in this process, over processes, or on a Ray cluster.

Whatever plays them, an episode is a function of a task and a seed; only how that function is mapped over the seeds
differs here.
"""

from __future__ import annotations

import inspect
import json
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter, sleep
from typing import Any

import gymnasium as gym
from gymnasium.error import DependencyNotInstalled
from gymnasium.error import Error as GymnasiumError
from mergefall.checks import integer
from mergefall_baselines import Player, Trajectory, play_in_env
from mergefall_baselines.player import Predictor
from mergefall_baselines.registry import factory_of

from mergefall_training.records import Episode, episode_from


@dataclass(frozen=True)
class Task:
    """Who plays what: all that is needed to play the episode of any seed."""

    player: Predictor
    env_id: str
    env_kwargs: dict[str, Any]
    max_episode_steps: int | None

    def starter(self) -> Callable[[int], Episode]:
        """The task as a function of the seed, compiled: no episode's ``seconds`` holds the time to get ready."""

        def play(seed: int, cap: int | None = self.max_episode_steps) -> Episode:
            start = perf_counter()
            trajectory = self.trajectory(seed, cap)
            seconds = perf_counter() - start
            length, terminated = len(trajectory), bool(trajectory.terminated)
            figures = {name: int(value) for name, value in trajectory.figures.items()}
            return episode_from(dict(seed=seed, length=length, terminated=terminated, seconds=seconds, **figures))

        play(0, cap=1)
        return play

    def trajectory(self, seed: int, cap: int | None) -> Trajectory:
        """The episode from ``reset(seed=seed)``, cut off after `cap` actions."""
        if isinstance(self.player, Player):
            return self.player.play(self.env_id, seed, self.env_kwargs, cap)
        return play_in_env(self.player, self.env_id, seed, self.env_kwargs, cap)

    def pack(self) -> bytes:
        """The task as bytes for another process; one that cannot travel is a ValueError."""
        if isinstance(self.player, Player):
            try:
                factory_of(self.player.name)
            except ValueError as error:
                name = self.player.name
                raise ValueError(f"{name!r} is not registered; other processes make players by their names") from error
        try:
            return pickle.dumps(self)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ValueError(f"{self.player!r} cannot be sent to other processes; workers=1 plays here") from error


@lru_cache(maxsize=1)
def _unpack_task(packed: bytes) -> Task:
    return pickle.loads(packed)


@lru_cache(maxsize=1)
def _unpack(packed: bytes) -> Callable[[int], Episode]:
    return _unpack_task(packed).starter()


def _play(packed: bytes, seed: int) -> Episode:
    return _unpack(packed)(seed)


def _trajectory(packed: bytes, seed: int) -> Trajectory:
    task = _unpack_task(packed)
    return task.trajectory(seed, task.max_episode_steps)


def task(player: Predictor, env_id: str, env_kwargs: Mapping[str, Any] | None, max_episode_steps: int | None) -> Task:
    """A task that fits together: the environment exists and takes the kwargs, and the player plays by its rules.

    The environment's defaults are filled in. A misfit is a ValueError.
    """
    kwargs = dict(env_kwargs or {})
    if max_episode_steps is not None:
        max_episode_steps = integer("max_episode_steps", max_episode_steps, 1)
    env = environment(env_id, kwargs, max_episode_steps=max_episode_steps)
    env.close()
    spec = env.spec
    assert spec is not None
    # "mergefall:mergefall/…" is the id that players know; another package's prefix tells other processes to import it.
    known = spec.id if spec.namespace == "mergefall" else env_id
    kwargs = all_kwargs(env, kwargs)
    if isinstance(player, Player):
        player = player.with_rules(kwargs)
    return Task(player, known, kwargs, spec.max_episode_steps)


def environment(env_id: str, kwargs: Mapping[str, Any], **options: Any) -> gym.Env[Any, Any]:
    """``gym.make`` with ``kwargs`` of JSON types and its own ``options``; what it does not take is a ValueError."""
    try:
        json.dumps(kwargs)
        return gym.make(env_id, **options, **kwargs)
    except DependencyNotInstalled:
        raise
    except (GymnasiumError, ImportError, TypeError) as error:
        raise ValueError(f"no environment {env_id!r} with kwargs {dict(kwargs)}: {error}") from error


def all_kwargs(env: gym.Env[Any, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that an environment made by id with ``kwargs`` has: the id's and the defaults, too."""
    parameters = inspect.signature(type(env.unwrapped)).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty and p.name != "render_mode"}
    assert env.spec is not None
    return defaults | env.spec.kwargs | dict(kwargs)


def check_executor(executor: object) -> None:
    """Raises ValueError for what `play_all` cannot play on."""
    if executor not in ("processes", "ray") and not isinstance(executor, ProcessPoolExecutor):
        raise ValueError(f"executor={executor!r}; expected 'processes', 'ray' or a `process_pool`")


def play_all(task: Task, seeds: Sequence[int], workers: int, executor: str | ProcessPoolExecutor) -> Generator[Episode]:
    """Play the task's episodes from ``seeds``, yielding each as it ends, in any order."""
    if not seeds:
        return
    # Done here first also where others play: what is wrong shows at once, and they find compiled kernels on disk.
    play = task.starter()
    if executor == "ray":
        yield from _on_ray(task.pack(), seeds)
    elif isinstance(executor, ProcessPoolExecutor):
        yield from _on_processes(task.pack(), seeds, executor)
    elif min(workers, len(seeds)) == 1:
        yield from map(play, seeds)
    else:
        with process_pool(min(workers, len(seeds))) as pool:
            yield from _on_processes(task.pack(), seeds, pool)


def trajectories(task: Task, seeds: Sequence[int], workers: int) -> Generator[Trajectory]:
    """The task's episodes from ``seeds``, in that order, action by action."""
    if min(workers, len(seeds)) <= 1:
        for seed in seeds:
            yield task.trajectory(seed, task.max_episode_steps)
        return
    task.trajectory(0, 1)  # compiles, so that workers find kernels on disk
    with process_pool(min(workers, len(seeds))) as pool:
        yield from _on_processes(task.pack(), seeds, pool, _trajectory, in_order=True)


@contextmanager
def process_pool(workers: int) -> Generator[ProcessPoolExecutor]:
    """Worker processes that a Ctrl-C stops at once, without a traceback each, and that end when this process dies.

    They are spawned: a forked child would have the locks that this process's threads hold, but not the threads.
    """
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_start_worker)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held_back() -> Generator[None]:
    """Ctrl-C waits in here, and in processes started in here until they are ready to end without a traceback."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    # A parent that was killed cannot tell its workers, and they would wait for work for ever.
    threading.Thread(target=end_with_parent, daemon=True).start()


def _on_processes(
    packed: bytes, seeds: Sequence[int], pool: ProcessPoolExecutor, function: Any = _play, in_order: bool = False
) -> Generator[Any]:
    with _interrupts_held_back():
        futures = [pool.submit(function, packed, seed) for seed in seeds]
    try:
        for future in futures if in_order else as_completed(futures):
            yield future.result()
    except BrokenProcessPool as error:
        sleep(0.5)  # workers die of a Ctrl-C as well, and it may arrive in this thread a moment later
        error.add_note("In a script, play under `if __name__ == '__main__':`, for worker processes import the script.")
        raise


def _on_ray(packed: bytes, seeds: Sequence[int]) -> Generator[Episode]:
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise DependencyNotInstalled("executor='ray' needs Ray: pip install 'mergefall[ray]'") from error
    if not ray.is_initialized():
        ray.init()  # the cluster at RAY_ADDRESS, or one on this machine
    play, shared = ray.remote(_play), ray.put(packed)
    pending = [play.remote(shared, seed) for seed in seeds]
    try:
        while pending:
            done, pending = ray.wait(pending)
            yield from ray.get(done)
    finally:
        for reference in pending:
            ray.cancel(reference)
