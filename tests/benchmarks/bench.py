"""How fast the environments and players are, beside others on the same machine in the same run.

    python tests/benchmarks/bench.py [2048] [tetris] [keys] [sb3] [learn] [draw] [start] [--rounds 5]

The others live in environments of their own under `.bench/`, made on the first run (pip, a minute or two). Every
worker of `workers.py` runs in a process of its own; they take turns, and the median of the rounds is reported.
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import NamedTuple

PEERS = {  # by worker, the package whose environment it runs in
    "single-peer": "gymnasium-2048==0.1.2",
    "batched-pgx": "pgx==2.6.0",
    "batched-pgx-scan": "pgx==2.6.0",
    "tetris-single-peer": "tetris-gymnasium==0.3.1",
    "keys-single-peer": "tetris-gymnasium==0.3.1",
    "tetris-batched-jumanji": "jumanji==1.1.2",
}
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


def peer_python(package):
    """The Python of a peer's own environment, which is made if it is not there yet."""
    folder = Path(".bench") / package.partition("==")[0]
    binary = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "made").exists():
        print(f"making {folder} for {package}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([binary, "-m", "pip", "install", "--quiet", package], check=True)
        (folder / "made").touch()
    return binary


def figures_of(worker, size):
    """The figures of a worker, in a process that begins with the first one."""
    python, environment = Path(sys.executable), dict(os.environ)
    if worker in PEERS:
        python = peer_python(PEERS[worker])
        environment.pop("PYTHONPATH", None)  # the peer's own packages, not ours
    command = [python, Path(__file__).with_name("workers.py"), worker, str(size)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        while True:
            process.stdin.write("\n")
            process.stdin.flush()
            if not (line := process.stdout.readline()):
                raise RuntimeError(f"{worker} ended with {process.wait()}")
            yield float(line)


class Contest(NamedTuple):
    """Workers that take turns, at each size of a batch; `ratios`: pairs `A/B`, of the best of the sizes."""

    heading: str
    workers: str
    ratios: str = ""
    sizes: tuple[int, ...] = (1,)

    def run(self, rounds):
        print(f"\n{self.heading}")
        turns = {one: figures_of(*one) for one in itertools.product(self.workers.split(), self.sizes)}
        taken = [[next(figures) for figures in turns.values()] for _ in range(rounds)]
        medians = {}
        for (worker, size), figures in zip(turns, zip(*taken, strict=True), strict=True):
            turns[worker, size].close()
            median, games = statistics.median(figures), f", {size} games" if size > 1 else ""
            medians.setdefault(worker, []).append(median)
            spread = f"({min(figures):,.0f} to {max(figures):,.0f})"
            print(f"  {worker + games:44} {median:>13,.0f}/s   {spread}   {1000 / median:.3g} ms each")
        for ratio in self.ratios.split():
            ours, theirs = ratio.split("/")
            print(f"  {ratio:44} {max(medians[ours]) / max(medians[theirs]):>13,.1f}x")


class Start:
    """From `python` to the first step."""

    def run(self, rounds):
        print("\nFrom `python` to the first step: with an empty kernel cache, then with a full one")
        for env, size in itertools.product(("mergefall/Game2048-v0", "mergefall/Tetris-v0"), (1, 1024)):
            times = []
            with tempfile.TemporaryDirectory() as cache:
                for _ in range(1 + rounds):
                    start = time.perf_counter()
                    command = [sys.executable, "-c", START.format(env=env, size=size)]
                    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
                    subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
                    times.append(time.perf_counter() - start)
            print(f"  {env}, {size:<4} games {times[0]:8.1f} s {statistics.median(times[1:]):8.1f} s")


SIZES, TETRIS_SIZES = (1024, 4096, 16384), (256, 1024, 4096)  # games of a batch, the same for ours and for a peer
OURS_AND_PGX = "batched-ours-1 batched-ours-2 batched-pgx batched-pgx-scan"
OURS_AND_JUMANJI = "tetris-batched-1 tetris-batched-2 tetris-batched-jumanji"
LEARNERS = "maskable-ppo maskable-ppo-own dqn dqn-own distill kickstart one-file"
CONTESTS = {
    "2048": [
        Contest("One environment through gymnasium.make", "single-ours single-peer", "single-ours/single-peer"),
        Contest(
            "Batched, observations and masks in every step; pgx uses all cores",
            OURS_AND_PGX,
            "batched-ours-1/batched-pgx batched-ours-1/batched-pgx-scan "
            "batched-ours-2/batched-pgx batched-ours-2/batched-pgx-scan",
            SIZES,
        ),
        Contest("Random legal play in a compiled loop, one core", "rules"),
    ],
    "tetris": [
        Contest(
            "One environment through gymnasium.make, random legal placements, 10x20; the peer gives all afterstates",
            "tetris-single-ours tetris-single-afterstates tetris-single-peer",
            "tetris-single-ours/tetris-single-peer tetris-single-afterstates/tetris-single-peer",
        ),
        Contest(
            "Batched, random legal placements, 10x10; jumanji uses all cores",
            OURS_AND_JUMANJI,
            "tetris-batched-1/tetris-batched-jumanji tetris-batched-2/tetris-batched-jumanji",
            TETRIS_SIZES,
        ),
        Contest(
            "Players, decisions/s in whole games, one core: greedy BCTS on 10x20, two-tetrad deep, Quintris depth 2",
            "tetris-greedy tetris-greedy-c tetris-deep-drop tetris-deep-slide tetris-quintris",
            "tetris-greedy/tetris-greedy-c",
        ),
    ],
    "keys": [
        Contest(
            "By keys, one environment through gymnasium.make, random keys",
            "keys-single-ours keys-single-peer",
            "keys-single-ours/keys-single-peer",
        ),
        Contest("By keys, batched, random keys that change something", "keys-batched-1 keys-batched-2", "", SIZES),
        Contest("Reachable placements of a piece, boards/s, one core", "keys-reachable"),
    ],
    "sb3": [
        Contest(
            "Stable-Baselines3's VecEnv, random legal actions: NativeVecEnv and DummyVecEnv of single ones",
            f"sb3-{game}-native sb3-{game}-dummy",
            f"sb3-{game}-native/sb3-{game}-dummy",
            (1024,),
        )
        for game in ("2048", "tetris")
    ],
    "learn": [
        Contest(
            "Learners by their presets, or with SB3's network (own), and training/ppo.py, steps/s on all cores",
            " ".join(f"learn-{game}-{name}" for name in LEARNERS.split()),
            f"learn-{game}-maskable-ppo/learn-{game}-maskable-ppo-own learn-{game}-dqn/learn-{game}-dqn-own",
        )
        for game in ("2048", "tetris")
    ],
    "draw": [
        Contest(
            'A step and a picture, render_mode="rgb_array"; Tetris on 10x20',
            "draw-cartpole draw-2048 draw-tetris",
            "draw-2048/draw-cartpole draw-tetris/draw-cartpole",
        )
    ],
    "start": [Start()],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure, of {', '.join(CONTESTS)} (all)")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each worker takes (5)")
    options = parser.parse_args()
    if unknown := set(options.parts) - CONTESTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(CONTESTS)}")
    for part in options.parts or CONTESTS:
        for contest in CONTESTS[part]:
            contest.run(options.rounds)


if __name__ == "__main__":
    main()
