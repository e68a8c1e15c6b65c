"""How long n-tuple TD learning takes for the same games: the 4×6 network, steps of 0.1, games 4,001 to 12,000 of a run.

    python tests/benchmarks/learning.py [--rounds 3] [--beside NAME=COMMAND ...]

A COMMAND is run in turns with ours, a NAME that ends in "x2" with the two threads of ours, and its time set beside
ours. It prints a line that begins with the number of games, or of thousands of games and a slash, whenever it has
played another thousand: 2048.cpp of github.com/moporgic/TDL2048 (``./2048 -n 4x6patt -t 13``, with ``-p 2`` for two
threads, each of which prints its own lines) and of github.com/moporgic/TDL2048-Demo do so. They are not built here.
Learners of the same rule play equally long games, on average, after as many.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import time
from collections.abc import Iterable

from mergefall_training.learn.ntuple import train as ntuple_td
from mergefall_training.learn.ntuple.kernels import GAMES, MOVES
from mergefall_training.learn.ntuple.train import Learner
from mergefall_training.learn.run import Config

FIRST, LAST = 4000, 12000  # games: before, all threads learn the same few entries
PATTERNS = "012345 456789 012456 45689a"


def ours(threads: int) -> tuple[float, float]:
    """(seconds for the games from FIRST to LAST, moves a second in them)."""
    ntuple_td.ROUND = 100_000
    hyperparameters = {"patterns": PATTERNS, "learning_rate": 0.1, "threads": threads}
    learner = Learner(Config("ntuple", "mergefall/Game2048-v0", {}, hyperparameters, 10**9, 10**9))
    begun, first, moves = 0.0, 0, 0
    while True:
        learner.learn()
        games, made = (int(learner.workers[:, word].sum()) for word in (GAMES, MOVES))
        if games >= FIRST and not begun:
            begun, first, moves = time.perf_counter(), games, made
        if games >= LAST:
            seconds = time.perf_counter() - begun
            return seconds * (LAST - FIRST) / (games - first), (made - moves) / seconds


def theirs(command: str) -> float:
    """Seconds for the same games by another program."""
    with subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        times = list(_thousands(process.stdout))
        process.kill()
    return times[-1] - times[0]


def _thousands(lines: Iterable[str]) -> Iterable[float]:
    """When each thousand of games from FIRST to LAST had been played."""
    played = 0
    for line in lines:
        if re.match(r"\d+(/\d+ |\s+(avg|mean))", line):
            played += 1000
            if played >= FIRST:
                yield time.perf_counter()
            if played >= LAST:
                return
    raise SystemExit(f"the program ended after {played} games; expected {LAST}")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beside", metavar="NAME=COMMAND", action="append", default=[])
    arguments = parser.parse_args()
    others = dict(pair.split("=", 1) for pair in arguments.beside)
    ours(1)  # compile
    mine: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    seconds: dict[str, list[float]] = {name: [] for name in others}
    for _ in range(arguments.rounds):
        for threads, found in mine.items():
            found.append(ours(threads))
        for name, command in others.items():
            seconds[name].append(theirs(command))
    print(f"seconds for games {FIRST + 1} to {LAST}, medians of {arguments.rounds} rounds")
    medians = {threads: statistics.median(taken for taken, _ in found) for threads, found in mine.items()}
    for threads, found in mine.items():
        rate = statistics.median(rate for _, rate in found)
        print(f"mergefall, threads: {threads}       {medians[threads]:8.2f}   {rate:,.0f} moves/s")
    for name, taken in seconds.items():
        median, threads = statistics.median(taken), 2 if name.endswith("x2") else 1
        print(f"{name:25} {median:8.2f}   {median / medians[threads]:.2f}x the time of ours")


if __name__ == "__main__":
    main()
