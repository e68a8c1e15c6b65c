"""Players that need no search: random moves, and random games."""

from __future__ import annotations

from typing import Any

import numpy as np
from mergefall.game2048 import board
from mergefall.interrupt import stopped
from mergefall.kernels import kernel
from mergefall.typing import Kernel
from mergefall.words import below, popcount

from mergefall_baselines.game2048.player import Boards, Player2048, is_count

U = np.uint64


@kernel
def draw_action(stream, mask):
    """One of the actions whose bits are set in `mask`, each equally likely."""
    skip = below(board.draw(stream), popcount(U(mask)))
    for action in range(4):
        if mask >> action & 1:
            if skip == 0:
                return action
            skip -= 1
    return -1


@kernel
def value_equally(cells, memory, values, settings):
    """Every legal move is worth 0."""
    rows, cols = settings
    mask = board.legal_mask(cells, rows, cols)
    for action in range(4):
        values[action] = 0.0 if mask >> action & 1 else -np.inf


@kernel
def choose_any(cells, memory, values, settings):
    """One legal move, drawn, is worth 1; the others are worth 0."""
    value_equally(cells, memory, values, settings)
    rows, cols = settings
    mask = board.legal_mask(cells, rows, cols)
    if mask:
        values[draw_action(memory, mask)] = 1.0


@kernel
def value_by_games(cells, memory, values, settings):
    """Each legal move is worth the mean score of random games that begin with it."""
    rows, cols, games = settings
    mask = board.legal_mask(cells, rows, cols)
    state = np.zeros(board.CELLS + (cells.size + 7) // 8, dtype=np.uint64)
    for action in range(4):
        values[action] = -np.inf
        if not mask >> action & 1:
            continue
        total = 0.0
        for _ in range(games):
            if stopped():
                break
            state[board.STREAM] = board.draw(memory)
            state[board.SCORE] = U(0)
            state[board.SHAPE] = U(rows | cols << board.COLS_SHIFT)
            board.flat_cells(state, rows, cols)[:] = cells
            _, mask, over, _ = board.step(state, action)
            while not over:
                _, mask, over, _ = board.step(state, draw_action(state, mask))
            total += state[board.SCORE]
        values[action] = total / games


class Random(Player2048):
    """Random: every legal move is equally likely.

    The random stream is the player's state: ``start(seed)`` begins a stream that differs from the environment's of the
    same seed. Options: rows, cols (default: the observation's).

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/random")
        >>> action, state = player.predict([[1, 0], [0, 0]], player.start(seed=0))
        >>> int(action) in (1, 2)
        True
    """

    remembers = True
    two_kernels = True

    def __init__(self, rows: int | None = None, cols: int | None = None) -> None:
        super().__init__(rows, cols)

    def _make_decider(self, rules: Boards, exact: bool) -> tuple[Kernel, Any]:
        return value_equally if exact else choose_any, (rules.rows, rules.cols)


class Rollout(Player2048):
    """Rollout: the move after which random games score best on average.

    Args:
        games: random games for each legal move.
        rows, cols: the board's size. Default: the observation's.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/rollout", games=50)
        >>> int(player.act([[5, 5], [0, 1]], player.start(seed=0)))
        3
    """

    remembers = True

    def __init__(self, games: int = 50, rows: int | None = None, cols: int | None = None) -> None:
        super().__init__(rows, cols)
        if not is_count(games):
            raise ValueError(f"games={games!r}; expected an integer from 1 up")
        self.games = games

    def _make_decider(self, rules: Boards, exact: bool) -> tuple[Kernel, Any]:
        return value_by_games, (rules.rows, rules.cols, self.games)
