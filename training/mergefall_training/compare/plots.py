"""Plots of a comparison. Importing this module needs matplotlib (the extra ``render``)."""

import io
import math
import textwrap
from itertools import cycle, product
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, SymmetricalLogLocator
from numpy.typing import ArrayLike

from mergefall_training.compare.league import LeagueResult
from mergefall_training.compare.results import ContestResult
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.statistics import Estimate, mean_of_runs, short

# Okabe and Ito's palette, distinct for any colour vision (jfly.uni-koeln.de/color, 2008).
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#666666"
PALETTE = [BLUE, ORANGE, GREEN, "#CC79A7", "#D55E00", "#56B4E9", "#000000", "#BDAE00"]
MARKERS, DASHES = "osD^v", ("--", ":", "-.")  # for more players than colours
LABEL = 72  # letters of a label
BELOW = {"ncols": 2, "fontsize": 9}  # a legend of long labels
Drawn = tuple[str, float, dict[str, int]]  # a plot's title, its height, and arguments of its legend


@matplotlib.rc_context(
    {
        "text.parse_math": False,  # shows the dollar signs of a label as they are
        "svg.fonttype": "none",
        "svg.hashsalt": "mergefall",  # the same plot is the same file
    }
)
def draw(result: ContestResult, form: Literal["png", "svg"] = "png") -> dict[str, bytes]:
    """The plots of a contest, files by name: ``scores`` or ``lines``, ``speed``; ``learning`` of trained agents."""
    headline = "ratings" if isinstance(result, LeagueResult) else result.headline
    drawings = {"scores" if headline == "score" else headline: _headline, "speed": _speed}
    pictures = {}
    for name, drawing in (drawings | ({"learning": _learning} if result.trained else {})).items():
        figure, content = Figure(layout="constrained"), io.BytesIO()
        axes = figure.add_subplot()
        title, height, legend = drawing(result, axes)
        figure.set_size_inches(10, height)
        figure.suptitle(f"{result.name}: {title}", x=0.01, ha="left", fontsize=13, fontweight="bold")
        axes.set_title(textwrap.fill(result.conditions, 110), loc="left", fontsize=8, color=GREY)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", frameon=False, **legend)
        more: Any = {"transparent": True, "metadata": {"Date": None}} if form == "svg" else {"dpi": 144}
        figure.savefig(content, format=form, **more)
        pictures[name] = content.getvalue()
    return pictures


def _headline_axis(axes: Axes, name: Literal["x", "y"], results: ArrayLike) -> None:
    """Plain numbers along an axis, which does not reach below 0 unless results do.

    It is logarithmic from 1 on if results differ by more than a factor of 20.
    """
    axis = axes.xaxis if name == "x" else axes.yaxis
    lowest, highest = np.min(results), np.max(results)
    if lowest >= 0 and highest > 20 * max(lowest, 1):
        getattr(axes, f"set_{name}scale")("symlog", linthresh=1, linscale=0.3)
        subs = [1] if highest > 10_000 * max(lowest, 1) else [1, 2, 5]
        axes.autoscale_view()  # `axhline` had it done in the other scale
        axis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=1, subs=subs))  # the scale brings its own
    axis.set_major_formatter(lambda value, _: short(value))
    if lowest >= 0 > min(getattr(axes, f"get_{name}lim")()):
        getattr(axes, f"set_{name}lim")(0, None)


def _seen(interval: Estimate) -> tuple[float, float, float]:
    """Value, low and high as they are drawn; a mere lower bound is drawn as a point."""
    if math.isinf(interval.high):
        return (interval.low if math.isinf(interval.value) else interval.value), interval.low, interval.low
    return interval.value, interval.low, interval.high


def _named(label: str, mean: Estimate, runs: int = 1) -> str:
    """A label as there is room for it; the mean is a lower bound if no game ended."""
    short = label if len(label) <= LABEL else f"{label[:LABEL]}…"
    return short + ", at least" * math.isinf(mean.value) + f", {runs} runs" * (runs > 1)


def _headline(result: ContestResult, axes: Axes) -> Drawn:
    if isinstance(result, LeagueResult):
        headline, league = "Elo rating", result.ratings
        series = [("rating", BLUE, "o", [league[row.label] for row in result.rows])]
    else:
        headline, kinds = (
            f"final {result.headline}",
            [("mean", BLUE, "o"), ("iqm", ORANGE, "s"), ("median", GREEN, "D")],
        )
        series = [(*kind, [getattr(row.summary, kind[0]) for row in result.rows]) for kind in kinds]
    labels = [f"{_named(row.label, row.summary.mean)}\nN={result.games_of(row)}" for row in result.rows]
    axes.set_yticks(range(len(labels)), labels, fontsize=9)
    axes.set_ylim(len(labels) - 0.5, -0.5)  # the best on top
    axes.tick_params(axis="y", length=0)
    for number, (name, colour, marker, estimates) in enumerate(series):
        values, low, high = np.array([(math.nan,) * 3 if e is None else _seen(e) for e in estimates]).T
        y = np.arange(len(estimates)) + 0.22 * (number - len(series) // 2)
        label = {"iqm": "interquartile mean"}.get(name, name)
        axes.hlines(y, low, high, colors=colour, linewidth=2, alpha=0.7)
        axes.plot(values, y, marker, color=colour, markersize=5, label=label, clip_on=False)
    _headline_axis(axes, "x", [_seen(one)[0] for one in series[0][-1]])
    capped = any(row.evaluation.censored for row in result.rows)
    axes.set_xlabel(f"{headline} (of capped games: all {result.headline} / deaths)" if capped else headline)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    return f"{headline}, with 95 % intervals", 1.6 + 0.42 * len(labels), {"ncols": 4}


def _learning(result: ContestResult, axes: Axes) -> Drawn:
    """Mean result against training steps for each group of agents; horizontal lines are the other players.

    A curve is the mean of several runs with Student's interval, or a single run with the interval of its games.
    """
    headline, colours, shown = result.headline, cycle(PALETTE), []
    for line in result.trained:
        colour, curves = next(colours), [row.curve for row in line.rows]
        steps = [point.step for point in min(curves, key=lambda curve: curve[-1].step)]
        if len(curves) > 1:  # runs may be evaluated at different steps
            runs = [np.interp(steps, [p.step for p in curve], [p.mean for p in curve]) for curve in curves]
            found = [mean_of_runs(means) for means in np.transpose(runs)]
        else:
            found = [Estimate(point.mean, point.low, point.high) for point in curves[0]]
        values, low, high = np.array([(e.value, max(e.low, 0.0), e.high) for e in found]).T
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
        label = f"{_named(line.label, found[-1], len(curves))}, N={curves[0][-1].episodes} a point"
        axes.plot(steps, values, color=colour, label=label)
    others = [row for row in result.rows if not row.group]
    for row, (dashes, colour) in zip(others, cycle(product(DASHES, PALETTE))):
        shown.append(_seen(row.summary.mean)[0])
        label = _named(row.label, row.summary.mean)
        axes.axhline(shown[-1], color=colour, linewidth=0.9, linestyle=dashes, label=label)
    learnt = [point.mean for line in result.trained for row in line.rows for point in row.curve]
    _headline_axis(axes, "y", [*shown, max(learnt), np.median(learnt)])
    axes.set(xlabel="steps of all environments together", ylabel=f"mean {headline}", xlim=(0, None))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    return f"mean {headline} while training, and other players", 5 + 0.13 * len(others), BELOW


def _speed(result: ContestResult, axes: Axes) -> Drawn:
    headline = "Elo rating" if isinstance(result, LeagueResult) else f"mean {result.headline}"
    action, times, shown = result.game.action, [], []
    for line, (marker, colour) in zip(result.lines, cycle(product(MARKERS, PALETTE))):
        games = [row.evaluation for row in line.rows]  # agents that were trained alike are one point
        together = Evaluation(games[0].header, [episode for each in games for episode in each.episodes])
        _, estimate, _ = result.figure(line)
        if not math.isfinite(estimate.value):  # a run without an end
            estimate = together.mean()
        label = f"{_named(line.label, estimate, len(games))}, N={len(together.episodes)}"
        value, low, high = _seen(estimate)
        times.append(together.ms_per_move)
        shown.append(value)
        axes.vlines(times[-1], low, high, colors=GREY, linewidth=1.5, alpha=0.6)
        axes.plot(times[-1], value, marker, color=colour, markersize=6, clip_on=False, label=label)
    spread = max(times) / min(times)
    subs = (1,) if spread > 100 else (1, 2, 3, 5, 7) if spread > 5 else range(1, 10)
    axes.set(xscale="log", xlabel=f"ms per {action} (wall time of the game / {action}s)", ylabel=headline)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    _headline_axis(axes, "y", shown)
    axes.grid(which="major", color="#dddddd", linewidth=0.6)
    return f"{headline} against thinking time", 5 + 0.13 * len(shown), BELOW
