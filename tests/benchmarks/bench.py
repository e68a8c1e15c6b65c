"""How fast the environments and players are, beside others on the same machine in the same run.

    python tests/benchmarks/bench.py [2048] [tetris] [sb3] [learn] [draw] [start] [--rounds 5]

The others live in environments of their own under `.bench/`, made on the first run (pip, a minute or two). Every
contestant runs in a process of its own; they take turns, and the median of the rounds is reported.
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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PEERS = {
    "gymnasium-2048": "gymnasium-2048==0.1.2",
    "pgx": "pgx==2.6.0",
    "tetris-gymnasium": "tetris-gymnasium==0.3.1",
    "jumanji": "jumanji==1.1.2",
}
SIZES, TETRIS_SIZES = (1024, 4096, 16384), (256, 1024, 4096)  # games of a batch, the same for ours and for a peer
SB3_SIZE = 1024

START = """
import gymnasium as gym, mergefall
if {size} == 1:
    env = gym.make("{env}")
    env.reset(seed=0)
    env.step(0)
else:
    envs = gym.make_vec("{env}", num_envs={size})
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
    """A worker process and the figures it has given; `peer`: whose environment it runs in, "" for ours."""

    title: str
    worker: str
    size: int = 1
    peer: str = ""
    figures: list[float] = field(default_factory=list)

    def start(self) -> None:
        python, environment = sys.executable, dict(os.environ)
        if self.peer:
            python = peer_python(self.peer)
            environment.pop("PYTHONPATH", None)  # the peer's own packages, not ours
        command = [python, str(Path(__file__).with_name("workers.py")), self.worker, str(self.size)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, text=True, env=environment, **pipes)
        self.answer()

    def measure(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.figures.append(float(self.answer()))

    def answer(self) -> str:
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"{self.title} ended with {self.process.wait()}")
        return line

    @property
    def median(self) -> float:
        return statistics.median(self.figures)


@dataclass
class Contest:
    """Contestants that take turns, and figures of their medians: a title, a unit and a function of all medians."""

    heading: str
    contestants: list[Contestant]
    figures: list[tuple[str, str, Callable[..., float]]]

    def run(self, rounds: int) -> None:
        print(f"\n{self.heading}")
        for contestant in self.contestants:
            contestant.start()
        for _ in range(rounds):
            for contestant in self.contestants:
                contestant.measure()
        for contestant in self.contestants:
            contestant.process.communicate()
            low, high = min(contestant.figures), max(contestant.figures)
            print(f"  {contestant.title:44} {contestant.median:>13,.0f}/s   ({low:,.0f} to {high:,.0f})")
        for title, unit, figure in self.figures:
            say(title, figure(*(contestant.median for contestant in self.contestants)), unit)


def say(title: str, figure: float, unit: str) -> None:
    print(f"  {title:44} {figure:>13,.1f}{unit}")


def bench_start(rounds: int) -> None:
    print("\nFrom `python` to the first step: with an empty kernel cache, then with a full one")
    for env, size, title in (
        ("mergefall/Game2048-v0", 1, "one 2048"),
        ("mergefall/Game2048-v0", 64, "64 games of 2048"),
        ("mergefall/Game2048-v0", 1024, "1024 games of 2048, all threads"),
        ("mergefall/Tetris-v0", 1, "one Tetris"),
        ("mergefall/Tetris-v0", 1024, "1024 games of Tetris"),
    ):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            times = []
            for _ in range(1 + rounds):
                start = time.perf_counter()
                command = [sys.executable, "-c", START.format(env=env, size=size)]
                subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
                times.append(time.perf_counter() - start)
        say(f"{title}, cold", times[0], "s")
        say(f"{title}, warm", statistics.median(times[1:]), "s")


BATCHES = [  # the first halves with one thread
    Contestant(f"mergefall, {size} games, {threads} thread{'s' * (threads > 1)}", f"batched-ours-{threads}", size)
    for threads in (1, 2)
    for size in SIZES
]
PGX = [
    Contestant(f"pgx 2.6, {size} games{way}", f"batched-pgx{name}", size, "pgx")
    for size in SIZES
    for name, way in (("", ""), ("-scan", ", lax.scan"))
]
TETRIS_BATCHES = [
    Contestant(f"mergefall, {size} games, {threads} thread{'s' * (threads > 1)}", f"tetris-batched-{threads}", size)
    for threads in (1, 2)
    for size in TETRIS_SIZES
]
JUMANJI = [
    Contestant(f"jumanji 1.1.2, {size} games", "tetris-batched-jumanji", size, "jumanji") for size in TETRIS_SIZES
]
LEARNERS = ["maskable-ppo", "dqn", "maskable-ppo-own", "dqn-own", "distill", "kickstart", "one-file"]
CONTESTS = {
    "2048": [
        Contest(
            "One environment through gymnasium.make, random actions",
            [
                Contestant("mergefall", "single-ours"),
                Contestant("gymnasium-2048 0.1.2", "single-peer", peer="gymnasium-2048"),
            ],
            [
                ("mergefall / gymnasium-2048", "x", lambda ours, peer: ours / peer),
            ],
        ),
        Contest(
            "Batched, observations and masks in every step; pgx uses all cores",
            BATCHES + PGX,
            [
                ("mergefall, 1 thread, best / pgx, 1024 games", "x", lambda *all: max(all[:3]) / max(all[6:8])),
                ("mergefall, 1 thread, best / pgx, best", "x", lambda *all: max(all[:3]) / max(all[6:])),
                ("mergefall, 2 threads, best / pgx, 1024 games", "x", lambda *all: max(all[3:6]) / max(all[6:8])),
                ("mergefall, 2 threads, best / pgx, best", "x", lambda *all: max(all[3:6]) / max(all[6:])),
            ],
        ),
        Contest("Random legal play in a compiled loop, one core", [Contestant("mergefall", "rules")], []),
    ],
    "tetris": [
        Contest(
            "Tetris, one environment through gymnasium.make, random legal placements, 10x20",
            [
                Contestant("mergefall", "tetris-single-ours"),
                Contestant("mergefall, step and afterstates()", "tetris-single-afterstates"),
                Contestant("Tetris-Gymnasium 0.3.1, grouped", "tetris-single-peer", peer="tetris-gymnasium"),
            ],
            [
                ("mergefall / Tetris-Gymnasium", "x", lambda ours, after, peer: ours / peer),
                ("with all afterstates, as the peer gives / it", "x", lambda ours, after, peer: after / peer),
            ],
        ),
        Contest(
            "Tetris, batched, random legal placements, 10x10; jumanji uses all cores",
            TETRIS_BATCHES + JUMANJI,
            [
                ("mergefall, best / jumanji, 256 games", "x", lambda *all: max(all[:6]) / all[6]),
                ("mergefall, best / jumanji, best", "x", lambda *all: max(all[:6]) / max(all[6:])),
            ],
        ),
        Contest(
            "Tetris players, decisions/s in whole games, one core",
            [
                Contestant("greedy BCTS, 10x20", "tetris-greedy"),
                Contestant("the same in plain C (greedy.c)", "tetris-greedy-c"),
                Contestant("two-tetrad deep, 10x20, drops", "tetris-deep-drop"),
                Contestant("two-tetrad deep, 10x20, slides", "tetris-deep-slide"),
                Contestant("Quintris expectimax depth 2, 15x25", "tetris-quintris"),
            ],
            [
                ("greedy BCTS / plain C", "x", lambda bcts, plain, *others: bcts / plain),
                ("two-tetrad deep, drops, ms a move", "ms", lambda *all: 1000 / all[2]),
                ("two-tetrad deep, slides, ms a move", "ms", lambda *all: 1000 / all[3]),
                ("Quintris depth 2, ms a move", "ms", lambda *all: 1000 / all[4]),
                ("its document: 10 s a move / mergefall", "x", lambda *all: 10 * all[4]),
            ],
        ),
    ],
    "keys": [
        Contest(
            "Tetris by keys, one environment through gymnasium.make, random keys",
            [
                Contestant("mergefall", "keys-single-ours"),
                Contestant("Tetris-Gymnasium 0.3.1", "keys-single-peer", peer="tetris-gymnasium"),
            ],
            [("mergefall / Tetris-Gymnasium", "x", lambda ours, peer: ours / peer)],
        ),
        Contest(
            "Tetris by keys, batched, random keys that change something",
            [
                Contestant(
                    f"mergefall, {size} games, {threads} thread{'s' * (threads > 1)}", f"keys-batched-{threads}", size
                )
                for threads in (1, 2)
                for size in SIZES
            ],
            [],
        ),
        Contest("Reachable placements of a piece, boards/s, one core", [Contestant("mergefall", "keys-reachable")], []),
    ],
    "sb3": [
        Contest(
            f"Stable-Baselines3's VecEnv, {SB3_SIZE} games, random legal actions",
            [
                Contestant(f"NativeVecEnv, {game}", f"sb3-{game}-native", SB3_SIZE),
                Contestant(f"DummyVecEnv of single ones, {game}", f"sb3-{game}-dummy", SB3_SIZE),
            ],
            [(f"NativeVecEnv / DummyVecEnv, {game}", "x", lambda native, dummy: native / dummy)],
        )
        for game in ("2048", "tetris")
    ],
    "learn": [
        Contest(
            "Learners by their presets, and training/ppo.py, steps/s on all cores, evaluations aside",
            [
                Contestant(f"{name.replace('-own', ', SB3 network')}, {game}", f"learn-{game}-{name}")
                for name in LEARNERS + ["ntuple"] * (game == "2048")
            ],
            [
                (f"maskable-ppo, {game} / with SB3's network", "x", lambda *all: all[0] / all[2]),
                (f"dqn, {game} / with SB3's network", "x", lambda *all: all[1] / all[3]),
            ],
        )
        for game in ("2048", "tetris")
    ],
    "draw": [
        Contest(
            'A step and a picture, render_mode="rgb_array"',
            [
                Contestant("Gymnasium's CartPole", "draw-cartpole"),
                Contestant("2048", "draw-2048"),
                Contestant("Tetris, 10x20", "draw-tetris"),
            ],
            [
                ("2048 / CartPole", "x", lambda cartpole, ours, tetris: ours / cartpole),
                ("Tetris, 10x20 / CartPole", "x", lambda cartpole, ours, tetris: tetris / cartpole),
            ],
        )
    ],
}
PARTS = {part: [contest.run for contest in contests] for part, contests in CONTESTS.items()} | {"start": [bench_start]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure, of {', '.join(PARTS)} (all)")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each contestant takes (5)")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for part in options.parts or PARTS:
        for bench in PARTS[part]:
            bench(options.rounds)


if __name__ == "__main__":
    main()
