"""Players that need no search: random moves, and random games."""

from typing import Any

import numpy as np
from mergefall.checks import integer
from mergefall.game2048 import board
from mergefall.interrupt import stopped
from mergefall.kernels import kernel
from mergefall.typing import Kernel
from mergefall.words import any_bit

from mergefall_baselines.game2048.player import FORM, Boards
from mergefall_baselines.kernel_player import KernelPlayer


@kernel
def choose_any(state, memory, values, settings):
    """Draw a legal move; each is worth 0."""
    mask = board.legal_mask(*board.board_in(state))
    for action in range(4):
        values[action] = 0.0 if mask >> action & 1 else -np.inf
    return any_bit(memory, mask) if mask else 0


@kernel
def value_by_games(state, memory, values, settings):
    """Each legal move is worth the mean score of random games that begin with it."""
    games, trial = settings
    mask = board.legal_mask(*board.board_in(state))
    for action in range(4):
        values[action] = -np.inf
        if not mask >> action & 1:
            continue
        total = 0.0
        for _ in range(games):
            if stopped():
                break
            trial[board.CELLS :] = state[board.CELLS :]
            trial[board.STREAM], trial[board.SCORE] = board.draw(memory), 0
            _, legal, over, _ = board.step(trial, action)
            while not over:
                _, legal, over, _ = board.step(trial, any_bit(trial, legal))
            total += trial[board.SCORE]
        values[action] = total / games
    return np.argmax(values)


class Random(KernelPlayer):
    """Random: every legal move is equally likely.

    The random stream is the player's state: ``start(seed)`` begins a stream that differs from the environment's of the
    same seed.

    Args:
        rules: `rows` and `cols`, the board's size. Default: the observation's.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/random")
        >>> action, state = player.predict([[1, 0], [0, 0]], player.start(seed=0))
        >>> int(action) in (1, 2)
        True
    """

    form = FORM
    remembers = True

    def _make_decider(self, way: Boards, exact: bool) -> tuple[Kernel, Any]:
        return choose_any, None


class Rollout(KernelPlayer):
    """Rollout: the move after which random games score best on average.

    Args:
        games: int ≥ 1, random games for each legal move. Default: 50.
        rules: `rows` and `cols`, the board's size. Default: the observation's.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/rollout", games=50)
        >>> int(player.act([[5, 5], [0, 1]], player.start(seed=0)))
        3
    """

    form = FORM
    remembers = True

    def __init__(self, games: int = 50, **rules: Any) -> None:
        super().__init__(**rules)
        self.games = integer("games", games, 1)

    def _make_decider(self, way: Boards, exact: bool) -> tuple[Kernel, Any]:
        trial = board.new_states(1, way.rows, way.cols)[0]
        return value_by_games, (self.games, trial)
