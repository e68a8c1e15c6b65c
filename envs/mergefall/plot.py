"""What the drawings of both games share. Needs matplotlib, which is imported when something is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GOOD, BAD, NEW, INK = "#2e8b57", "#c4523a", "#2f6fb5", "#333333"
Colour = tuple[float, float, float]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure in inches; an ImportError says what to install where matplotlib is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("this drawing needs matplotlib; install it with: pip install 'mergefall[render]'") from error
    figure = plt.figure(figsize=(width, height), layout="constrained", facecolor="white")
    plt.close(figure)  # it lives on in the caller's hands: a notebook shows it once, a script leaks none
    return figure


def shade(colour: tuple[int, int, int]) -> Colour:
    """Bytes of red, green and blue as matplotlib takes them."""
    return colour[0] / 255, colour[1] / 255, colour[2] / 255


def number(value: float) -> str:
    """A figure as it is written beside a bar."""
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def draw_bars(axes: Axes, parts: dict[str, float], low: float, high: float) -> None:
    """A named bar for each part, on an axis that holds values from `low` to `high`."""
    values = list(parts.values())
    places = range(len(values))
    axes.barh(places, values, color=[GOOD if value >= 0 else BAD for value in values], height=0.62)
    room = 0.28 * ((high - low) or 1.0)  # for the figures at the bars' ends
    axes.set_xlim(low - room if low < 0 else 0, high + room)
    axes.axvline(0, color=INK, linewidth=0.8)
    for place, value in zip(places, values, strict=True):
        axes.annotate(
            number(value),
            (value, place),
            xytext=(4 if value >= 0 else -4, 0),
            textcoords="offset points",
            ha="left" if value >= 0 else "right",
            va="center",
            fontsize=9,
            color=INK,
        )
    axes.set_yticks(places, list(parts), fontsize=9, color=INK)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.set_xticks([])
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
