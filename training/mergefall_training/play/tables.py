"""Tables of estimates: one model, and its writers for a terminal, HTML (pages and notebooks) and Markdown."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rich import table as rich_table
from rich.console import Console
from rich.text import Text

from mergefall_training.play.statistics import Estimate
from mergefall_training.progress import console

Cell = str | Estimate | None  # None: an estimate that is not there
LABEL = 24  # columns of a terminal for a line's label, if that is as long
LONG = 16  # a longer heading may be broken


@dataclass(frozen=True)
class Table:
    """A table: `title` and `about` stand above it, `note` below.

    - `columns`: by heading, one cell for each line; the first column holds the lines' labels.
    - `spare`: headings of the columns that a terminal without room leaves out, the first one first.
    """

    title: str
    about: str
    columns: Mapping[str, Sequence[Cell]]
    note: str = ""
    spare: tuple[str, ...] = ()


def to_terminal(table: Table) -> None:
    """Print a table on standard output, each estimate above its interval."""
    screen = console()
    if table.title or table.about:
        about = f": {table.about}" if table.title and table.about else table.about
        screen.print(Text.assemble((table.title, "bold"), about), soft_wrap=True)
    columns, left_out = dict(table.columns), []
    endless = Console(width=10_000)  # a measure is never more than the width of its screen
    for name in table.spare:
        if name in columns and endless.measure(_view(columns, LABEL)).maximum > screen.width:
            del columns[name]
            left_out.append(name)
    screen.print(_view(columns))
    notes = table.note, f"Left out, as there is no room: {', '.join(left_out)}." if left_out else ""
    for note in filter(None, notes):
        screen.print(Text(note, "dim"), soft_wrap=True)


def _view(columns: dict[str, Sequence[Cell]], most: int | None = None) -> rich_table.Table:
    """The columns as Rich prints them; `most`: columns of the terminal that a label may take."""
    (first, labels), *others = columns.items()
    view = rich_table.Table(padding=(0, 1, 0, 0), box=None)
    view.add_column(
        first, overflow="fold", min_width=min(max(len(str(label)) for label in labels), LABEL), max_width=most
    )
    for name, _ in others:
        view.add_column(Text(name), justify="right", overflow="fold", no_wrap=len(name) <= LONG)
    for line in zip(*columns.values(), strict=True):
        parts = (_parts(cell, "-") for cell in line)
        view.add_row(*(Text.assemble(f"{value}\n", (ends, "dim")) if ends else Text(value) for value, ends in parts))
    return view


def to_html(table: Table) -> str:
    """A table in HTML, with its title as the caption.

    >>> print(to_html(Table("", "", {"player": ["a < b"]})))
    <div class="wide"><table><tr><th>player</th></tr><tr><td>a &lt; b</td></tr></table></div>
    """
    caption = ": ".join(filter(None, (table.title, table.about)))
    rows = ["".join(f"<th>{escape(name)}</th>" for name in table.columns)]
    for line in zip(*table.columns.values(), strict=True):
        parts = (_parts(cell, "–") for cell in line)
        texts = (f'<b>{value}</b> <span class="ends">{ends}</span>' if ends else escape(value) for value, ends in parts)
        rows.append("".join(f"<td>{text}</td>" for text in texts))
    content = f"<caption>{escape(caption)}</caption>" * bool(caption) + "".join(f"<tr>{row}</tr>" for row in rows)
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f'<div class="wide"><table>{content}</table></div>{note}'


def to_markdown(table: Table) -> str:
    """A table in Markdown, without title and note.

    >>> print(to_markdown(Table("", "", {"player": ["a"], "mean": [Estimate(7.0, 6.0, 8.0)]})))
    | player | mean |
    | --- | --- |
    | a | 7.00 [6.00, 8.00] |
    """
    columns = [[str("" if cell is None else cell) for cell in cells] for cells in table.columns.values()]
    return markdown(table.columns, zip(*columns, strict=True))


def markdown(headings: Collection[str], rows: Iterable[Iterable[str]]) -> str:
    """Rows of text as a table in Markdown."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, ["---"] * len(headings), *rows))


def _parts(cell: Cell, missing: str) -> tuple[str, str]:
    """The text of a cell, and that of its interval; `missing`: the text of an estimate that is not there.

    >>> _parts(Estimate(27345.0, 26000.0, math.inf), "-")
    ('27.3k', '26.0k-inf')
    """
    if not isinstance(cell, Estimate):
        return missing if cell is None else cell, ""
    value, low, high = cell.texts()
    dash = "-" if cell.low >= 0 else " to "  # a dash beside a minus sign is hard to read
    return value if math.isfinite(cell.value) else "-", f"{low}{dash}{high}" if math.isfinite(cell.low) else "-"
