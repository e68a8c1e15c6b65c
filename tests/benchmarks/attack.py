"""The attack in files of games by AlphaTetris's table, in which a perfect clear pays a flat 10, without its combo.

    mergefall evaluate tetris/keys --option "of={player: tetris/beam, width: 400}" --env mergefall/TetrisKeys-v0 \\
        --env-option gravity=0 --max-pieces 50 --episodes 200 --seed 2000 --headline attack --out games.jsonl
    python tests/benchmarks/attack.py games.jsonl
"""

import sys

import numpy as np
from mergefall.tetris.keys import CLEARS
from mergefall.tetris.keys.game import PERFECT_ATTACK
from mergefall_baselines.player import recorded, steps
from mergefall_training.play.records import actions_of, read_records
from mergefall_training.play.statistics import bootstrap


def attack(header, episode):
    """The attack of a game, by AlphaTetris's table."""
    actions, total, before = actions_of(episode.actions, episode.length), 0, 0
    for step in steps(header.make(), episode.seed, recorded(actions.tolist())):
        paid, before = step.info["attack"] - before, step.info["attack"]
        perfect = paid and CLEARS[step.info["clear"]].startswith("perfect")
        total += PERFECT_ATTACK if perfect else paid
    return total


if __name__ == "__main__":
    for path in sys.argv[1:]:
        about, episodes = read_records(path)
        print(f"{about.title}, N={len(episodes)}: {bootstrap(np.mean, [attack(about, one) for one in episodes])}")
