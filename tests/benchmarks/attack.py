"""The attack of a player of placements over its first pieces from an empty board, and how many pieces it survives.

    python tests/benchmarks/attack.py tetris/beam --option width=400 --games 200
    python tests/benchmarks/attack.py tetris/beam --option width=25 --option draws=0 --garbage 0.3 --pieces 1000

The player plays by keys, without gravity: 10×20, SRS, bags, hold, a queue of five. Attack is Jstris's, a combo on top
of a perfect clear's 10. `--garbage` is in rows a piece. `--figure QUESTION/ID` writes the record to the file
training/figures.jsonl.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from time import perf_counter
from typing import Any

import gymnasium as gym
import mergefall  # noqa: F401
import numpy as np
from mergefall.tetris.keys import CLEARS
from mergefall.tetris.keys.game import PERFECT_ATTACK
from mergefall_baselines import make
from mergefall_training.cli import parse_options
from mergefall_training.compare.figures import figure_file, put_records
from mergefall_training.play.statistics import bootstrap

ID = "mergefall/TetrisKeys-v0"


def play(job: tuple[argparse.Namespace, dict[str, Any], int]) -> tuple[int, int, float, int]:
    """(attack, pieces, milliseconds a piece, attack if no combo counts on top of a perfect clear) of a game."""
    asked, options, seed = job
    player = make("tetris/keys", of={"player": asked.player, **options})
    rules = {"gravity": 0.0, "garbage": {"rows": asked.garbage} if asked.garbage else None}
    keys, pieces, game, seconds = 8 * asked.pieces, 0, None, 0.0
    while game is None or (pieces < asked.pieces and not game.terminated):
        begun = perf_counter()
        game = player.play(ID, seed, rules, keys)
        keys, pieces, seconds = 2 * keys, game.figures["pieces"], perf_counter() - begun
    env, done, on_top = gym.make(ID, **rules), 0, 0
    _, info = env.reset(seed=seed)
    while info["pieces"] < min(pieces, asked.pieces):
        before, (_, _, _, _, info) = info["attack"], env.step(int(game.actions[done]))
        if CLEARS[info["clear"]].startswith("perfect"):
            on_top += info["attack"] - before - PERFECT_ATTACK
        done += 1
    return info["attack"], info["pieces"], 1000 * seconds / pieces, info["attack"] - on_top


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("player")
    parser.add_argument("--option", metavar="NAME=VALUE", action="append", default=[])
    parser.add_argument("--pieces", type=int, default=50)
    parser.add_argument("--garbage", type=float, default=0.0)
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--figure", metavar="QUESTION/ID")
    asked = parser.parse_args()
    file, options = asked.figure and figure_file(asked.figure), parse_options(asked.option)
    play((argparse.Namespace(**vars(asked) | {"pieces": 1}), options, 0))  # compiles the kernels once
    with ProcessPoolExecutor(asked.workers) as pool:
        games = list(pool.map(play, [(asked, options, asked.seed + i) for i in range(asked.games)]))
    attack, pieces, ms, flat = np.array(games).T
    means = {"attack": bootstrap(np.mean, attack), "pieces": bootstrap(np.mean, pieces)}
    for name, mean in [*means.items(), ("attack without combos on perfect clears", bootstrap(np.mean, flat))]:
        print(f"N={asked.games}, seeds from {asked.seed}: {name} {mean.value:.1f} [{mean.low:.1f}, {mean.high:.1f}]")
    print(f"{ms.mean():.1f} ms a piece; {(pieces < asked.pieces).sum()} games ended before {asked.pieces} pieces")
    if file:
        question, _, name = asked.figure.partition("/")
        figure = "pieces" if asked.garbage else "attack"
        words = [word for word in sys.argv[1:] if word not in ("--figure", asked.figure)]
        record = {
            "id": name,
            "question": question,
            "label": " ".join([asked.player, *asked.option]),
            "player": asked.player,
            "options": options,
            "env": ID,
            "env_kwargs": {"gravity": 0} | ({"garbage": {"rows": asked.garbage}} if asked.garbage else {}),
            "cap": f"{asked.pieces} pieces",
            "episodes": asked.games,
            "seed": asked.seed,
            "figure": figure,
            "mean": float(f"{means[figure].value:.6g}"),
            "low": float(f"{means[figure].low:.6g}"),
            "high": float(f"{means[figure].high:.6g}"),
            "unit": "",
            "ms": float(f"{ms.mean():.2g}"),
            "command": shlex.join(["python", "tests/benchmarks/attack.py", *words]),
            "date": date.today().isoformat(),
        }
        put_records(file, [record])


if __name__ == "__main__":
    main()
