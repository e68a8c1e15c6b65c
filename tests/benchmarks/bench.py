"""How fast the 2048 environments are, beside others on the same machine in the same run.

    python tests/benchmarks/bench.py [--rounds 5]

The others live in environments of their own under `.bench/`, made on the first run (pip, a minute or two). Every
contestant runs in a process of its own; they take turns, and the median of the rounds is reported. Figures of ours have
their goals beside them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
PEERS = {"gymnasium-2048": "gymnasium-2048==0.1.2", "pgx": "pgx==2.6.0"}
OUR_SIZES, PGX_SIZES = (1024, 4096, 16384), (1024, 8192)

START = """
import gymnasium as gym, mergefall
if {size} == 1:
    env = gym.make("mergefall/Game2048-v0")
    env.reset(seed=0)
    env.step(0)
else:
    envs = gym.make_vec("mergefall/Game2048-v0", num_envs={size})
    envs.reset(seed=0)
    envs.step([0] * {size})
"""


def peer_python(name: str) -> str:
    """The Python of a peer's own environment, which is made if it is not there yet."""
    folder = Path(".bench") / name
    binary = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "made").exists():
        print(f"making {folder} for {PEERS[name]}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([binary, "-m", "pip", "install", "--quiet", PEERS[name]], check=True)
        (folder / "made").touch()
    return str(binary)


@dataclass
class Contestant:
    """A worker process and the figures it has given."""

    title: str
    worker: str
    size: int = 1
    python: str = sys.executable
    figures: list[float] = field(default_factory=list)

    def start(self) -> None:
        environment = dict(os.environ)
        if self.python != sys.executable:
            environment.pop("PYTHONPATH", None)  # the peer's own packages, not ours
        command = [self.python, str(HERE / "workers.py"), self.worker, str(self.size)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._answer("ready")

    def measure(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.figures.append(float(self._answer()))

    def _answer(self, expected: str | None = None) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line or expected not in (None, line):
            raise RuntimeError(f"{self.title} answered {line!r} and ended with {self.process.wait()}")
        return line

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    @property
    def median(self) -> float:
        return statistics.median(self.figures)


def contest(contestants: list[Contestant], rounds: int) -> list[Contestant]:
    """Let the contestants take turns for some rounds, then print what each did."""
    for contestant in contestants:
        contestant.start()
    for _ in range(rounds):
        for contestant in contestants:
            contestant.measure()
    for contestant in contestants:
        contestant.stop()
        low, high = min(contestant.figures), max(contestant.figures)
        print(f"  {contestant.title:44} {contestant.median:>13,.0f}/s   ({low:,.0f} to {high:,.0f})")
    return contestants


def goal(title: str, figure: float, target: float, unit: str, smaller: bool = False) -> None:
    reached = figure <= target if smaller else figure >= target
    sign = "<=" if smaller else ">="
    print(f"  {title:44} {figure:>13,.1f}{unit:2}   goal {sign} {target:g}{unit}  {'reached' if reached else 'MISSED'}")


def bench_single(rounds: int) -> None:
    print("\nOne environment through gymnasium.make, random actions")
    ours, peer, noop = contest(
        [
            Contestant("mergefall", "single-ours"),
            Contestant("gymnasium-2048 0.1.2", "single-peer", python=peer_python("gymnasium-2048")),
            Contestant("an environment that does nothing", "single-noop"),
        ],
        rounds,
    )
    goal("mergefall / gymnasium-2048", ours.median / peer.median, 35, "x")
    goal("mergefall, thousand steps/s", ours.median / 1000, 390, "k")
    print(f"  {'the empty environment / mergefall':44} {noop.median / ours.median:>13,.1f}x")


def bench_batched(rounds: int) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    print(f"\nBatched, observations and masks in every step ({cores} cores; pgx uses all of them)")
    python = peer_python("pgx")
    ours = {
        threads: [
            Contestant(
                f"mergefall, {size} games, {threads} thread{'s' * (threads > 1)}", f"batched-ours-{threads}", size
            )
            for size in OUR_SIZES
        ]
        for threads in (1, 2)
    }
    pgx = [
        Contestant(f"pgx 2.6, {size} games{way}", f"batched-pgx{name}", size, python)
        for size in PGX_SIZES
        for name, way in (("", ""), ("-scan", ", lax.scan"))
    ]
    contest(ours[1] + ours[2] + pgx, rounds)
    base = max(contestant.median for contestant in pgx if contestant.size == 1024)
    best = max(contestant.median for contestant in pgx)
    for threads, target in ((1, 25), (2, 50)):
        figure = max(contestant.median for contestant in ours[threads])
        where = f"{threads} thread{'s' * (threads > 1)}"
        goal(f"mergefall, {where}, best / pgx, 1024 games", figure / base, target, "x")
        print(f"  {f'mergefall, {where}, best / pgx, best':44} {figure / best:>13,.1f}x")
        goal(f"mergefall, {where}, million steps/s", figure / 1e6, 19 * threads, "M")


def bench_rules(rounds: int) -> None:
    print("\nRandom legal play in a compiled loop, one core")
    (ours,) = contest([Contestant("mergefall", "rules")], rounds)
    goal("million moves/s", ours.median / 1e6, 25, "M")


def bench_start(rounds: int) -> None:
    print("\nFrom `python` to the first step: with an empty kernel cache, then with a full one")
    for size, title in ((1, "one environment"), (64, "64 games"), (1024, "1024 games, all threads")):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            times = []
            for _ in range(1 + rounds):
                start = time.perf_counter()
                command = [sys.executable, "-c", START.format(size=size)]
                subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
                times.append(time.perf_counter() - start)
        goal(f"{title}, cold", times[0], 10, "s", smaller=True)
        goal(f"{title}, warm", statistics.median(times[1:]), 1.5, "s", smaller=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="turns that each contestant takes (5)")
    rounds = parser.parse_args().rounds
    for bench in (bench_single, bench_batched, bench_rules, bench_start):
        bench(rounds)


if __name__ == "__main__":
    main()
