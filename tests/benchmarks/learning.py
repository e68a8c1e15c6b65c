"""Time n-tuple TD learning: games 4,001 to 12,000 of a run with four 6-tuples and a step size of 0.1.

    python tests/benchmarks/learning.py [--rounds 3] [--beside NAME=COMMAND ...]

Each COMMAND takes turns with ours, and the benchmark prints the ratio of the times; a NAME that ends in "x2" is
compared with our two threads. A command must print a line that begins with the number of games, or of thousands of
games and a slash, after each thousand. These do: 2048.cpp of github.com/moporgic/TDL2048 (``./2048 -n 4x6patt -t 13``,
with ``-p 2`` for two threads, each of which prints its own lines) and github.com/moporgic/TDL2048-Demo. They are not
built here. Learners of the same rule play equally long games, on average, after equally many.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import time
from collections.abc import Iterable

from mergefall_training.learn.ntuple import train as ntuple_train
from mergefall_training.learn.ntuple.train import Learner
from mergefall_training.learn.run import Config

FIRST, LAST = 4000, 12000  # games; earlier, all threads learn the same few entries
PATTERNS = "012345 456789 012456 45689a"


def ours(threads: int) -> tuple[float, float]:
    """(seconds for games FIRST to LAST, moves per second in them)."""
    ntuple_train.ROUND = 100_000
    hyperparameters = {"patterns": PATTERNS, "learning_rate": 0.1, "threads": threads}
    learner = Learner(Config("ntuple", "mergefall/Game2048-v0", {}, hyperparameters, 10**9, 10**9))
    begun, first, moves = 0.0, 0, 0
    while True:
        learner.learn()
        games, made = (int(learner.workers[name].sum()) for name in ("games", "moves"))
        if games >= FIRST and not begun:
            begun, first, moves = time.perf_counter(), games, made
        if games >= LAST:
            seconds = time.perf_counter() - begun
            return seconds * (LAST - FIRST) / (games - first), (made - moves) / seconds


def theirs(command: str) -> float:
    """Seconds that another program takes for the same games."""
    with subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        times = list(_thousands(process.stdout))
        process.kill()
    return times[-1] - times[0]


def _thousands(lines: Iterable[str]) -> Iterable[float]:
    """The time after each thousand games, from FIRST to LAST."""
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
