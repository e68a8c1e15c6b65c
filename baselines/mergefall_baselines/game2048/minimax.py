"""Searches for 2048 against an adversary: minimax with alpha-beta, and the mixed search between it and expectimax.

Both prune on bounds that change no value that decides, so the chosen move is that of the full search.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from mergefall.kernels import kernel

from mergefall_baselines.game2048.engines import engine, read
from mergefall_baselines.game2048.searches import TO_THE_END, Search2048, own_moves

U = np.uint64


@cache
def minimax_kernels(kind: str, heuristic: Any, scored: bool) -> tuple[Any, Any]:
    """``decide`` and ``choose`` of minimax for one way of holding boards and one heuristic class."""
    name, _, from_cells, _, moves, open_cells, with_tile, evaluate = engine(kind, heuristic, scored)
    dead = float(heuristic.dead) if heuristic else 0.0

    @kernel(variant=name)
    def worst_reply(board, left, alpha, beta, ctx):
        """Value of an afterstate after which `left` own moves follow, exact between `alpha` and `beta`."""
        c = read(ctx)
        if left == 0 and c.state_leaves == 0:
            return np.float64(evaluate(board, False, ctx))
        if c.stop:
            return dead
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
                if left == 0:
                    legal = after0 != state or after1 != state or after2 != state or after3 != state
                    best = np.float64(evaluate(state, True, ctx))
                else:
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

    return _root(name, scored, from_cells, moves, worst_reply)


@cache
def mixed_kernels(kind: str, heuristic: Any, scored: bool) -> tuple[Any, Any]:
    """``decide`` and ``choose`` of the mixed search for one way of holding boards and one heuristic class."""
    name, _, from_cells, _, moves, open_cells, with_tile, evaluate = engine(kind, heuristic, scored)
    dead = float(heuristic.dead)

    @kernel(variant=name)
    def worst_cell(board, left, alpha, factor, ctx):
        """Value of an afterstate `factor` = 2^d deep; if it is `alpha` or less, some bound on it that is, too."""
        c = read(ctx)
        own = np.float64(evaluate(board, False, ctx)) * factor
        if c.stop or (left == 0 and c.state_leaves == 0):
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
                if left == 0:
                    legal = after0 != state or after1 != state or after2 != state or after3 != state
                    best = 0.0
                else:
                    for _ in range(4):
                        if after0 != state:
                            legal = True
                            best = max(best, worst_cell(after0, left - 1, best, 4.0 * factor, ctx))
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

    @kernel(variant=name)
    def from_root(board, left, alpha, beta, ctx):
        return worst_cell(board, left, alpha, 2.0, ctx)

    return _root(f"{name}-mixed", False, from_cells, moves, from_root)


def _root(name: str, scored: bool, from_cells: Any, moves: Any, reply: Any) -> tuple[Any, Any]:
    """The root of a search whose opponent is ``reply(board, left, alpha, beta, ctx)``.

    ``decide`` gives each move its exact value; ``choose`` only the first best one, the others bounds below it.
    """

    @kernel(variant=name)
    def search_root(cells, values, settings, bounded):
        ctx, blank, rule, order = settings
        c = read(ctx)
        board = from_cells(blank, cells, c.cols)
        up, down, left, right, along, across = moves(board, ctx)
        below = own_moves(cells, rule) - 1
        best = -np.inf
        for i in range(4):
            action = order[i]
            after = up if action == 0 else right if action == 1 else down if action == 2 else left
            values[action] = -np.inf
            if after != board:
                score = np.float64(across if action & 1 else along) if scored else 0.0
                alpha = best - score if bounded else -np.inf
                values[action] = reply(after, below, alpha, np.inf, ctx) + score
                best = max(best, values[action])

    @kernel(variant=name)
    def decide(cells, memory, values, settings):
        search_root(cells, values, settings, False)

    @kernel(variant=name)
    def choose(cells, memory, values, settings):
        search_root(cells, values, settings, True)

    return decide, choose


class Minimax(Search2048):
    """Minimax with alpha-beta: the best move when each new tile is the worst, over both tiles in every empty cell.

    Denotes max over moves of min over tiles …, to `depth` own moves; the leaf is what the player's last move leaves, or
    with ``leaf="state"`` the worst board with one more tile. Pruning changes no chosen move; `values` is exact for all
    four moves, and slower than `act`. Options: see `Search2048`; heuristic None values games by their score.

    Source: alpha-beta of the Finnish minimax document (``monotone-smooth`` to depth ``empties``), and of the tile-order
    document (d5 is ``tile-order`` to depth 3).

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/minimax", heuristic="monotone-smooth", depth="empties")
        >>> int(player.act([[5, 4, 3, 2], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))
        1
    """

    _kernels = staticmethod(minimax_kernels)

    def __init__(
        self,
        heuristic: Any = "monotone-smooth",
        depth: Any = "empties",
        leaf: str = "afterstate",
        rewards: bool | None = None,
        order: Any = None,
        time_limit: float | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        super().__init__(heuristic, depth, leaf, rewards, order, time_limit, rows, cols)

    def _make_decider(self, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        return self._settled(0, kind, rows, cols)

    def _make_chooser(self, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        return self._settled(1, kind, rows, cols)

    def _settled(self, which: int, kind: str, rows: int, cols: int) -> tuple[Any, Any]:
        kernels = self._kernels(kind, type(self.heuristic) if self.heuristic else None, self.rewards)
        ctx, blank = self.context(kind, rows, cols)
        return kernels[which], (ctx, blank, self.rule, self._order)


class Mixed(Minimax):
    """Mixed search: the adversary picks the cell, chance the tile, and nodes on the way count, the deeper the more.

    Denotes V(root) with V(node, d) = 2^d · own value, plus, above the leaves, the best V(·, d + 1) over moves, or the
    worst over cells of 0.9 V(with a 2, d + 1) + 0.1 V(with a 4, d + 1); d counts moves and tiles from the root, whose
    own value is left out, being the same for all moves. A board without a legal move is worth the heuristic's lost
    value times 2^d. Cut-offs allow for what nodes add, so they change no chosen move. Options: see `Search2048`.

    Source: the tile-order document's program, hlongng2002241/2048 (Hanoi 2021), whose own cut-offs did not.
    """

    _kernels = staticmethod(mixed_kernels)

    def __init__(
        self,
        heuristic: Any = "tile-order",
        depth: Any = 3,
        leaf: str = "afterstate",
        order: Any = None,
        time_limit: float | None = None,
        rows: int | None = None,
        cols: int | None = None,
    ) -> None:
        if heuristic is None or depth is None:
            raise ValueError(
                f"heuristic={heuristic!r}, depth={depth!r}; the mixed search needs a heuristic and a depth"
            )
        super().__init__(heuristic, depth, leaf, False, order, time_limit, rows, cols)
