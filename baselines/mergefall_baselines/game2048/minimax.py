"""Searches for 2048 against an adversary: minimax with alpha-beta, and the mixed search between it and expectimax.

Both prune on bounds that change no value that decides, so the chosen move is that of the full search.
"""

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from mergefall.interrupt import stopped
from mergefall.kernels import kernel
from mergefall.typing import Kernel

from mergefall_baselines.game2048.search import (
    INNER,
    TO_THE_END,
    Search2048,
    SearchKind,
    board_kernels,
    deciding,
    evaluator,
    result_of,
)

U = np.uint64


def worst_reply_kernel(shape: SearchKind) -> Kernel:
    evaluate, scored, dead = evaluator(shape), shape.scored, float(shape.dead)
    free, put, slide = board_kernels(shape)

    @kernel
    def worst_reply(board, left, alpha, beta, c):
        """Value of an afterstate after which `left` own moves follow.

        Exact between `alpha` and `beta`. A result of at most `alpha` is an upper bound, one of at least `beta` a lower
        bound.
        """
        if left == 0 and c.state_leaves == 0:
            return np.float64(evaluate(board, False, c))
        if stopped():
            return dead
        cells, worst = free(board, c), np.inf
        below = left - (left != TO_THE_END)
        last = below == 0 and c.state_leaves == 0
        while cells:
            bit = cells & (~cells + U(1))
            cells ^= bit
            for rank in range(1, 3):
                state = put(board, bit, rank, c)
                slid, best, legal = slide(state, c), -np.inf, False
                for i in range(0, 8, 2):
                    after, gain = result_of(slid, INNER >> i & 3)
                    if after != state and best < min(beta, worst):
                        legal = True
                        if left == 0:  # a leaf with one more tile
                            best = np.float64(evaluate(state, True, c))
                            break
                        score = np.float64(gain) if scored else 0.0
                        if last:
                            later = np.float64(evaluate(after, False, c))
                        else:
                            later = worst_reply(after, below, max(alpha, best) - score, min(beta, worst) - score, c)
                        best = max(best, later + score)
                worst = min(worst, best if legal else dead)
                if worst <= alpha:
                    return worst
        return worst

    return worst_reply


def worst_cell_kernel(shape: SearchKind) -> Kernel:
    evaluate, dead, (free, put, slide) = evaluator(shape), float(shape.dead), board_kernels(shape)

    @kernel
    def worst_cell(board, left, alpha, factor, c):
        """Value of an afterstate `factor` = 2^d deep; an upper bound of it if at most `alpha`."""
        own = np.float64(evaluate(board, False, c)) * factor
        if stopped() or (left == 0 and c.state_leaves == 0):
            return own
        cells, worst = free(board, c), np.inf
        while cells:
            bit = cells & (~cells + U(1))
            cells ^= bit
            mean = 0.0
            for rank in range(1, 3):
                state = put(board, bit, rank, c)
                slid, best, legal = slide(state, c), -np.inf, False
                for i in range(0, 8, 2):
                    after, _ = result_of(slid, INNER >> i & 3)
                    if after != state:
                        legal = True
                        best = max(best, worst_cell(after, left - 1, best, 4.0 * factor, c) if left else 0.0)
                if legal:
                    best += np.float64(evaluate(state, True, c)) * 2.0 * factor
                else:
                    best = dead * 2.0 * factor
                mean += best * (0.9 if rank == 1 else 0.1)
            worst = min(worst, mean)
            if worst + own <= alpha:
                break
        return worst + own

    return worst_cell


@cache
def adversary_kernel(mixed: bool, shape: SearchKind) -> Kernel:
    """The decision kernel of minimax or of the mixed search.

    Each move gets its exact value. If the context is `bounded`, only the first best one does, and the others get bounds
    below it.
    """
    reply, first = (worst_cell_kernel(shape), 2.0) if mixed else (worst_reply_kernel(shape), np.inf)
    scored = shape.scored

    @kernel
    def worth(after, gain, left, best, c):
        score = np.float64(gain) if scored else 0.0
        alpha = best - score if c.bounded else -np.inf
        value = reply(after, left, alpha, first, c)
        # A bound: rounding must not lift it above the best.
        return min(value + score, best) if c.bounded and value <= alpha else value + score

    return deciding(shape, worth)


def minimax(
    heuristic: Any = "monotone-smooth",
    depth: Any = "empties",
    leaf: str = "afterstate",
    rewards: bool | None = None,
    order: Sequence[int] | None = None,
    **rules: Any,
) -> Search2048:
    """Minimax with alpha-beta: the best move when each new tile is the worst, over both tiles in every empty cell.

    Values are those of `2048/expectimax`, but ``afterstate(d)`` = min over empty cells and both tiles of
    ``position(d)``, and with ``leaf="state"`` the worst board with one more tile is the leaf. Pruning changes no chosen
    move. `values` is exact for all four moves, and slower than `act`.

    Args:
        heuristic: as for `2048/expectimax`. Default: ``monotone-smooth``.
        depth: own moves: an int ≥ 1, ``"distinct"``, ``"empties"`` (default) or None, as for `2048/expectimax`. None
            searches to the end of the game, on boards of up to 4 cells.
        leaf: ``"afterstate"`` (default), or ``"state"``: the worst board with one more tile.
        rewards: bool, whether the score of the moves counts. Default: only with heuristic None.
        order: the order in which root moves are searched. Ties go to the first. Default: 0, 1, 2, 3.
        rows, cols: int from 2 to 6, the board's size. Default: the observation's.

    Source: alpha-beta of the Finnish implementation document (*Toteutusdokumentti*, Helsinki 2022), which is
    ``monotone-smooth`` to depth ``"empties"``; and of the evaluation document (Hanoi capstone project, 2021), whose d5
    is ``tile-order`` to depth 3.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/minimax", heuristic="monotone-smooth", depth="empties")
        >>> int(player.act([[5, 4, 3, 2], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))
        1
    """
    search = partial(adversary_kernel, False)
    return Search2048(search, heuristic, depth, leaf, rewards, order, **rules)


def mixed(
    heuristic: Any = "tile-order",
    depth: Any = 3,
    leaf: str = "afterstate",
    order: Sequence[int] | None = None,
    **rules: Any,
) -> Search2048:
    """Mixed search: the adversary picks the cell, chance the tile, and boards on the way count, the deeper the more.

    With h the heuristic and d the number of moves and tiles since the root, the values are

    - ``position(d)`` = 2^d · h(board) + max over legal moves of ``afterstate(d + 1)``; 2^d · the lost value where there
      is no legal move;
    - ``afterstate(d)`` = 2^d · h(board) + min over empty cells of 0.9 ``position(d + 1)`` with a 2 there + 0.1
      ``position(d + 1)`` with a 4;
    - at the last afterstate 2^d · h(board) alone.

    So a move's value includes the values of all boards on the way, not of the leaf alone. The root's own value is left
    out, because it is the same for all moves. Rewards never count. Pruning allows for the boards on the way, so it
    changes no chosen move.

    Args:
        heuristic: a name, a mapping of a name and weights, or a function of a board. Default: ``tile-order``.
        depth: own moves: an int ≥ 1, ``"distinct"`` or ``"empties"``, as for `2048/expectimax`. Default: 3.
        leaf: ``"afterstate"`` (default), or ``"state"``: one more tile.
        order: the order in which root moves are searched. Ties go to the first. Default: 0, 1, 2, 3.
        rows, cols: int from 2 to 6, the board's size. Default: the observation's.

    Source: the program of the evaluation document (Hanoi capstone project, 2021), hlongng2002241/2048. Its own cut-offs
    do not allow for the boards on the way.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/mixed", depth=2)
        >>> int(player.act([[5, 4, 3, 2], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))
        2
    """
    if heuristic is None or depth is None:
        raise ValueError(f"heuristic={heuristic!r}, depth={depth!r}; expected a heuristic and a depth")
    search = partial(adversary_kernel, True)
    return Search2048(search, heuristic, depth, leaf, False, order, **rules)
