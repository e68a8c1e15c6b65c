"""Play episodes side by side: in this process, over worker processes, or on a Ray cluster.

An episode is a function of a task and a seed. This module maps that function over seeds.
"""

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
from functools import lru_cache
from itertools import chain
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import cloudpickle
import numpy as np
from mergefall.checks import integer
from mergefall.games import ENVIRONMENTS, game_of, games, rules_in, take
from mergefall.imports import import_extra, strings_in
from mergefall.threads import cores
from mergefall.typing import Array
from mergefall_baselines import Player, Trajectory, make, play_in_env
from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.player import Step, name_of_player, steps
from mergefall_baselines.registry import added, adopt, player_of

from mergefall_training.play.match import Match, environment
from mergefall_training.play.preferences import player_of_model
from mergefall_training.play.records import RECORDED, Episode, played

WORTH = 4.0  # seconds that workers must save: they take some to start
PART = 0.5  # seconds of games that a worker gets at a time
AT_ONCE = 1024  # games of one batch
MATCHES = 32  # of one batch
LOOK = 0.25  # seconds in which a game is tried
MAIN_GUARD = "in a script, call this under `if __name__ == '__main__':`, because worker processes import the script"


@dataclass(frozen=True)
class Task:
    """A player in a match: enough to play the episode of any seed."""

    player: Player
    match: Match

    @property
    def plays_matches(self) -> bool:
        """Whether an opponent decides too, which is fastest for many matches at once."""
        env_id = self.match.env_id
        return env_id in ENVIRONMENTS and game_of(env_id).matches and isinstance(self.player, KernelPlayer)

    def episodes(self, seeds: Sequence[int]) -> Generator[Episode]:
        """The episodes from ``reset(seed=seed)``, each as it ends."""
        if self.plays_matches:
            for first in range(0, len(seeds), MATCHES):
                yield from play_together(self, seeds[first : first + MATCHES])
            return
        for seed in seeds:
            start = perf_counter()
            one = self.trajectory(seed)
            yield played(seed, one.actions, len(one), one.terminated, perf_counter() - start, one.figures)

    def trajectory(self, seed: int, cap: int | None = None) -> Trajectory:
        """The episode from ``reset(seed=seed)``, truncated after `cap` actions; default: the task's own cap."""
        match = self.match
        where = match.env_id, seed, match.env_kwargs, match.max_episode_steps if cap is None else cap
        plain = match.adversary is None and match.max_pieces is None
        return self.player.play(*where) if plain else play_in_env(self.player, *where, match.around)

    def pack(self) -> bytes:
        """The task as bytes for another process; raises ValueError if the player cannot be pickled.

        A player that `make` made travels by name and options: a network has megabytes, and each seed takes a copy. What
        users registered travels along; cloudpickle also takes functions and classes of scripts and notebooks.
        """
        player: Any = self.player
        if player.made_as is not None:
            player = player.made_as, {**player.options, **player.functions}
        match = self.match.said()
        names = set(strings_in([player, match]))
        heuristics = {
            name: {one: those[one] for one in names & those.keys()}
            for name, those in ((game.name, game.library().added()) for game in games().values())
        }
        try:
            return cloudpickle.dumps((added(names), heuristics, player, Match(**match)))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            name = name_of_player(self.player)
            raise ValueError(f"{name} cannot be sent to other processes; workers=1 uses only this one") from error


@lru_cache(maxsize=1)
def unpack_task(packed: bytes) -> Task:
    """The task that `Task.pack` returned as bytes."""
    factories, heuristics, player, match = pickle.loads(packed)
    adopt(factories)
    for name, those in heuristics.items():
        games()[name].library().adopt(those)
    if isinstance(player, tuple):
        name, options = player
        return task(make(name, **options), match)
    return Task(player, match)


def _played(packed: bytes, seeds: Sequence[int]) -> list[Episode]:
    """In a worker process: the task's episodes from the seeds."""
    job = unpack_task(packed)
    job.trajectory(seeds[0], 1)  # loads kernels, so that no episode's `seconds` includes that
    return list(job.episodes(seeds))


def task(player: Any, match: Match) -> Task:
    """A player under the rules of a match; `player`: what `registry.player_of` takes.

    Raises ValueError for a player of other rules, or of another game.
    """
    kwargs = match.env_kwargs
    player = player_of_model(player_of(player), environment(match.env_id, kwargs), kwargs).with_rules(kwargs)
    if match.adversary is None and isinstance(player, KernelPlayer):
        rules = rules_in(match.env_id, kwargs, player.form.rules)  # raises for an environment of another game
        if player.heuristic is not None:
            player.heuristic.check_size(rules.rows, rules.cols)
    return Task(player, match)


def play_all(
    job: Task, seeds: Sequence[int], workers: int = 1, executor: str | ProcessPoolExecutor = "processes"
) -> Generator[Episode]:
    """Play the task's episodes from `seeds`; yields each as it ends, in any order.

    A `Player.batched` plays side by side in this process, unless on Ray. Others play

    - on the executor "processes" in `workers` processes, or in this one where games are so few or short that it is
      faster;
    - on "ray", or in a `process_pool`.

    Short games are sent many at a time, and matches that are played side by side.
    """
    if executor != "ray" and job.player.batched:
        for first in range(0, len(seeds), AT_ONCE):
            yield from play_together(job, seeds[first : first + AT_ONCE])
        return
    if not seeds:
        return
    job.trajectory(seeds[0], 1)  # errors show at once, and workers find compiled kernels on disk
    alone = executor == "processes"
    workers = min(workers, len(seeds))
    seconds = math.inf if alone and workers == 1 else _seconds_of_a_game(job, seeds[0])
    if alone and (workers == 1 or seconds * len(seeds) * (1 - 1 / workers) < WORTH):
        yield from job.episodes(seeds)
        return
    few = max(1, min(int(PART / seconds), len(seeds) // (4 * workers)))
    size = min(MATCHES, -(-len(seeds) // workers)) if job.plays_matches else few
    packed, parts = job.pack(), [seeds[first : first + size] for first in range(0, len(seeds), size)]
    if executor == "ray":
        yield from chain.from_iterable(_on_ray(packed, parts))
        return
    with nullcontext(executor) if isinstance(executor, ProcessPoolExecutor) else process_pool(workers) as pool:
        yield from chain.from_iterable(on_processes(pool, _played, [(packed, part) for part in parts]))


def _seconds_of_a_game(task: Task, seed: int) -> float:
    """How long the game from a seed takes; infinite if that is more than about a second."""
    cap, begun = 1, perf_counter()
    while perf_counter() - begun < LOOK:
        start = perf_counter()
        most = task.match.max_episode_steps
        length = len(task.trajectory(seed, min(cap, most or cap)))
        if length < cap or length == most:
            return perf_counter() - start
        cap *= 4
    return math.inf


# -- side by side in one batched environment ---------------------------------------------------------------------------


def play_together(job: Task, seeds: Sequence[int]) -> Generator[Episode]:
    """The task's episodes, each as it ends, as `Task.episodes` has them; for a `Player.batched` or a `KernelPlayer`.

    The `seconds` of a game are its share of the total time, those of a match of the player's own decisions.
    """
    player, n, game = job.player, len(seeds), game_of(job.match.env_id)
    envs = job.match.make(n)
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
    os.environ["PYTHON_CPU_COUNT"] = str(threads)  # which `cores` reads
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


def _on_ray(packed: bytes, parts: Sequence[Sequence[int]]) -> Generator[list[Episode]]:
    ray: Any = import_extra("ray")
    if not ray.is_initialized():
        ray.init()  # the cluster at RAY_ADDRESS, or one on this machine
    play, shared = ray.remote(_played), ray.put(packed)
    pending = [play.remote(shared, part) for part in parts]
    while pending:
        done, pending = ray.wait(pending)
        yield from ray.get(done)
