"""Figures of 2048: the terms of a heuristic, the clusters of a board, what a move does to them. Needs matplotlib."""

import colorsys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mergefall.draw import BAD, GOOD, INK, NEW, draw_terms, new_figure, short_number
from mergefall.game2048.clusters import clusters, compare_move
from mergefall.game2048.heuristics.base import Heuristic
from mergefall.game2048.reference import ACTIONS
from mergefall.game2048.render import GAP, SIDE, draw
from mergefall.typing import Dict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghij"  # one for each cluster of a board, 36 at most
GREY = (0.86, 0.86, 0.86)


def plot_terms(h: Heuristic, boards: ArrayLike, to_move: bool = False, titles: Sequence[str] | None = None) -> "Figure":
    """Draw boards, and beside each a bar for weight·term of each term: their sum is the value.

    All bars share one linear axis, so terms can be compared. Terms of weight 0 are left out, and so is nneonneo's base,
    which is the same on every board. Raises DependencyNotInstalled without matplotlib (extra `render`).

    Args:
        h: the heuristic.
        boards: ranks (rows, cols) or (n, rows, cols), as `h` takes them.
        to_move: as `h` takes it.
        titles: one for each board; default: none.
    """
    batch = np.asarray(boards)
    batch = batch[None] if batch.ndim == 2 else batch
    values, parts = h(batch, to_move), _weighted(h, batch, to_move)
    rows = []
    for i, (board, value) in enumerate(zip(batch, values, strict=True)):
        own = {name: float(part[i]) for name, part in parts.items()}
        about = f"{h.name}: {short_number(value)}"
        if not np.isclose(value, sum(own.values())):
            about += "  (no move left: not the sum)"
        elif "base" in own:
            about += f"  (base {short_number(own['base'])} included)"
        own.pop("base", None)
        rows.append((partial(draw_board, ranks=board), own, about))
    return draw_terms(2.1, (1, 2.2), rows, titles)


def plot_clusters(ranks: ArrayLike) -> "Figure":
    """Draw a board (rows, cols) with a letter and its colour for each cluster, in the order of `clusters`.

    Raises ValueError for a bad board, DependencyNotInstalled without matplotlib.
    """
    figure = new_figure(2.8, 2.8)
    axes = figure.subplots()
    draw_board(axes, ranks)
    for i, cluster in enumerate(clusters(ranks)):  # large steps on the colour wheel, so that successive ones differ
        colour = colorsys.hls_to_rgb((0.08 + 0.382 * i) % 1, (0.82, 0.7)[i % 2], 0.65) if cluster.rank else GREY
        for r, c in (divmod(cell, np.shape(ranks)[1]) for cell in cluster.cells):
            axes.text(c + 0.13, r + 0.24, LETTERS[i], fontsize=7, color=INK, backgroundcolor=colour)
    return figure


def plot_move(before: ArrayLike, action: int) -> "Figure":
    """Draw a board before and after a move, without the new tile, and outline the clusters that the move changed.

    The first board shows the clusters that the move split. The second shows the clusters that it joined and the
    clusters of merged tiles alone. Raises ValueError for a bad board or action, DependencyNotInstalled without
    matplotlib.
    """
    from matplotlib.lines import Line2D

    result = compare_move(before, action)
    figure = new_figure(6.2, 3.0)
    left, right = figure.subplots(1, 2)
    draw_board(left, before)
    draw_board(right, result.after)
    for axes, found, colour in ((left, result.split, BAD), (right, result.joined, GOOD), (right, result.new, NEW)):
        for cluster in found:
            _outline(axes, cluster.cells, np.shape(before)[1], colour)
    legal = f"{result.score} points" if result.legal else "illegal"
    left.set_title(f"before: {_count(before)}", loc="left", fontsize=10, color=INK)
    right.set_title(f"{ACTIONS[action]}, {legal}: {_count(result.after)}", loc="left", fontsize=10, color=INK)
    marks = [Line2D([], [], color=colour, linewidth=3) for colour in (BAD, GOOD, NEW)]
    figure.legend(
        marks, ["split by the move", "joined", "merged, alone"], loc="outside lower center", ncols=3, frameon=False
    )
    return figure


def draw_board(axes: Any, ranks: ArrayLike, colours: Mapping[int, Any] | None = None) -> None:
    """Draw one board of ranks (rows, cols) into matplotlib axes; the cell in row r, column c is at (c, r), one wide.

    `colours` maps the flat index of a cell to the colour of an outline.
    """
    picture, (rows, cols), edge = draw(ranks), np.shape(ranks), GAP / (SIDE + GAP) / 2
    axes.imshow(picture, extent=(-edge, cols + edge, rows + edge, -edge))
    for cell, colour in (colours or {}).items():
        _outline(axes, [cell], cols, colour)
    axes.set_anchor("N")
    axes.axis("off")


def _weighted(h: Heuristic, batch: Any, to_move: bool) -> Dict:
    """weight·term, float64[n], for each term whose weight is not 0 on every board."""
    at = getattr(h, "at", None)  # prairie-fire's weights depend on the largest tile
    used = [at(int(board.max())) if at else h for board in batch]
    weights = {name: np.array([getattr(now, name) for now in used]) for name in h.term_names}
    terms = h.terms(batch, to_move)
    return {name: weight * terms[name] + 0.0 for name, weight in weights.items() if weight.any()}


def _count(board: ArrayLike) -> str:
    groups = sum(cluster.rank > 0 for cluster in clusters(board))
    return f"{groups} cluster{'s' * (groups != 1)} of tiles"


def _outline(axes: Any, cells: Sequence[int], cols: int, colour: Any) -> None:
    """Outline a set of cells, given by flat indices."""
    inside = {divmod(cell, cols) for cell in cells}
    for r, c in inside:
        sides = {(r - 1, c): "0010", (r + 1, c): "0111", (r, c - 1): "0001", (r, c + 1): "1011"}
        for x0, y0, x1, y1 in (map(int, side) for beyond, side in sides.items() if beyond not in inside):
            style = {"color": colour, "linewidth": 3.5, "clip_on": False, "solid_capstyle": "round"}
            axes.plot([c + x0, c + x1], [r + y0, r + y1], **style)
