"""`tetris/beam`: beam search for the game of today, with reachable placements, hold, a queue and bags."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from mergefall.checks import integer
from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.heuristics import Attack
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.keys.game import BACK_TO_BACK, CLEARS_IN_A_ROW, STORAGE, get
from mergefall.tetris.keys.game import PENDING as GARBAGE_TO_COME
from mergefall.tetris.placements import ABOVE, ACTION_SHIFT
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.beam_kernels import NO_HOLD, new_beam, parts_of, search
from mergefall_baselines.tetris.memory import BAG, chances_of, drawn_by, observe
from mergefall_baselines.tetris.player import STATE_FORM

AHEAD = 3  # placements after the known pieces
NARROW = 4  # the search by drawn pieces is so many times narrower


@kernel
def decide(state, memory, values, settings):
    """The best placement of a state by `search`, packed as in `placements.py`; writes the values of all."""
    beam, distribution, chances, placements = settings
    beam, columns, queue, hold = unowned(beam), game.columns_in(state), state[game.QUEUE], np.int64(state[game.HOLD])
    known, per_piece = 1 + game.settings_of(state)[2], game.actions_of(state)
    observe(memory, queue, known, hold)
    bag = chances_of(memory, distribution, beam.drawn, chances) if beam.bagged else 0
    chain, garbage = state[game.CHAIN], get(state[game.GARBAGE], GARBAGE_TO_COME)
    if game.choices_of(state) == 1:
        hold = NO_HOLD
    row, chained = get(chain, CLEARS_IN_A_ROW), get(chain, BACK_TO_BACK)
    count, best, choice = search(beam, columns, queue, known, bag, hold, row, chained, garbage), -np.inf, -1
    values[:] = -np.inf
    for i in range(count):
        _, rotation, column, y, _, holds = parts_of(beam.firsts[i])
        action = (rotation * columns.size + column) * (beam.rows + ABOVE) + y + holds * per_piece
        values[action] = value = beam.sums[1, i]
        if value > best or (value == best and action < choice >> ACTION_SHIFT):
            best, choice = value, action << ACTION_SHIFT | rotation << 16 | column << 8 | y
    if choice < 0 and game.list_legal(state, beam.rows, placements):  # all is lost
        return placements[0]
    return choice


class BeamSearch(KernelPlayer):
    """Beam search: the placement that leads to the best of the boards that the known pieces, and then others, make.

    The search places one piece after the other, the held one too, at all places that can be reached, spins of a T
    included. After each placement it keeps the `width` nodes with the highest values; nodes that are equal count once.
    The value of a node is the sum of the heuristic's weights for its placements (lines sent, lines cleared …) and of
    the terms of its board. After the known pieces the best quarter of the nodes goes on with three more pieces, drawn
    from the bag, `draws` times.

    The value of an action is the mean, over the draws, of the best node that it leads to; without draws, the value of
    that node. An action that none of the last nodes goes back to has its value as a board after one placement, less
    10⁶; a fatal one has −inf. Ties go to the lowest action. If all are fatal, the player takes the first legal one.

    Args:
        heuristic: ``attack``, or a mapping of this name and weights. Default: ``attack``.
        width: int ≥ 1, nodes that stay after each placement. Default: 400.
        draws: int ≥ 0, draws of the pieces after the known ones. Default: 8.
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows. Raises ValueError unless
            placements are ``reachable``.

    The draws are the same for every decision, so decisions depend on the observation and on the pieces seen alone.

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("tetris/beam", width=20, draws=0)
        >>> game = {"placements": "reachable", "hold": True, "preview": 5, "randomizer": "bag7"}
        >>> player.play("mergefall/Tetris-v0", seed=0, env_kwargs=game, max_episode_steps=50).figures["pieces"]
        50
    """

    form = STATE_FORM
    defaults = MappingProxyType({"placements": "reachable", "hold": True, "randomizer": "bag7", "preview": 5})
    plays = defaults

    def __init__(self, heuristic: Any = "attack", width: int = 400, draws: int = 8, **rules: Any) -> None:
        super().__init__(**rules)
        self.heuristic = make_heuristic(heuristic)
        if not isinstance(self.heuristic, Attack):
            raise ValueError(f"heuristic is {self.heuristic.name!r}; tetris/beam takes 'attack'")
        self.width, self.draws = integer("width", width, 1), integer("draws", draws, 0)

    remembers = KernelPlayer.counts_pieces  # pyright: ignore[reportAssignmentType]

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, Any]:
        if not way.reachable:
            raise ValueError(f"placements are {way.placements!r}; tetris/beam plays 'reachable'")
        drawn, distribution = drawn_by(None, way)
        top = way.rows if way.overflow == "strict" else way.rows + STORAGE
        narrow = max(1, self.width // NARROW)
        bagged, weights = distribution == BAG, self.heuristic.weight_vector()
        beam = new_beam(way.cols, way.rows, top, drawn, bagged, weights, self.width, self.draws, AHEAD, narrow)
        return decide, (beam, distribution, np.empty(7), np.empty(way.n_actions, np.int64))
