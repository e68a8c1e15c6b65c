"""Tools for tests of environments: comparisons of returns, and the plain 2048 rules applied to many boards."""

import json
from functools import cache
from pathlib import Path

import numpy as np
from mergefall.game2048 import reference

GOLDEN = Path(__file__).parents[1] / "golden"
slide_line = cache(reference.slide_line)
SIZES = [(2, 2), (2, 3), (3, 2), (3, 3), (2, 6), (4, 4), (4, 5), (5, 3), (6, 6)]


@cache
def golden(name):
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def slide_lines(lines):
    """Lines uint8[n, length] slid towards their first cell by `reference.slide_line`: (lines, scores int64[n])."""
    code = (lines.astype(np.int64) << 6 * np.arange(lines.shape[1])).sum(axis=1)
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    slid = [slide_line(tuple(line)) for line in lines[first].tolist()]
    after = np.array([line for line, _ in slid], dtype=np.uint8)[inverse]
    return after.reshape(lines.shape), np.array([score for _, score in slid], dtype=np.int64)[inverse]


def moves(boards):
    """All four moves of boards uint8[n, rows, cols]: (boards [n, 4, rows, cols], scores [n, 4], legal [n, 4])."""
    n, rows, cols = boards.shape
    after, scores = np.empty((n, 4, rows, cols), np.uint8), np.empty((n, 4), np.int64)
    for action in range(4):
        turned = action in (reference.UP, reference.DOWN)
        view = boards.swapaxes(1, 2) if turned else boards
        mirrored = action in (reference.RIGHT, reference.DOWN)
        view = view[:, :, ::-1] if mirrored else view
        lines, gains = slide_lines(view.reshape(-1, view.shape[2]))
        slid = lines.reshape(view.shape)
        slid = slid[:, :, ::-1] if mirrored else slid
        after[:, action] = slid.swapaxes(1, 2) if turned else slid
        scores[:, action] = gains.reshape(view.shape[:2]).sum(axis=1)
    return after, scores, (after != boards[:, None]).any(axis=(2, 3))


def monotone_smooth_terms(board):
    """The terms of the heuristic of that name, from its documentation."""
    across, along = np.diff(board, axis=1), np.diff(board, axis=0)
    monotone = -sum(min(steps.clip(0).sum(), -steps.clip(max=0).sum()) for steps in (across, along))
    rough = 0
    for line in (*board, *board.T):
        rough += 2 * np.abs(np.diff(line[line > 0])).sum()
    top, empty = board.max(), (board == 0).sum()
    corner = 0 if top in board[[0, 0, -1, -1], [0, -1, 0, -1]] else -top
    return [monotone, -rough, np.log(max(empty, 1)), top, corner]


def equal(a, b):
    """Whether two returns are the same in structure, types, dtypes and values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return all(map(equal, a, b)) if a.dtype == object else bool((a == b).all())
    return a == b


def arrays(value):
    """All arrays within a return."""
    if isinstance(value, np.ndarray):
        return [value] if value.dtype != object else [array for item in value for array in arrays(item)]
    if isinstance(value, dict):
        return [array for item in value.values() for array in arrays(item)]
    if isinstance(value, (tuple, list)):
        return [array for item in value for array in arrays(item)]
    return []


def play(env, seed, steps, illegal=0.1):
    """The returns of random play, now and then illegal, from a seed."""
    rng = np.random.default_rng(seed)
    returns = [env.reset(seed=seed)]
    mask = returns[0][1]["action_mask"]
    for _ in range(steps):
        legal = np.flatnonzero(mask) if rng.random() >= illegal else np.arange(len(mask))
        returns.append(env.step(rng.choice(legal)))
        if returns[-1][2] or returns[-1][3]:
            returns.append(env.reset())
        mask = returns[-1][-1]["action_mask"]
    return returns
