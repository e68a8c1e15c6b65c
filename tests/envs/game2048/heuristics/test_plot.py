"""Boards, heuristics and clusters drawn: what is on the picture, not how it looks."""

import io

import pytest
from mergefall.game2048 import HEURISTICS, clusters, heuristic, plot_clusters, plot_move, plot_terms


@pytest.mark.parametrize("name", HEURISTICS)
def test_every_heuristic_is_drawn(name, boards):
    figure = plot_terms(HEURISTICS[name], boards[20:22], titles=["before", "after"])
    assert [axes.get_title(loc="left") for axes in figure.axes[::2]] == ["before", "after"]
    figure.savefig(file := io.BytesIO())
    assert file.tell() > 5000


def test_bars_are_weight_times_term_under_the_stage_that_holds(boards):
    board = boards[boards.max(axis=(1, 2)) == 11][0]
    h = heuristic({"name": "prairie-fire", "stages": [[11, {"penalty": 0, "large": 2}]]})
    bars = plot_terms(h, board).axes[1]
    names = [label.get_text() for label in bars.get_yticklabels()]
    assert names == ["reward", "bonus", "large"]
    widths = [bar.get_width() for bar in bars.patches]
    terms = h.terms(board)
    assert widths == [terms["reward"], terms["bonus"], 2 * terms["large"]]
    assert sum(widths) == pytest.approx(h(board))


def test_a_move_is_drawn_with_what_it_did():
    titles = [axes.get_title(loc="left") for axes in plot_move([[1, 1, 2], [2, 0, 1]], 3).axes]
    assert titles == ["before: 4 clusters of tiles", "left, 4 points: 2 clusters of tiles"]


def test_each_cell_has_the_letter_of_its_cluster(boards):
    board = boards[20]
    letters = [text.get_text() for text in plot_clusters(board).axes[0].texts]
    assert len(letters) == board.size
    sizes = [len(cluster.cells) for cluster in clusters(board)]
    assert [letters.count(letter) for letter in sorted(set(letters))] == sizes
