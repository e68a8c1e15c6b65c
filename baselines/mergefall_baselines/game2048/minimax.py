"""Searches for 2048 against an adversary: minimax with alpha-beta, and the mixed search between it and expectimax.

Both prune on bounds that change no value that decides, so the chosen move is that of the full search.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from mergefall.interrupt import stopped
from mergefall.kernels import kernel
from mergefall.typing import Kernel

from mergefall_baselines.game2048.engines import Engine, after_of, can_move, engine, read, score_of
from mergefall_baselines.game2048.player import Boards, pick
from mergefall_baselines.game2048.search import TO_THE_END, Search2048, SearchShape, own_moves

U = np.uint64


@cache
def minimax_kernels(shape: SearchShape) -> tuple[Kernel, Kernel]:
    """``decide`` and ``choose`` of minimax, see `_root`."""
    boards, scored, dead = engine(shape.kind, shape.heuristic, shape.scored), shape.scored, float(shape.dead)
    moves, open_cells, with_tile, evaluate = boards.moves, boards.open_cells, boards.with_tile, boards.evaluate
    worst_leaf = _worst_leaf(boards, dead)

    @kernel(variant=boards.name)
    def worst_reply(board, left, alpha, beta, ctx):
        """Value of an afterstate after which `left` own moves follow.

        Exact between `alpha` and `beta`. A result of at most `alpha` is an upper bound, one of at least `beta` a lower
        bound.
        """
        c = read(ctx)
        if left == 0 and c.state_leaves == 0:
            return np.float64(evaluate(board, False, ctx))
        if c.stop or stopped():
            return dead
        if left == 0:
            return worst_leaf(board, alpha, ctx)
        cells = open_cells(board, ctx)
        worst = np.inf
        below = left - (left != TO_THE_END)
        last = below == 0 and c.state_leaves == 0
        while cells:
            bit = cells & (~cells + U(1))
            cells ^= bit
            for rank in range(1, 3):
                state = with_tile(board, bit, rank)
                best, legal = -np.inf, False
                after0, after1, after2, after3, along, across = moves(state, ctx)
                for i in range(4):
                    if after0 != state and best < min(beta, worst):
                        legal = True
                        score = np.float64(along if i < 2 else across) if scored else 0.0
                        if last:
                            later = np.float64(evaluate(after0, False, ctx))
                        else:
                            low, high = max(alpha, best) - score, min(beta, worst) - score
                            later = worst_reply(after0, below, low, high, ctx)
                        best = max(best, later + score)
                    after0, after1, after2 = after1, after2, after3
                worst = min(worst, best if legal else dead)
                if worst <= alpha:
                    return worst
        return worst

    return _root(boards, scored, worst_reply)


def _worst_leaf(boards: Engine, dead: float) -> Kernel:
    moves, open_cells, with_tile, evaluate = boards.moves, boards.open_cells, boards.with_tile, boards.evaluate

    @kernel(variant=boards.name)
    def worst_leaf(board, alpha, ctx):
        """Value of the worst board with one more tile; an upper bound of it if at most `alpha`."""
        cells = open_cells(board, ctx)
        worst = np.inf
        while cells:
            bit = cells & (~cells + U(1))
            cells ^= bit
            for rank in range(1, 3):
                state = with_tile(board, bit, rank)
                value = np.float64(evaluate(state, True, ctx)) if can_move(state, moves(state, ctx)) else dead
                worst = min(worst, value)
                if worst <= alpha:
                    return worst
        return worst

    return worst_leaf


@cache
def mixed_kernels(shape: SearchShape) -> tuple[Kernel, Kernel]:
    """``decide`` and ``choose`` of the mixed search, see `_root`."""
    boards, dead = engine(shape.kind, shape.heuristic, shape.scored), float(shape.dead)
    moves, open_cells, with_tile, evaluate = boards.moves, boards.open_cells, boards.with_tile, boards.evaluate

    @kernel(variant=boards.name)
    def worst_cell(board, left, alpha, factor, ctx):
        """Value of an afterstate `factor` = 2^d deep; an upper bound of it if at most `alpha`."""
        c = read(ctx)
        own = np.float64(evaluate(board, False, ctx)) * factor
        if c.stop or stopped() or (left == 0 and c.state_leaves == 0):
            return own
        cells = open_cells(board, ctx)
        worst = np.inf
        while cells:
            bit = cells & (~cells + U(1))
            cells ^= bit
            mean = 0.0
            for rank in range(1, 3):
                state = with_tile(board, bit, rank)
                best, legal = -np.inf, False
                after0, after1, after2, after3, _, _ = moves(state, ctx)
                for _ in range(4):
                    if after0 != state:
                        legal = True
                        later = worst_cell(after0, left - 1, best, 4.0 * factor, ctx) if left else 0.0
                        best = max(best, later)
                    after0, after1, after2 = after1, after2, after3
                if legal:
                    best += np.float64(evaluate(state, True, ctx)) * 2.0 * factor
                else:
                    best = dead * 2.0 * factor
                mean += best * (0.9 if rank == 1 else 0.1)
            worst = min(worst, mean)
            if worst + own <= alpha:
                break
        return worst + own

    @kernel(variant=boards.name)
    def from_root(board, left, alpha, beta, ctx):
        return worst_cell(board, left, alpha, 2.0, ctx)

    return _root(boards._replace(name=f"{boards.name}-mixed"), False, from_root)


def _root(boards: Engine, scored: bool, reply: Kernel) -> tuple[Kernel, Kernel]:
    """The root of a search whose opponent is ``reply(board, left, alpha, beta, ctx)``.

    ``decide`` gives each move its exact value; ``choose`` only the first best one, the others bounds below it.
    """
    from_cells, moves = boards.from_cells, boards.moves

    @kernel(variant=boards.name)
    def search_root(cells, values, settings, bounded):
        ctx, blank, order = settings
        c = read(ctx)
        board = from_cells(blank, cells, c.cols)
        found = moves(board, ctx)
        below = own_moves(cells, c.depth) - 1
        best = -np.inf
        for i in range(4):
            action = order[i]
            after = after_of(found, action)
            values[action] = -np.inf
            if after != board:
                score = np.float64(score_of(found, action)) if scored else 0.0
                alpha = best - score if bounded else -np.inf
                found_value = reply(after, below, alpha, np.inf, ctx)
                values[action] = found_value + score
                if bounded and found_value <= alpha:  # a bound, which rounding must not lift above the best
                    values[action] = min(values[action], best)
                best = max(best, values[action])

    @kernel(variant=boards.name)
    def decide(cells, memory, values, settings):
        search_root(cells, values, settings, False)
        return pick(values, settings[2])

    @kernel(variant=boards.name)
    def choose(cells, memory, values, settings):
        search_root(cells, values, settings, True)
        return pick(values, settings[2])

    return decide, choose


class Minimax(Search2048):
    """Minimax with alpha-beta: the best move when each new tile is the worst, over both tiles in every empty cell.

    A *position* is a board with the player to move, an *afterstate* the board that a move leaves. With `d` own moves
    left, their values are

    - ``position(d)`` = max over legal moves of ``score + afterstate(d − 1)``, or the lost value if no move is legal;
    - ``afterstate(d)`` = min over empty cells and both tiles of ``position(d)``;
    - ``afterstate(0)`` = the leaf: the heuristic's value of the board, or with ``leaf="state"`` of the worst board with
      one more tile.

    `score` counts only with `rewards`. The lost value is the heuristic's `dead`. Pruning changes no chosen move.
    `values` is exact for all four moves, and slower than `act`. Options: see `Search2048`.

    Source: alpha-beta of the Finnish implementation document (*Toteutusdokumentti*, Helsinki 2022), which is
    ``monotone-smooth`` to depth ``"empties"``; and of the evaluation document (Hanoi capstone project, 2021), whose d5
    is ``tile-order`` to depth 3.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/minimax", heuristic="monotone-smooth", depth="empties")
        >>> int(player.act([[5, 4, 3, 2], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))
        1
    """

    two_kernels = True
    _kernels = staticmethod(minimax_kernels)

    def __init__(
        self,
        heuristic: Any = "monotone-smooth",
        depth: Any = "empties",
        leaf: str = "afterstate",
        rewards: bool | None = None,
        order: Sequence[int] | None = None,
        time_limit: float | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        super().__init__(heuristic, depth, leaf, rewards, order, time_limit, rows, cols)

    def _make_decider(self, rules: Boards, exact: bool) -> tuple[Kernel, Any]:
        decide, choose = self._kernels(self._shape(rules))
        return decide if exact else choose, self._settings(rules)


class Mixed(Minimax):
    """Mixed search: the adversary picks the cell, chance the tile, and boards on the way count, the deeper the more.

    With h the heuristic and d the number of moves and tiles since the root, the values are

    - ``position(d)`` = 2^d · h(board) + max over legal moves of ``afterstate(d + 1)``; 2^d · the lost value where there
      is no legal move;
    - ``afterstate(d)`` = 2^d · h(board) + min over empty cells of 0.9 ``position(d + 1)`` with a 2 there + 0.1
      ``position(d + 1)`` with a 4;
    - at the last afterstate 2^d · h(board) alone.

    The root's own value is left out: it is the same for all moves. Pruning allows for the boards on the way, so it
    changes no chosen move. Options: see `Search2048`; heuristic and depth are needed, rewards never count.

    Source: the program of the evaluation document (Hanoi capstone project, 2021), hlongng2002241/2048. Its own cut-offs
    do not allow for the boards on the way.
    """

    _kernels = staticmethod(mixed_kernels)

    def __init__(
        self,
        heuristic: Any = "tile-order",
        depth: Any = 3,
        leaf: str = "afterstate",
        order: Sequence[int] | None = None,
        time_limit: float | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        if heuristic is None or depth is None:
            raise ValueError(
                f"heuristic={heuristic!r}, depth={depth!r}; the mixed search needs a heuristic and a depth"
            )
        super().__init__(heuristic, depth, leaf, False, order, time_limit, rows, cols)
