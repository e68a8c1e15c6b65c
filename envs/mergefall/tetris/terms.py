"""The terms of a heuristic for every action of many games: features of placements, for learners."""

from __future__ import annotations

from functools import cache

import numpy as np

from mergefall.kernels import kernel, unowned
from mergefall.tetris import game
from mergefall.tetris.field import copy, field_mask, place, put
from mergefall.tetris.heuristics.base import Terms
from mergefall.tetris.placements import action_of, at_rest
from mergefall.typing import Kernel
from mergefall.weighted import write_terms


@cache
def terms_kernel(parts: Terms) -> Kernel:
    of_placement, of_last, of_board, _, of_locked, (first_last, first_board) = parts
    with_placement, with_last = of_placement is not None, of_last is not None

    @kernel
    def write(states, reach, weights, terms, legal, over):
        """Write terms float64[n, actions, k]; legal and over bool[n, actions]. The arrays come filled with 0."""
        states, weights, terms, legal, over = unowned((states, weights, terms, legal, over))
        after, placements = np.empty(states.shape[1] - game.COLUMNS, np.uint64), np.empty(terms.shape[1], np.int64)
        for i in range(len(states)):
            state = states[i]
            columns = game.columns_in(state)
            _, rows = game.size_of(state)
            field, clear_first, count = field_mask(rows), game.settings_of(state)[4], game.actions_of(state)
            for placement in placements[: game.list_legal(state, reach, placements)]:
                (rotation, column, y), action = at_rest(placement), action_of(placement)
                piece = game.table_row(state, game.placed_by(state, 1 if action >= count else 0))
                legal[i, action] = True
                copy(columns, after)
                lines, own, over[i, action] = place(after, piece, rotation, column, y, rows, clear_first)
                if of_locked:
                    copy(columns, after)
                    put(after, piece, rotation, column, y)
                for c in range(columns.size):
                    after[c] &= field  # heuristics take no cells above the field
                written = terms[i, action]
                write_terms(of_board(after, rows, weights), written[first_board:])
                if with_placement:
                    write_terms(of_placement(piece, rotation, column, y, lines, own, rows), written)
                if with_last:
                    write_terms(of_last(piece, rotation, column, y, rows), written[first_last:])

    return write
