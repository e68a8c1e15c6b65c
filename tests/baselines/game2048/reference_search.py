"""The searches of 2048 in plain Python over the reference rules: slow, obvious, no pruning, no sharing but a memo.

The compiled searches are tested against this. Depth counts own moves, the root move included; ``None`` is to the end.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from mergefall.game2048.reference import TILE_PROBABILITIES, Board, empty_cells, move, spawn

ILLEGAL = -math.inf


@dataclass(frozen=True)
class ReferenceSearch:
    """A search; `action_values` is its result.

    ``kind`` says what the opponent does to an afterstate: ``expectimax`` averages over cells and tiles, ``minimax``
    picks the worst cell and tile, ``mixed`` the worst cell and averages over its tiles. In ``mixed`` each node adds its
    own evaluation times 2^d, d plies below the root, whose own term is left out: it is the same for all moves.

    A leaf is ``heuristic(board, to_move)``: of the last afterstate, or with ``leaf="state"`` of the boards with one
    more tile. A player's node without a legal move is worth `dead`, at a leaf too; with `floored` no other inner node
    of the player is worth less. A chance node whose probability from the root is below `cutoff` is a leaf. With
    `rewards` the score of the moves counts.
    """

    kind: str
    heuristic: Callable[[Board, bool], float] = lambda board, to_move: 0.0
    depth: int | None = 1
    leaf: str = "afterstate"
    dead: float = 0.0
    floored: bool = False
    cutoff: float = 0.0
    rewards: bool = False
    memo: dict = field(default_factory=dict, repr=False)

    def action_values(self, board):
        """Value of the four actions, -inf where illegal."""
        left = math.inf if self.depth is None else self.depth
        values = []
        for action in range(4):
            after, gain, legal = move(board, action)
            value = self.after_move(after, left - 1, 1, 1.0) if legal else ILLEGAL
            values.append(value + gain * self.rewards)
        return values

    def to_move(self, board, left, ply, probability):
        """Value of a player's node with `left` own moves to go."""
        moves = [(after, gain) for after, gain, legal in (move(board, action) for action in range(4)) if legal]
        if not moves:
            return self.dead * self.weight(ply)
        if left == 0:
            return self.heuristic(board, True) * self.weight(ply)
        best = max(self.after_move(a, left - 1, ply + 1, probability) + gain * self.rewards for a, gain in moves)
        if self.floored:
            best = max(best, self.dead)
        return best + self.own(board, True, ply)

    def after_move(self, board, left, ply, probability):
        """Value of an afterstate with `left` own moves to go."""
        if (left == 0 and self.leaf == "afterstate") or (left > 0 and probability < self.cutoff):
            return self.heuristic(board, False) * self.weight(ply)
        key = board, left, ply if self.kind == "mixed" else 0, probability if self.cutoff else 1.0
        if key not in self.memo:
            self.memo[key] = self.opponent(board, left, ply, probability) + self.own(board, False, ply)
        return self.memo[key]

    def opponent(self, board, left, ply, probability):
        cells = empty_cells(board)
        worst, total = math.inf, 0.0
        for cell in cells:
            average = 0.0
            for rank, p in TILE_PROBABILITIES:
                value = self.to_move(spawn(board, cell, rank), left, ply + 1, probability * p / len(cells))
                average += p * value
                worst = min(worst, value) if self.kind == "minimax" else worst
            worst = min(worst, average) if self.kind == "mixed" else worst
            total += average / len(cells)
        return total if self.kind == "expectimax" else worst

    def own(self, board, to_move, ply):
        """What an inner node adds of its own."""
        return self.heuristic(board, to_move) * self.weight(ply) if self.kind == "mixed" else 0.0

    def weight(self, ply):
        return 2.0**ply if self.kind == "mixed" else 1.0
