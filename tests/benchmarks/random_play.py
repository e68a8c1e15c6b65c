"""Random legal play in one compiled loop: the speed of the rules of 2048 alone."""

from __future__ import annotations

import numpy as np
from mergefall.game2048 import packed
from mergefall.kernels import kernel
from mergefall.words import below, next_bits

U = np.uint64

# By action mask, twelve equally likely draws among its legal actions (twelve is divisible by 1, 2, 3 and 4).
LEGAL = [[action for action in range(4) if mask >> action & 1] or [0] for mask in range(16)]
PICKS = np.array([[legal[k % len(legal)] for k in range(12)] for legal in LEGAL])


@kernel
def play(stream, moves, lines):
    """Play `moves` random legal moves of 4×4 2048, game after game: (games ended, sum of their scores, stream)."""
    games, score = 0, 0
    board, mask = U(0), 0
    for _ in range(moves):
        if mask == 0:
            games += 1
            stream, board = packed.two_tiles(stream)
            mask = packed.legal_mask(board)
        stream, bits = next_bits(stream)
        action = PICKS[mask, U(below(bits, 12))]
        stream, bits = next_bits(stream)
        board, gain = packed.move(board, action, lines)
        board = packed.add_tile(board, bits)
        score += gain
        mask = packed.legal_mask(board)
    return games, score, stream
