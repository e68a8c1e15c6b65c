"""A stand-in for a language model: it answers prompts of `mergefall bench-text` by a rule of thumb.

    mergefall bench-text training.text_model:answer --puzzles 100

2048: the first legal move of down, left, right, up. Tetris: flat, in the last rotation's leftmost column.
"""

import re


def answer(prompt: str) -> str:
    if legal := re.search(r"Legal moves: (.*)", prompt):
        move = next(move for move in ("down", "left", "right", "up") if move in legal[1])
        return f"Large tiles stay below. <answer>{move}</answer>"
    rotation, column = re.findall(r"rotation (\d), columns (\d+)", prompt)[-1]
    return f"It lies at the wall. <answer>rotation {rotation} column {column}</answer>"
