"""Where tables and progress go."""

from __future__ import annotations

from rich.console import Console

WIDTH = 140


def console(stderr: bool = False) -> Console:
    """Standard output (or error), wide enough for a table where it is a file or a pipe and has no width of its own."""
    terminal = Console(stderr=stderr)
    return terminal if terminal.is_terminal else Console(stderr=stderr, width=WIDTH)
