"""Boards, placements and heuristics drawn: what is on the picture, not how it looks."""

import io

import matplotlib
import numpy as np
import pytest
from mergefall.tetris import HEURISTICS, from_text, place
from mergefall.tetris.plot import NEW, plot_terms

BOARD = "....../....../....../#...../##.###/#.####"


@pytest.mark.parametrize("name", HEURISTICS)
def test_bars_and_the_empty_board_make_up_the_value(name):
    h, placed = HEURISTICS[name], place(BOARD, "T", 1, 2)
    figure = plot_terms(h, [placed, from_text(BOARD).tolist()], titles=["placed", "board"])
    assert [axes.get_title(loc="left") for axes in figure.axes[::2]] == ["placed", "board"]
    empty = h.board(np.zeros((6, 6), int))
    for bars, terms, value in zip(
        figure.axes[1::2], (h.terms(placed), h.board_terms(placed.board)), (h(placed), None), strict=True
    ):
        assert [label.get_text() for label in bars.get_yticklabels()] == list(terms)
        if value is not None:
            assert sum(bar.get_width() for bar in bars.patches) + empty == pytest.approx(value)
    figure.savefig(file := io.BytesIO())
    assert file.tell() > 5000


def test_a_placement_is_marked_above_the_field_too():
    axes = plot_terms(HEURISTICS["bcts"], place("#...\n" * 6, "I", 1, 0)).axes[0]
    marked = [patch for patch in axes.patches if patch.get_facecolor() == matplotlib.colors.to_rgba(NEW)]
    assert sorted(round(patch.get_y()) for patch in marked) == [-4, -3, -2, -1]
    assert len(axes.patches) == 4 * 6 + 4
