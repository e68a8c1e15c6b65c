"""The searches of Tetris in plain Python over the public rules: slow, obvious, nothing shared, nothing pruned.

The compiled searches are tested against this. Boards are arrays, pieces are names.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from mergefall.tetris import place
from mergefall.tetris.reference import legal_placements

LAST_TERMS = ("f1", "f2", "f3")  # of the last placement only; other terms of placements add up


def chances_after(chances, piece, pieces):
    """What is known of the piece after next: a bag (a frozenset) loses a piece, frequencies (a dict) stay."""
    if isinstance(chances, frozenset):
        return chances - {piece} or frozenset(pieces)
    return chances


def probabilities(chances):
    if isinstance(chances, frozenset):
        return dict.fromkeys(sorted(chances), 1 / len(chances))
    total = sum(chances.values())
    return {piece: count / total for piece, count in chances.items() if count}


@dataclass(frozen=True)
class ReferenceSearch:
    """A search; `action_values` is its result.

    ``depth`` counts own moves. ``clears`` False leaves full rows on the boards.
    """

    heuristic: object
    depth: int
    pieces: tuple = ("I", "O", "T", "S", "Z", "J", "L")
    slides: bool = False
    overflow: str = "strict"
    clears: bool = True
    lost: float = -math.inf
    beam: int | None = None
    memo: dict = field(default_factory=dict, repr=False)

    def action_values(self, board, queue, chances):
        """Value of each legal action for a queue of known pieces: action -> value."""
        return self.best(np.asarray(board, dtype=np.uint8), tuple(queue), self.depth, chances)

    def best(self, board, queue, left, chances):
        values = dict.fromkeys(self.moves(board, queue[0]), -math.inf)
        for action in self.looked_into(board, queue[0], left):
            fatal, worth, at_the_end, after = self.moves(board, queue[0])[action]
            if fatal:
                continue
            if left == 1:
                values[action] = worth + at_the_end
            else:
                values[action] = worth + self.after(after, queue[1:], left - 1, chances)
        return values

    def after(self, board, queue, left, chances):
        """Value of a board with `left` own moves to come."""
        if queue:
            return self.or_lost(self.best(board, queue, left, chances))
        mean = 0.0
        for piece, share in probabilities(chances).items():
            rest = chances_after(chances, piece, self.pieces)
            mean += share * self.or_lost(self.best(board, (piece,), left, rest))
        return mean

    def or_lost(self, values):
        best = max(values.values())
        return self.lost if best == -math.inf else best

    def looked_into(self, board, piece, left):
        """The actions that a beam leaves, at inner nodes."""
        moves = self.moves(board, piece)
        if self.beam is None or left == 1:
            return list(moves)
        values = {a: -math.inf if fatal else worth + end for a, (fatal, worth, end, _) in moves.items()}
        return sorted(moves, key=lambda action: (-values[action], action))[: self.beam]

    def moves(self, board, piece):
        """action -> (whether fatal, worth of the move, what it adds as the last one, the board after it)."""
        key = board.tobytes(), board.shape, piece
        if key not in self.memo:
            empty = ((0,) * board.shape[1],) * 5
            legal = legal_placements(empty + tuple(map(tuple, board.tolist())), piece, self.slides)
            self.memo[key] = {
                (slide * 4 + rotation) * board.shape[1] + column: self.move(board, piece, rotation, column, slide)
                for slide, rotation, column in legal
            }
        return self.memo[key]

    def move(self, board, piece, rotation, column, slide):
        placement = place(board, piece, rotation, column, slide, self.overflow)
        after = placement.board if self.clears else placement.locked
        if placement.over:
            return True, 0.0, 0.0, after
        worth, at_the_end, of_board = 0.0, 0.0, self.heuristic.board_terms(placement.board)
        for name, term in self.heuristic.terms(placement).items():
            value = getattr(self.heuristic, name) * term
            if name in of_board or name in LAST_TERMS:
                at_the_end += value
            else:
                worth += value
        return False, worth, at_the_end, after
