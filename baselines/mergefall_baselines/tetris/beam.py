"""`tetris/beam`: beam search for the game of today, with reachable placements, hold, a queue and bags."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
from mergefall.checks import integer
from mergefall.tetris.heuristics import heuristic as make_heuristic
from mergefall.tetris.keys.game import STORAGE
from mergefall.tetris.reach import new_work
from mergefall.tetris.rules import Rules
from mergefall.typing import Kernel

from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.beam_kernels import CANDIDATES, NARROW, Beam, decide_kernel, new_nodes
from mergefall_baselines.tetris.player import STATE_FORM

WIDEST = 200_000


class BeamSearch(KernelPlayer):
    """Beam search: the placement that leads to the best of the boards that the known pieces, and then others, make.

    The search places one piece after the other, the held one too, at all places that can be reached, spins of a T
    included. After each placement it keeps the `width` nodes with the highest values; nodes that are equal count once.
    The value of a node is the sum of the heuristic's terms of its placements and locks (lines sent, lines cleared …),
    and of the board, the chain and the held piece that they leave. After the known pieces the best quarter of the nodes
    goes on with three more pieces, drawn from the bag, `draws` times.

    The value of an action is the mean, over the draws, of the best node that it leads to; without draws, the value of
    that node. An action from which no node of the last level comes has the value of the board right after it, less
    10⁶; a fatal one has −inf. Ties go to the lowest action. If all are fatal, the player takes the first legal one.

    Args:
        heuristic: a name, a mapping of a name and weights, or a function of a board. Default: ``attack``.
        width: int from 1 to 200,000, nodes that stay after each placement. Each takes up to 3 KiB. Default: 400.
        draws: int ≥ 0, draws of the pieces after the known ones. Default: 8.
        rules: the environment's arguments `cols`, `rows`, `pieces`, `randomizer`, `preview`, `placements`, `hold`,
            `overflow`. Default: those of the environment, or what the observation shows. Its games raise ValueError
            unless placements are ``reachable``.

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
        self.width, self.draws = integer("width", width, 1, WIDEST), integer("draws", draws, 0)

    remembers = KernelPlayer.counts_pieces  # pyright: ignore[reportAssignmentType]

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, Any]:
        if not way.reachable:
            raise ValueError(f"placements are {way.placements!r}; tetris/beam plays 'reachable'")
        self.heuristic.check_size(way.rows, way.cols)
        candidates = CANDIDATES * max(self.width, 512)
        slots = CANDIDATES << (candidates - 1).bit_length()
        beam = Beam(
            rows=way.rows,
            top=way.rows if way.overflow == "strict" else way.rows + STORAGE,
            weights=self.heuristic.weight_vector(),
            draws=self.draws,
            kept=new_nodes(self.width, way.cols),
            drawn=new_nodes(max(1, self.width // NARROW), way.cols),
            listed=new_nodes(candidates + 1, way.cols),
            keys=np.zeros(candidates, np.uint64),
            table=np.zeros(slots, np.uint64),
            best=np.zeros(slots),
            counts=np.zeros(2, np.int64),
            work=new_work(way.cols),
        )
        return decide_kernel(self.heuristic.recipe), (beam, np.empty(way.n_actions, np.int64))
