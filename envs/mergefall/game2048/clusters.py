"""Clusters: the groups of connected equal cells on a 2048 board, and what a move does to them.

Prairie fire (a cluster note of an edX project, 2017) sets a cell alight; the fire spreads to neighbours of equal rank.
The cells that burn are a cluster. This is plain Python in the words of the note; the compiled terms of the
`prairie-fire` heuristic are tested against it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mergefall.game2048.reference import ACTIONS, DOWN, LEFT, RIGHT, UP, Board, move
from mergefall.game2048.rules import MAX_RANK, board_array

Shape = Literal["line", "angled", "branched", "round"]
Cell = tuple[int, int]
STEPS = {UP: (-1, 0), RIGHT: (0, 1), DOWN: (1, 0), LEFT: (0, -1)}


@dataclass(frozen=True)
class Cluster:
    """A group of connected equal cells; empty cells form clusters too.

    Attributes:
        rank: log2 of its tiles, 0 for empty cells.
        cells: flat indices, ascending.
        box: (min row, max row, min column, max column).
        neighbours: (rank, direction from the cluster) -> number of cells; directions are numbered as the actions, empty
            cells have rank 0, and a cell met from two directions counts once in each.
        shape: `round` (holds a 2×2 block), else `line`, `angled` (a path, or a ring, with turns) or `branched`.
        turns: cells of an `angled` cluster whose two neighbours in it are not opposite; 0 for other shapes.
        monotone: the number of rows and columns through the cluster in which, of the tiles on its two sides, one is
            smaller and one is larger.
    """

    rank: int
    cells: tuple[int, ...]
    box: tuple[int, int, int, int]
    neighbours: Mapping[tuple[int, int], int] = field(hash=False)
    shape: Shape
    turns: int
    monotone: int


@dataclass(frozen=True)
class MoveComparison:
    """The changes that a move made to the clusters of tiles. A merged tile is new.

    Attributes:
        legal: whether the board changed.
        score: the sum of merged tiles.
        after: the board after the move, before a new tile.
        joined: clusters after the move with tiles of several earlier clusters, or with an old and a new tile.
        split: clusters before the move whose unmerged tiles are now in several clusters.
        new: clusters after the move with new tiles only.
    """

    legal: bool
    score: int
    after: Board
    joined: tuple[Cluster, ...]
    split: tuple[Cluster, ...]
    new: tuple[Cluster, ...]


def clusters(ranks: ArrayLike) -> tuple[Cluster, ...]:
    """All clusters of a board (rows, cols) of ranks, by rank, then by first cell.

    Raises ValueError for anything but one board of ranks.

    Example:
        >>> [(c.rank, c.cells, c.shape) for c in clusters([[1, 1, 2], [0, 1, 2]])]
        [(0, (3,), 'line'), (1, (0, 1, 4), 'angled'), (2, (2, 5), 'line')]
    """
    board = _board(ranks)
    found, burnt = [], set()
    for start in product(range(len(board)), range(len(board[0]))):
        if start not in burnt:
            group = _burn(board, start)
            burnt |= group
            found.append(_describe(board, group))
    return tuple(sorted(found, key=lambda cluster: (cluster.rank, cluster.cells)))


def compare_move(before: ArrayLike, action: int) -> MoveComparison:
    """Compare the clusters of a board before and after a move (0 up, 1 right, 2 down, 3 left), without the new tile.

    Raises ValueError for a bad board or action. An illegal move changes nothing.

    Example:
        >>> compare_move([[1, 0, 1], [2, 1, 0]], 3).after
        ((2, 0, 0), (2, 1, 0))
        >>> [c.cells for c in compare_move([[1, 0, 1], [2, 1, 0]], 3).joined]
        [(0, 3)]
    """
    board = _board(before)
    if action not in range(len(ACTIONS)):
        raise ValueError(f"action {action!r}; expected 0 up, 1 right, 2 down or 3 left")
    after, score, legal = move(board, action)
    old, sources = clusters(board), _sources(board, after, action)
    home = {cell: cluster.cells for cluster in old for cell in cluster.cells}
    joined, made, kept_in = [], [], Counter()
    for cluster in clusters(after):
        if cluster.rank:
            came = [sources[cell] for cell in cluster.cells]
            kept = {home[cells[0]] for cells in came if len(cells) == 1}
            kept_in.update(kept)
            if not kept:
                made.append(cluster)
            elif len(kept) + any(len(cells) == 2 for cells in came) > 1:
                joined.append(cluster)
    split = tuple(cluster for cluster in old if kept_in[cluster.cells] > 1)
    return MoveComparison(legal, score, after, tuple(joined), split, tuple(made))


def _board(ranks: ArrayLike) -> Board:
    return tuple(map(tuple, board_array(ranks, highest=MAX_RANK).tolist()))


def _around(board: Board, cell: Cell) -> Iterator[tuple[int, Cell]]:
    """(direction, cell) of each neighbour on the board."""
    for direction, (dr, dc) in STEPS.items():
        r, c = cell[0] + dr, cell[1] + dc
        if 0 <= r < len(board) and 0 <= c < len(board[0]):
            yield direction, (r, c)


def _burn(board: Board, start: Cell) -> set[Cell]:
    rank, burnt, edge = board[start[0]][start[1]], {start}, [start]
    while edge:
        for _, (r, c) in _around(board, edge.pop()):
            if board[r][c] == rank and (r, c) not in burnt:
                burnt.add((r, c))
                edge.append((r, c))
    return burnt


def _describe(board: Board, group: set[Cell]) -> Cluster:
    cols = len(board[0])
    rows_of, cols_of = [r for r, _ in group], [c for _, c in group]
    met = Counter(
        (board[r][c], direction) for cell in group for direction, (r, c) in _around(board, cell) if (r, c) not in group
    )
    shape, turns = _shape(group)
    any_row, any_col = next(iter(group))
    return Cluster(
        rank=board[any_row][any_col],
        cells=tuple(sorted(r * cols + c for r, c in group)),
        box=(min(rows_of), max(rows_of), min(cols_of), max(cols_of)),
        neighbours=dict(sorted(met.items())),
        shape=shape,
        turns=turns,
        monotone=_monotone(board, group),
    )


def _shape(group: set[Cell]) -> tuple[Shape, int]:
    if any({(r, c), (r + 1, c), (r, c + 1), (r + 1, c + 1)} <= group for r, c in group):
        return "round", 0
    links = [[d for d, (dr, dc) in STEPS.items() if (r + dr, c + dc) in group] for r, c in group]
    if any(len(directions) > 2 for directions in links):
        return "branched", 0
    turns = sum(len(directions) == 2 and sum(directions) % 2 for directions in links)
    return ("angled", turns) if turns else ("line", 0)


def _monotone(board: Board, group: set[Cell]) -> int:
    """The number of rows and columns through the group with a smaller tile on one side, a larger one on the other."""
    count = 0
    for lines, cells in ((board, group), (tuple(zip(*board, strict=True)), {(c, r) for r, c in group})):
        for r in {r for r, _ in cells}:
            inside = [c for row, c in cells if row == r]
            before, after = min(inside) - 1, max(inside) + 1
            if before >= 0 and after < len(lines[r]):
                low, high = sorted((lines[r][before], lines[r][after]))
                count += 0 < low < lines[r][inside[0]] < high
    return count


def _sources(board: Board, after: Board, action: int) -> dict[int, list[int]]:
    """Flat index of each tile after a move -> flat indices of the tile, or the two tiles, that it came from."""
    ranks, now = ([rank for row in rows for rank in row] for rows in (board, after))
    grid = np.arange(len(ranks)).reshape(len(board), -1)
    result: dict[int, list[int]] = {}
    for line in grid if action in (LEFT, RIGHT) else grid.T:
        cells = (line if action in (LEFT, UP) else line[::-1]).tolist()
        tiles = [cell for cell in cells if ranks[cell]]
        for cell in cells:
            if tiles:
                count = 1 if now[cell] == ranks[tiles[0]] else 2
                result[cell], tiles = tiles[:count], tiles[count:]
    return result
