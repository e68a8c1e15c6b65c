"""Figures of 2048: the terms of a heuristic, the clusters of a board, what a move does to them. Needs matplotlib."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mergefall.draw import (
    BAD,
    BOARD,
    DARK,
    EMPTY,
    GOOD,
    INK,
    LIGHT,
    NEW,
    Shade,
    draw_bars,
    new_figure,
    shade,
    short_number,
)
from mergefall.game2048.clusters import Cluster, clusters, compare_move
from mergefall.game2048.heuristics.base import Heuristic
from mergefall.game2048.reference import ACTIONS
from mergefall.game2048.render import tile_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghij"  # one for each cluster of a board, 36 at most
GREY: Shade = (0.86, 0.86, 0.86)


def plot_terms(h: Heuristic, boards: ArrayLike, to_move: bool = False, titles: Sequence[str] | None = None) -> Figure:
    """Draw boards, and beside each a bar for weight·term of each term: their sum is the value.

    All bars share one linear axis, so terms can be compared. Terms of weight 0 are left out, and so is nneonneo's base,
    which is the same on every board. Raises ImportError without matplotlib (`pip install "mergefall[render]"`).

    Args:
        h: the heuristic.
        boards: ranks (rows, cols) or (n, rows, cols), as `h` takes them.
        to_move: as `h` takes it.
        titles: one for each board; default: none.
    """
    batch = np.asarray(boards)
    batch = batch[None] if batch.ndim == 2 else batch
    values, parts = h(batch, to_move), _weighted(h, batch, to_move)
    drawn = {name: part for name, part in parts.items() if name != "base"}
    figure = new_figure(8, 2.1 * len(batch))
    axes = figure.subplots(len(batch), 2, width_ratios=(1, 2.2), squeeze=False)
    everything = np.concatenate([[0.0], *drawn.values()])
    low, high = everything.min(), everything.max()
    for i, (left, right) in enumerate(axes):
        draw_board(left, batch[i])
        draw_bars(right, {name: float(part[i]) for name, part in drawn.items()}, low, high)
        note = "" if "base" not in parts else f"  (base {short_number(parts['base'][i])} included)"
        if not np.isclose(values[i], sum(part[i] for part in parts.values())):
            note = "  (no move left: not the sum)"
        right.set_title(f"{h.name}: {short_number(values[i])}{note}", loc="left", fontsize=10, color=INK)
        if titles:
            left.set_title(titles[i], loc="left", fontsize=10, color=INK)
    return figure


def plot_clusters(ranks: ArrayLike) -> Figure:
    """Draw a board (rows, cols) with a colour and a letter for each cluster in the order of `clusters`; grey for empty.

    Raises ValueError for a bad board, ImportError without matplotlib.
    """
    figure = new_figure(2.8, 2.8)
    axes, colours = figure.subplots(), dict[int, Shade]()
    for i, cluster in enumerate(clusters(ranks)):  # large steps on the colour wheel, so that successive ones differ
        colour = colorsys.hls_to_rgb((0.08 + 0.382 * i) % 1, (0.82, 0.7)[i % 2], 0.65)
        colours |= dict.fromkeys(cluster.cells, colour if cluster.rank else GREY)
        row, col = divmod(cluster.cells[0], np.shape(ranks)[1])
        axes.text(col + 0.09, row + 0.26, LETTERS[i], fontsize=7, color=INK)
    draw_board(axes, ranks, colours)
    return figure


def plot_move(before: ArrayLike, action: int) -> Figure:
    """Draw a board before and after a move, without the new tile, and outline the clusters that the move changed.

    The first board shows the clusters that the move split. The second shows the clusters that it joined and the
    clusters of merged tiles alone. Raises ValueError for a bad board or action, ImportError without matplotlib.
    """
    from matplotlib.lines import Line2D

    result = compare_move(before, action)
    figure = new_figure(6.2, 3.0)
    left, right = figure.subplots(1, 2)
    draw_board(left, before)
    draw_board(right, result.after)
    _outline(left, result.split, np.shape(before)[1], BAD)
    _outline(right, result.joined, np.shape(before)[1], GOOD)
    _outline(right, result.new, np.shape(before)[1], NEW)
    groups = [fracture.tile_groups for fracture in result.fracture]
    legal = f"{result.score} points" if result.legal else "illegal"
    left.set_title(f"before: {_count(groups[0])}", loc="left", fontsize=10, color=INK)
    right.set_title(f"{ACTIONS[action]}, {legal}: {_count(groups[1])}", loc="left", fontsize=10, color=INK)
    marks = [Line2D([], [], color=colour, linewidth=3) for colour in (BAD, GOOD, NEW)]
    figure.legend(
        marks, ["split by the move", "joined", "merged, alone"], loc="outside lower center", ncols=3, frameon=False
    )
    return figure


def draw_board(axes: Axes, ranks: ArrayLike, colours: Mapping[int, Shade] | None = None) -> None:
    """Draw one board of ranks (rows, cols) into matplotlib axes; the cell in row r, column c is at (c, r), one wide.

    `colours` maps the flat index of a cell to a colour that replaces its tile's.
    """
    from matplotlib.patches import FancyBboxPatch

    def tile(x: float, y: float, width: float, height: float, colour: Shade, corner: float) -> None:
        style = f"round,pad=0,rounding_size={corner}"
        axes.add_patch(FancyBboxPatch((x, y), width, height, style, facecolor=colour, linewidth=0))

    board = np.asarray(ranks)
    rows, cols = board.shape
    colours = colours or {}
    tile(0, 0, cols, rows, shade(BOARD), 0.1)
    for (r, c), rank in np.ndenumerate(board):
        back, front = tile_colours(int(rank)) if rank else (EMPTY, LIGHT)
        own = colours.get(r * cols + c)
        tile(c + 0.06, r + 0.06, 0.88, 0.88, own or shade(back), 0.08)
        if rank:
            _write(axes, str(1 << int(rank)), c + 0.5, r + 0.5, shade(DARK if own else front))
    axes.set(xlim=(-0.05, cols + 0.05), ylim=(rows + 0.05, -0.05), aspect="equal", anchor="N")
    axes.axis("off")


def _write(axes: Axes, text: str, x: float, y: float, colour: Shade) -> None:
    """Digits centred on a tile, as large as fits: drawn as outlines, which scale with the axes as text does not."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.patches import PathPatch
    from matplotlib.textpath import TextPath
    from matplotlib.transforms import Affine2D

    outline = TextPath((0, 0), text, size=1, prop=FontProperties(weight="bold"))
    box = outline.get_extents()
    scale = min(0.36 / box.height, 0.7 / box.width)
    middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    place = Affine2D().translate(-middle[0], -middle[1]).scale(scale, -scale).translate(x, y)
    axes.add_patch(PathPatch(outline.transformed(place), facecolor=colour, linewidth=0))


def _weighted(h: Heuristic, batch: Any, to_move: bool) -> dict[str, Any]:
    """weight·term, float64[n], for each term whose weight is not 0 on every board."""
    at = getattr(h, "at", None)  # prairie-fire's weights depend on the largest tile
    used = [at(int(board.max())) if at else h for board in batch]
    weights = {name: np.array([getattr(now, name) for now in used]) for name in h.term_names}
    terms = h.terms(batch, to_move)
    return {name: weight * terms[name] + 0.0 for name, weight in weights.items() if weight.any()}


def _count(groups: int) -> str:
    return f"{groups} cluster{'s' * (groups != 1)} of tiles"


def _outline(axes: Axes, found: Iterable[Cluster], cols: int, colour: str) -> None:
    for cluster in found:
        cells = {divmod(cell, cols) for cell in cluster.cells}
        for r, c in cells:
            sides = {(r - 1, c): "0010", (r + 1, c): "0111", (r, c - 1): "0001", (r, c + 1): "1011"}
            for beyond, side in sides.items():
                if beyond not in cells:
                    x0, y0, x1, y1 = map(int, side)
                    line = axes.plot([c + x0, c + x1], [r + y0, r + y1], color=colour, linewidth=3.5, clip_on=False)
                    line[0].set_solid_capstyle("round")
