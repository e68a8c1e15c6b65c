"""How long the searches take for a move, on one core, over the golden positions that a search was recorded for.

    python tests/benchmarks/searches.py [--rounds 5] [--beside PROGRAM]

`PROGRAM` is run on the same positions, in turns with ours, and its time set beside them: it reads positions from
standard input, one a line, 16 hexadecimal digits with the cell in the upper left corner last, and prints the seconds it
took to find a move for all of them, then its moves (0 up, 1 down, 2 left, 3 right). github.com/nneonneo/2048-ai does so
with a few lines of C++ around its `find_best_move`; it is not built here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np
from mergefall_baselines import make

GOLDEN = Path(__file__).parents[1] / "golden" / "game2048.json"
ORIGINAL_ORDER = [0, 2, 3, 1]  # up, down, left, right
DISTINCT = {"depth": "distinct", "order": ORIGINAL_ORDER}
PLAYERS = {
    "nneonneo, its order, a table for each move": ("2048/expectimax", DISTINCT),
    "nneonneo, fastest: one table": ("2048/expectimax", {**DISTINCT, "table": "shared"}),
    "nneonneo, fast setting": ("2048/expectimax", {"depth": "distinct", "cutoff": 0.0125, "table": "shared"}),
    "tile-order expectimax d5": ("2048/expectimax", {"heuristic": "tile-order", "depth": 3}),
    "tile-order alpha-beta d5": ("2048/minimax", {"heuristic": "tile-order", "depth": 3}),
    "tile-order mixed d5": ("2048/mixed", {"heuristic": "tile-order", "depth": 3}),
    "monotone-smooth minimax": ("2048/minimax", {"heuristic": "monotone-smooth", "depth": "empties"}),
    "prairie-fire expectimax 3": ("2048/expectimax", {"heuristic": "prairie-fire", "depth": 3}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", metavar="PROGRAM")
    arguments = parser.parse_args()
    golden = [entry for entry in json.loads(GOLDEN.read_text())["boards"] if entry["nneonneo"]["search"]]
    boards = [np.array(entry["board"]).reshape(4, 4) for entry in golden]
    recorded = [entry["nneonneo"]["search"]["move"] for entry in golden]
    players = {title: make(name, **options) for title, (name, options) in PLAYERS.items()}
    for player in players.values():
        player.act(boards[0])  # compile
    seconds: dict[str, list[float]] = {title: [] for title in players}
    beside: list[float] = []
    moves = {}
    for _ in range(arguments.rounds):
        for title, player in players.items():
            begun = time.perf_counter()
            moves[title] = [int(player.act(board)) for board in boards]
            seconds[title].append(time.perf_counter() - begun)
        if arguments.beside:
            time_taken, its_moves = run_beside(arguments.beside, boards)
            beside.append(time_taken)
    print(f"ms per move over {len(boards)} golden positions, median of {arguments.rounds} rounds")
    for title, taken in seconds.items():
        median = statistics.median(taken)
        line = f"{title:45} {1000 * median / len(boards):9.4f}"
        if title.startswith("nneonneo"):
            line += f"   the recorded move in {np.mean(np.equal(moves[title], recorded)):.1%}"
            line += f"   {median / statistics.median(beside):.2f}× its time" if beside else ""
        print(line)
    if beside:
        same = np.mean(np.equal(np.take(ORIGINAL_ORDER, its_moves), recorded))
        median = 1000 * statistics.median(beside) / len(boards)
        print(f"{arguments.beside:45} {median:9.4f}   the recorded move in {same:.1%}")


def run_beside(program: str, boards: list[np.ndarray]) -> tuple[float, list[int]]:
    """Seconds and moves of another program."""
    words = [sum(int(rank) << (4 * i) for i, rank in enumerate(board.flat)) for board in boards]
    text = "".join(f"{word:016x}\n" for word in words)
    answer = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.split()
    return float(answer[0]), [int(word) for word in answer[1:]]


if __name__ == "__main__":
    main()
