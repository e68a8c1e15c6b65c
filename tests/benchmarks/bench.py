"""How fast the environments and players are, beside others on the same machine in the same run.

    python tests/benchmarks/bench.py [2048] [tetris] [sb3] [learn] [draw] [start] [--rounds 5]

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


def contest(heading: str, contestants: list[Contestant], rounds: int) -> list[float]:
    """Let the contestants take turns for some rounds, then print what each did; their medians."""
    print(f"\n{heading}")
    for contestant in contestants:
        contestant.start()
    for _ in range(rounds):
        for contestant in contestants:
            contestant.measure()
    for contestant in contestants:
        contestant.process.communicate()
        low, high = min(contestant.figures), max(contestant.figures)
        print(f"  {contestant.title:44} {contestant.median:>13,.0f}/s   ({low:,.0f} to {high:,.0f})")
    return [contestant.median for contestant in contestants]


def say(title: str, figure: float, unit: str = "x", target: float | None = None, smaller: bool = False) -> None:
    """Print a figure, beside its goal if it has one."""
    line = f"  {title:44} {figure:>13,.1f}{unit:2}"
    if target is not None:
        reached = figure <= target if smaller else figure >= target
        line += f"   goal {'<=' if smaller else '>='} {target:g}{unit}  {'reached' if reached else 'MISSED'}"
    print(line)


def threads_of(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def bench_single(rounds: int) -> None:
    contestants = [
        Contestant("mergefall", "single-ours"),
        Contestant("gymnasium-2048 0.1.2", "single-peer", peer="gymnasium-2048"),
        Contestant("an environment that does nothing", "single-noop"),
    ]
    ours, peer, noop = contest("One environment through gymnasium.make, random actions", contestants, rounds)
    say("mergefall / gymnasium-2048", ours / peer, target=35)
    say("mergefall, thousand steps/s", ours / 1000, "k", 390)
    say("the empty environment / mergefall", noop / ours)


def bench_batched(rounds: int) -> None:
    ours = [
        Contestant(f"mergefall, {size} games, {threads_of(threads)}", f"batched-ours-{threads}", size)
        for threads in (1, 2)
        for size in SIZES
    ]
    pgx = [
        Contestant(f"pgx 2.6, {size} games{way}", f"batched-pgx{name}", size, "pgx")
        for size in SIZES
        for name, way in (("", ""), ("-scan", ", lax.scan"))
    ]
    heading = "Batched, observations and masks in every step; pgx uses all cores"
    figures = contest(heading, ours + pgx, rounds)
    theirs = figures[len(ours) :]
    for threads, target in ((1, 25), (2, 50)):
        best = max(figures[len(SIZES) * (threads - 1) :][: len(SIZES)])
        where = f"mergefall, {threads_of(threads)}"
        say(f"{where}, best / pgx, 1024 games", best / max(theirs[:2]), target=target)
        say(f"{where}, best / pgx, best", best / max(theirs))
        say(f"{where}, million steps/s", best / 1e6, "M", 19 * threads)


def bench_rules(rounds: int) -> None:
    (ours,) = contest("Random legal play in a compiled loop, one core", [Contestant("mergefall", "rules")], rounds)
    say("million moves/s", ours / 1e6, "M", 25)


def bench_tetris_single(rounds: int) -> None:
    contestants = [
        Contestant("mergefall", "tetris-single-ours"),
        Contestant("mergefall, step and afterstates()", "tetris-single-afterstates"),
        Contestant("Tetris-Gymnasium 0.3.1, grouped", "tetris-single-peer", peer="tetris-gymnasium"),
    ]
    heading = "Tetris, one environment through gymnasium.make, random legal placements, 10x20"
    ours, after, peer = contest(heading, contestants, rounds)
    say("mergefall / Tetris-Gymnasium", ours / peer, target=1000)
    say("with all afterstates, as the peer gives / it", after / peer)


def bench_tetris_batched(rounds: int) -> None:
    ours = [
        Contestant(f"mergefall, {size} games, {threads_of(threads)}", f"tetris-batched-{threads}", size)
        for threads in (1, 2)
        for size in TETRIS_SIZES
    ]
    jumanji = [
        Contestant(f"jumanji 1.1.2, {size} games", "tetris-batched-jumanji", size, "jumanji") for size in TETRIS_SIZES
    ]
    heading = "Tetris, batched, random legal placements, 10x10; jumanji uses all cores"
    figures = contest(heading, ours + jumanji, rounds)
    best, theirs = max(figures[: len(ours)]), figures[len(ours) :]
    say("mergefall, best / jumanji, 256 games", best / theirs[0], target=15)
    say("mergefall, best / jumanji, best", best / max(theirs))


def bench_tetris_players(rounds: int) -> None:
    contestants = [
        Contestant("greedy BCTS, 10x20", "tetris-greedy"),
        Contestant("the same in plain C (greedy.c)", "tetris-greedy-c"),
        Contestant("two-tetrad deep, 10x20, drops", "tetris-deep-drop"),
        Contestant("two-tetrad deep, 10x20, slides", "tetris-deep-slide"),
        Contestant("Quintris expectimax depth 2, 15x25", "tetris-quintris"),
    ]
    heading = "Tetris players, decisions/s in whole games, one core"
    bcts, plain, deep, slides, quintris = contest(heading, contestants, rounds)
    say("greedy BCTS, thousand decisions/s", bcts / 1000, "k", 1000)
    say("greedy BCTS / plain C", bcts / plain)
    say("two-tetrad deep, drops, ms a move", 1000 / deep, "ms", 1, smaller=True)
    say("two-tetrad deep, slides, ms a move", 1000 / slides, "ms", 1, smaller=True)
    say("Quintris depth 2, ms a move", 1000 / quintris, "ms", 20, smaller=True)
    say("its document: 10 s a move / mergefall", 10 * quintris)


def bench_stable_baselines(rounds: int) -> None:
    for game in ("2048", "tetris"):
        contestants = [
            Contestant(f"NativeVecEnv, {game}", f"sb3-{game}-native", SB3_SIZE),
            Contestant(f"DummyVecEnv of single ones, {game}", f"sb3-{game}-dummy", SB3_SIZE),
        ]
        heading = f"Stable-Baselines3's VecEnv, {SB3_SIZE} games, random legal actions"
        native, dummy = contest(heading, contestants, rounds)
        say(f"NativeVecEnv / DummyVecEnv, {game}", native / dummy, target=20)


def bench_learning(rounds: int) -> None:
    for game in ("2048", "tetris"):
        names = ["maskable-ppo", "dqn", "maskable-ppo-own", "dqn-own", "distill", "kickstart", "one-file"]
        names += ["ntuple"] if game == "2048" else []
        contestants = [
            Contestant(f"{name.replace('-own', ', SB3 network')}, {game}", f"learn-{game}-{name}") for name in names
        ]
        heading = "Learners by their presets, and training/ppo.py, steps/s on all cores, evaluations aside"
        ppo, dqn, own_ppo, own_dqn, *_ = contest(heading, contestants, rounds)
        say(f"maskable-ppo, {game}, thousand steps/s", ppo / 1000, "k", 20 if game == "2048" else None)
        say(f"maskable-ppo, {game} / with SB3's network", ppo / own_ppo)
        say(f"dqn, {game} / with SB3's network", dqn / own_dqn)


def bench_drawing(rounds: int) -> None:
    contestants = [
        Contestant("Gymnasium's CartPole", "draw-cartpole"),
        Contestant("2048", "draw-2048"),
        Contestant("Tetris, 10x20", "draw-tetris"),
    ]
    cartpole, *ours = contest('A step and a picture, render_mode="rgb_array"', contestants, rounds)
    for contestant, figure in zip(contestants[1:], ours, strict=True):
        say(f"{contestant.title} / CartPole", figure / cartpole)


def bench_start(rounds: int) -> None:
    print("\nFrom `python` to the first step: with an empty kernel cache, then with a full one")
    games = (("mergefall/Game2048-v0", 1, "one 2048"), ("mergefall/Game2048-v0", 64, "64 games of 2048"))
    games += (("mergefall/Game2048-v0", 1024, "1024 games of 2048, all threads"),)
    games += (("mergefall/Tetris-v0", 1, "one Tetris"), ("mergefall/Tetris-v0", 1024, "1024 games of Tetris"))
    for env, size, title in games:
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            times = []
            for _ in range(1 + rounds):
                start = time.perf_counter()
                command = [sys.executable, "-c", START.format(env=env, size=size)]
                subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
                times.append(time.perf_counter() - start)
        say(f"{title}, cold", times[0], "s", 10, smaller=True)
        say(f"{title}, warm", statistics.median(times[1:]), "s", 1.5, smaller=True)


PARTS = {
    "2048": (bench_single, bench_batched, bench_rules),
    "tetris": (bench_tetris_single, bench_tetris_batched, bench_tetris_players),
    "sb3": (bench_stable_baselines,),
    "learn": (bench_learning,),
    "draw": (bench_drawing,),
    "start": (bench_start,),
}


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
