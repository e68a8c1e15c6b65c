"""How long nneonneo's search takes for a move, on one core, over the golden positions that it was recorded for.

    python tests/benchmarks/searches.py [--rounds 5] [--beside PROGRAM]

`PROGRAM` is run on the same positions, in turns with ours, and its time set beside them: it reads positions from
standard input, one a line, 16 hexadecimal digits with the cell in the upper left corner last, and prints the seconds it
took to find a move for all of them, then its moves (0 up, 1 down, 2 left, 3 right). github.com/nneonneo/2048-ai does so
with a few lines of C++ around its `find_best_move`; it is not built here.
"""

import argparse
import json
import statistics
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from mergefall_baselines import make

GOLDEN = Path(__file__).parents[1] / "golden" / "game2048.json"
ORIGINAL_ORDER = [0, 2, 3, 1]  # up, down, left, right
OPTIONS = {
    "its order, a table for each move": {"depth": "distinct", "order": ORIGINAL_ORDER},
    "its order, one table": {"depth": "distinct", "order": ORIGINAL_ORDER, "table": "shared"},
    "fast setting": {"depth": "distinct", "cutoff": 0.0125, "table": "shared"},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", metavar="PROGRAM")
    arguments = parser.parse_args()
    golden = [entry for entry in json.loads(GOLDEN.read_text())["boards"] if entry["nneonneo"]["search"]]
    boards = [np.array(entry["board"]).reshape(4, 4) for entry in golden]
    recorded = [entry["nneonneo"]["search"]["move"] for entry in golden]
    players = {title: make("2048/expectimax", **options) for title, options in OPTIONS.items()}
    for player in players.values():
        player.act(boards[0])  # compile
    seconds, moves = defaultdict(list), {}
    for _ in range(arguments.rounds):
        for title, player in players.items():
            begun = time.perf_counter()
            moves[title] = [int(player.act(board)) for board in boards]
            seconds[title].append(time.perf_counter() - begun)
        if arguments.beside:
            taken, its_moves = run_beside(arguments.beside, boards)
            seconds[arguments.beside].append(taken)
            moves[arguments.beside] = np.take(ORIGINAL_ORDER, its_moves)
    print(f"ms per move over {len(boards)} golden positions, median of {arguments.rounds} rounds, the recorded moves")
    for title, taken in seconds.items():
        same = np.mean(np.equal(moves[title], recorded))
        print(f"{title:45} {1000 * statistics.median(taken) / len(boards):9.4f} {same:.1%}")


def run_beside(program, boards):
    """Seconds and moves of another program."""
    words = [sum(int(rank) << (4 * i) for i, rank in enumerate(board.flat)) for board in boards]
    text = "".join(f"{word:016x}\n" for word in words)
    answer = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.split()
    return float(answer[0]), [int(word) for word in answer[1:]]


if __name__ == "__main__":
    main()
