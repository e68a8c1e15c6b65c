"""Tables in HTML, which notebooks show for a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from mergefall_training.play.statistics import Interval, plain


def table(caption: str, columns: Mapping[str, Sequence[str]]) -> str:
    """A table from texts: a heading and a cell of each line for every column.

    >>> table("Games", {"N": ["3"], "mean": ["7 < 9"]})
    '<table><caption>Games</caption><tr><th>N</th><th>mean</th></tr><tr><td>3</td><td>7 &lt; 9</td></tr></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    lines = ("".join(f"<td>{escape(text)}</td>" for text in line) for line in zip(*columns.values(), strict=True))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def shown(interval: Interval | None) -> str:
    """An estimate with its interval; empty if there is none.

    >>> shown(Interval(2048.0, 1900.0, 2200.0))
    '2,048 [1,900, 2,200]'
    """
    return "" if interval is None else f"{plain(interval.value)} [{plain(interval.low)}, {plain(interval.high)}]"
