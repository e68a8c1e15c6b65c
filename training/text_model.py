"""A stand-in for a language model: it answers prompts of `mergefall bench-text` by a rule of thumb.

    mergefall bench-text "python training/text_model.py"
    mergefall bench-text "python training/text_model.py --stream" --stream --env mergefall/Tetris-v0

2048: the first legal move of down, left, right, up. Tetris: flat, in the last rotation's leftmost column.
"""

import json
import re
import sys


def answer(prompt: str) -> str:
    if legal := re.search(r"Legal moves: (.*)", prompt):
        move = next(move for move in ("down", "left", "right", "up") if move in legal[1])
        return f"Large tiles stay below. <answer>{move}</answer>"
    rotation, column = re.findall(r"rotation (\d), columns (\d+)", prompt)[-1]
    return f"It lies at the wall. <answer>rotation {rotation} column {column}</answer>"


if __name__ == "__main__":
    if "--stream" in sys.argv:
        for line in sys.stdin:
            asked = json.loads(line)
            print(json.dumps({"id": asked["id"], "answer": answer(asked["prompt"])}), flush=True)
    else:
        print(answer(sys.stdin.read()))
