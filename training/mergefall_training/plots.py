"""Pictures of a comparison. Importing this needs matplotlib (the extra ``render``)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from mergefall_training.comparison import GameResult

# Okabe and Ito's palette, told apart with any colour vision (jfly.uni-koeln.de/color, 2008).
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#666666"


def draw(result: GameResult) -> dict[str, bytes]:
    """The game's plots as PNG files by name: ``scores``, ``speed``, and ``tiles`` where the game has tiles."""
    figures = {"scores": _scores(result), "speed": _speed(result)}
    if result.rows[0].evaluation.max_tiles.size:
        figures["tiles"] = _tiles(result)
    return {name: _png(figure) for name, figure in figures.items()}


def _png(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=144)
    return content.getvalue()


def _figure(result: GameResult, title: str, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(10, height), layout="constrained")
    axes = figure.add_subplot()
    figure.suptitle(f"{result.game.name}: {title}", x=0.01, ha="left", fontsize=13, fontweight="bold")
    axes.set_title(result.conditions, loc="left", fontsize=8, color=GREY)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _players_axis(axes: Axes, result: GameResult) -> None:
    """One line per player, the best on top, each with its number of games."""
    labels = [f"{row.entry.label}\nN={row.summary.episodes}" for row in result.rows]
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def _score_axis(axes: Axes, name: Literal["x", "y"], scores: ArrayLike) -> None:
    """Logarithmic where scores differ by an order of magnitude, with plain numbers along it."""
    axis = axes.xaxis if name == "x" else axes.yaxis
    if 0 < 20 * np.min(scores) < np.max(scores):
        axes.set(**{f"{name}scale": "log"})
        # Set after the scale, which brings its own.
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def _scores(result: GameResult) -> Figure:
    figure, axes = _figure(result, "final score, with 95 % intervals", 1.6 + 0.42 * len(result.rows))
    _players_axis(axes, result)
    for number, (name, colour, marker) in enumerate(
        [("mean", BLUE, "o"), ("interquartile mean", ORANGE, "s"), ("median", GREEN, "D")]
    ):
        estimates = [getattr(row.summary, "iqm" if "inter" in name else name) for row in result.rows]
        y = np.arange(len(estimates)) + 0.22 * (number - 1)
        axes.hlines(y, [e.low for e in estimates], [e.high for e in estimates], colors=colour, linewidth=2, alpha=0.7)
        axes.plot([e.value for e in estimates], y, marker, color=colour, markersize=5, label=name)
    _score_axis(axes, "x", [row.summary.mean.value for row in result.rows])
    axes.set_xlabel("score")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def _tiles(result: GameResult) -> Figure:
    figure, axes = _figure(result, "largest tile at the end of the game", 1.6 + 0.42 * len(result.rows))
    _players_axis(axes, result)
    tiles = sorted({int(tile) for row in result.rows for tile in row.evaluation.max_tiles})
    colours = matplotlib.colormaps["viridis"](np.linspace(0.08, 0.98, len(tiles)))
    left = np.zeros(len(result.rows))
    for tile, colour in zip(tiles, colours, strict=True):
        shares = np.array([(row.evaluation.max_tiles == tile).mean() for row in result.rows])
        axes.barh(
            range(len(shares)), shares, left=left, color=colour, edgecolor="white", linewidth=0.6, label=str(tile)
        )
        ink = "white" if np.dot(colour[:3], (0.3, 0.6, 0.1)) < 0.55 else "black"
        for y, share in enumerate(shares):
            if share >= 0.06:
                axes.text(left[y] + share / 2, y, f"{share:.0%}", ha="center", va="center", fontsize=8, color=ink)
        left += shares
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set_xlabel("share of games")
    figure.legend(
        loc="outside lower center",
        ncols=min(len(tiles), 12),
        frameon=False,
        fontsize=9,
        handlelength=1,
        columnspacing=1.2,
    )
    return figure


def _speed(result: GameResult) -> Figure:
    figure, axes = _figure(result, "mean score against thinking time", 6)
    times = np.array([row.summary.ms_per_move for row in result.rows])
    means = np.array([row.summary.mean.value for row in result.rows])
    low = np.array([row.summary.mean.low for row in result.rows])
    high = np.array([row.summary.mean.high for row in result.rows])
    axes.vlines(times, low, high, colors=BLUE, linewidth=1.5, alpha=0.6)
    axes.plot(times, means, "o", color=BLUE, markersize=6)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if times.max() > 100 * times.min() else (1, 2, 3, 5, 7)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    _score_axis(axes, "y", means)
    axes.set_xlabel("ms per move (wall time of the game / moves)")
    axes.set_ylabel("mean score")
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    # Labels stand in a column of their own, in the order of the points, so that they never cover each other.
    places = _spread(axes.transAxes.inverted().transform(axes.transData.transform(np.stack([times, means], 1)))[:, 1])
    for row, x, y, place in zip(result.rows, times, means, places, strict=True):
        axes.annotate(
            f"{row.entry.label}, N={row.summary.episodes}",
            (x, y),
            (1.03, place),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "#bbbbbb", "linewidth": 0.7, "relpos": (0, 0.5), "shrinkB": 4},
        )
    return figure


def _spread(heights: NDArray[np.float64], gap: float = 0.045) -> NDArray[np.float64]:
    """Heights in [0, 1], pushed apart until neighbours lie ``gap`` apart (less where there are too many for that)."""
    gap = min(gap, 1 / max(1, len(heights)))
    order = np.argsort(heights)
    places = heights[order]
    for _ in range(1000):
        push = np.maximum(0, gap - np.diff(places)) / 2
        if push.sum() < 1e-4:
            break
        places[1:] += push
        places[:-1] -= push
        places = places.clip(0, 1)
    return places[np.argsort(order)]
