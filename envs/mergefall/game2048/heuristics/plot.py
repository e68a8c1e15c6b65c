"""A heuristic to look at: boards, and beside each what every term adds to its value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mergefall.game2048.heuristics.base import Heuristic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GOOD, BAD, EMPTY, INK, PAPER = "#3b8a5a", "#c4573a", "#cdc1b4", "#4a4238", "#faf8ef"


def plot_terms(h: Heuristic, boards: ArrayLike, to_move: bool = False, titles: Sequence[str] | None = None) -> Figure:
    """Draw boards, and beside each a bar for weight·term of each term that counts.

    The bars share one axis, linear up to 1 and logarithmic beyond, since terms differ by orders of magnitude. Left out
    are terms of weight 0, and nneonneo's base, which is the same on every board.

    Args:
        h: the heuristic.
        boards: ranks (rows, cols) or (n, rows, cols), as `h` takes them.
        to_move: as `h` takes it.
        titles: one for each board.

    Raises:
        ImportError: without matplotlib, which ``pip install 'mergefall[render]'`` brings.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing terms needs matplotlib; install it with: pip install 'mergefall[render]'") from error
    batch = np.asarray(boards)
    batch = batch[None] if batch.ndim == 2 else batch
    values, parts = h(batch, to_move), _weighted(h, batch, to_move)
    figure, axes = plt.subplots(
        len(batch),
        2,
        figsize=(8, 2.4 * len(batch)),
        width_ratios=(1, 1.7),
        squeeze=False,
        layout="constrained",
        facecolor=PAPER,
    )
    everything = np.concatenate([[0.0], *parts.values()])
    low, high = everything.min(), everything.max()
    for i, (left, right) in enumerate(axes):
        draw_board(left, batch[i])
        _draw_bars(right, {name: float(part[i]) for name, part in parts.items()}, low, high)
        right.set_title(f"{h.name}  {_figure(values[i])}", loc="left", fontsize=10, color=INK)
        if titles:
            left.set_title(titles[i], loc="left", fontsize=10, color=INK)
    plt.close(figure)  # it lives on in the caller's hands: a notebook shows it once, a script leaks none
    return figure


def draw_board(axes: Axes, ranks: ArrayLike) -> None:
    """Draw one board of ranks (rows, cols) into matplotlib axes."""
    from matplotlib import colormaps
    from matplotlib.patches import FancyBboxPatch

    board = np.asarray(ranks)
    rows, cols = board.shape
    shades = colormaps["YlOrBr"]
    for (r, c), rank in np.ndenumerate(board):
        face = shades(0.08 + 0.055 * min(int(rank), 16)) if rank else EMPTY
        tile = FancyBboxPatch(
            (c + 0.1, r + 0.1), 0.8, 0.8, "round,pad=0,rounding_size=0.1", facecolor=face, linewidth=0
        )
        axes.add_patch(tile)
        if rank:
            text = str(2 ** int(rank))
            color = PAPER if rank > 8 else INK
            axes.text(
                c + 0.5, r + 0.52, text, ha="center", va="center", color=color, fontsize=min(11, 40 / len(text) + 1)
            )
    axes.set(xlim=(0, cols), ylim=(rows, 0), aspect="equal")
    axes.axis("off")


def _weighted(h: Heuristic, batch: Any, to_move: bool) -> dict[str, Any]:
    """weight·term float64[n] for each term to draw."""
    at = getattr(h, "at", None)  # prairie-fire's weights depend on the largest tile
    used = [at(int(board.max())) if at else h for board in batch]
    weights = {name: np.array([getattr(now, name) for now in used]) for name in h.term_names if name != "base"}
    terms = h.terms(batch, to_move)
    return {name: weight * terms[name] for name, weight in weights.items() if weight.any()}


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _draw_bars(axes: Axes, parts: dict[str, float], low: float, high: float) -> None:
    values = list(parts.values())
    places = range(len(values))
    axes.barh(places, values, color=[GOOD if value >= 0 else BAD for value in values], height=0.66)
    axes.set_xscale("symlog", linthresh=1)
    room = (1 + max(high, -low)) ** 0.7  # for the figures, as a factor: the axis is logarithmic
    axes.set_xlim(low * room if low < 0 else 0, max(high * room, 1))
    axes.axvline(0, color=INK, linewidth=0.8)
    for place, value in zip(places, values, strict=True):
        axes.annotate(
            _figure(value),
            (value, place),
            xytext=(4 if value >= 0 else -4, 0),
            textcoords="offset points",
            ha="left" if value >= 0 else "right",
            va="center",
            fontsize=8,
            color=INK,
        )
    axes.set_yticks(places, list(parts), fontsize=9, color=INK)
    axes.invert_yaxis()
    axes.set_xticks([])
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    axes.set_facecolor(PAPER)
