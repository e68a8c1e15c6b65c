"""The player of an n-tuple network: greedy, or with the network at the leaves of expectimax."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from mergefall.game2048.heuristics import Heuristic
from mergefall.game2048.packed import U, fits
from mergefall.kernels import kernel
from mergefall.typing import Kernel
from mergefall.words import popcount
from numpy.typing import NDArray

from mergefall_baselines.game2048.engines import engine, read
from mergefall_baselines.game2048.expectimax import Expectimax
from mergefall_baselines.game2048.network import TupleNetwork
from mergefall_baselines.game2048.player import MARGIN, Boards, pick
from mergefall_baselines.game2048.search import SearchShape, Settings
from mergefall_baselines.game2048.tdl2048 import SUFFIX, read_tdl2048
from mergefall_baselines.game2048.tuples import Shape, tuple_kernels

SHIPPED = Path(__file__).parent / "networks"  # files that come with the package
WORD_LIMIT = 16  # ranks from here up do not fit a packed board


@kernel
def lowered(cells, removed):
    """The sum of the tiles on flat cells; each is lowered by one rank for each rank below it in the bits `removed`."""
    total = 0
    for i in range(cells.size):
        if cells[i]:
            total += 1 << (np.int64(cells[i]) - popcount(removed & ((U(1) << U(cells[i])) - U(1))))
    return total


@kernel
def downgraded(cells, cols, limit):
    """Flat cells as a packed board whose ranks are below `limit`: see `NTuple`, option `downgrade`."""
    rows = cells.size // cols
    seen, top = U(0), 0
    for i in range(cells.size):
        seen |= U(1) << U(cells[i])
        top = max(top, np.int64(cells[i]))
    removed = U(0)
    if top >= limit or not fits(cells, rows, cols, MARGIN):
        rank, count = top - 1, 0
        while rank > 0 and (top - count >= limit or lowered(cells, removed) + 4 * MARGIN >= 1 << 16):
            if not seen >> U(rank) & U(1):
                removed |= U(1) << U(rank)
                count += 1
            rank -= 1
    board = U(0)
    for i in range(cells.size):
        rank = np.int64(cells[i]) - popcount(removed & ((U(1) << U(cells[i])) - U(1)))
        board |= U(min(rank, 15)) << U(16 * (i // cols) + 4 * (i % cols))
    return board


@dataclass(frozen=True, eq=False)
class NetworkHeuristic(Heuristic):
    """A network in the place of a search's heuristic; `network_heuristic` makes a class for each shape."""

    kind: ClassVar[str] = "network"
    name: ClassVar[str] = "ntuple"
    term_names: ClassVar[tuple[str, ...]] = ()
    dead: ClassVar[float] = 0.0
    real: ClassVar[type[np.floating]] = np.float32
    shape: ClassVar[Shape]
    limit: ClassVar[int]
    from_cells: ClassVar[Any]  # (empty board, cells, cols) -> packed board

    weights: NDArray[np.float32] | None = None

    def __reduce__(self) -> Any:
        """Copies and pickles name the class by what `network_heuristic` makes it from."""
        return _network_heuristic_of, (self.shape, self.limit, self.weights)

    def tables(self) -> NDArray[np.float32]:
        """The network's weights; zeros without a network, for the compiler to see their type and size."""
        if self.weights is None:
            return np.zeros(self.shape.size, dtype=np.float32)
        return self.weights

    def check_size(self, rows: int, cols: int) -> None:
        if (rows, cols) != (self.shape.rows, self.shape.cols):
            raise ValueError(f"board of {rows}×{cols}; the network is for {self.shape.rows}×{self.shape.cols}")


@cache
def network_heuristic(network_shape: Shape, limit: int) -> type[NetworkHeuristic]:
    """The heuristic of networks of a shape; boards are downgraded to ranks below `limit`."""
    variant = f"{network_shape}-below{limit}"
    value = tuple_kernels(network_shape).value

    @kernel(variant=variant)
    def value_of_packed(board, to_move, weights, _):
        return value(board, weights)

    @kernel(variant=variant)
    def from_cells_below(blank, cells, cols):
        return downgraded(cells, cols, limit)

    class OfShape(NetworkHeuristic):
        name = f"ntuple-{variant}"
        shape = network_shape
        packed_kernel = staticmethod(value_of_packed)
        cells_kernel = None
        from_cells = staticmethod(from_cells_below)

    OfShape.limit = limit
    return OfShape


def _network_heuristic_of(shape: Shape, limit: int, weights: NDArray[np.float32] | None) -> NetworkHeuristic:
    return network_heuristic(shape, limit)(weights)


@cache
def greedy_kernel(heuristic: type[NetworkHeuristic]) -> Kernel:
    """The decision kernel without search: each move is worth its score and its afterstate's value."""
    boards = engine("packed", heuristic, True)
    from_cells, moves, evaluate = boards.from_cells, boards.moves, boards.evaluate

    @kernel(variant=boards.name)
    def decide(cells, memory, values, settings):
        ctx, blank, order = settings
        board = from_cells(blank, cells, read(ctx).cols)
        up, down, left, right, along, across = moves(board, ctx)
        values[0] = np.float64(np.float32(along) + evaluate(up, False, ctx)) if up != board else -np.inf
        values[1] = np.float64(np.float32(across) + evaluate(right, False, ctx)) if right != board else -np.inf
        values[2] = np.float64(np.float32(along) + evaluate(down, False, ctx)) if down != board else -np.inf
        values[3] = np.float64(np.float32(across) + evaluate(left, False, ctx)) if left != board else -np.inf
        return pick(values, order)

    return decide


def network_file(name: str) -> Path:
    """The file of a network: `name` is that of a shipped one, or a path. Raises ValueError if there is no file."""
    shipped = sorted(path.stem for path in SHIPPED.glob("*.npz"))
    if not isinstance(name, str):
        raise ValueError(f"network={name!r}; expected a file, or one that is shipped: {', '.join(shipped)}")
    if name in shipped:
        return SHIPPED / f"{name}.npz"
    if not Path(name).is_file():
        known = ", ".join(shipped)
        raise ValueError(f"network={name!r}; expected a file, or one that is shipped: {known}")
    return Path(name)


@lru_cache(maxsize=4)
def _load(path: Path, changed: int, size: int) -> tuple[TupleNetwork, str]:
    return read_tdl2048(path) if path.suffix == SUFFIX else TupleNetwork.load(path)


def load_network(name: str | os.PathLike[str]) -> tuple[TupleNetwork, str]:
    """(the network of that name or file, the file's checksum); all players of a process share one copy."""
    path = network_file(os.fspath(name) if isinstance(name, os.PathLike) else name).resolve()
    about = path.stat()
    return _load(path, about.st_mtime_ns, about.st_size)


class NTuple(Expectimax):
    """A trained n-tuple network: the move with the highest score and value, searching `depth` own moves.

    The search is that of `2048/expectimax`, with the network's value at each leaf plus the score of all moves before
    it. A position without a legal move is worth 0. ``depth=1`` does not search.

    Args:
        network: a file (`network.TupleNetwork.save`, `mergefall export`) or the name of a shipped network: ``small``,
            four 5-tuples; ``strong``, eight 6-tuples, which take 512 MiB of memory and play best with
            ``downgrade=16384``. Or a network of TDL2048+, a file that ends in ``.w`` (`tdl2048.read_tdl2048`).
        depth, cutoff, order, time_limit: as for `2048/expectimax`; with a time limit, `depth` is the deepest
            search.
        downgrade: a tile that the network has not learnt to handle. While such a tile or a larger one is on the board,
            the largest missing tile value below the top tile is skipped: all tiles above it are halved. Legal moves
            stay the same; values and scores shrink, but not the scores that `2048/lookahead` or `2048/mcts` adds.
            Default: only where tiles no longer fit a packed board (a sum of about 65536).
        table: as for `2048/expectimax`. Default: True with a search, False with ``depth=1``.
        checksum: the beginning of the file's checksum; records carry it.

    Source: greedy play, Szubert & Jaśkowski (2014); downgrading, Guei, Chen & Wu (2021), "Optimistic Temporal
    Difference Learning for 2048".

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/ntuple", depth=2)
        >>> int(player.act([[11, 10, 3, 2], [5, 4, 2, 1], [2, 1, 1, 0], [1, 0, 0, 0]]))  # the merge, to the left
        3
    """

    def __init__(
        self,
        network: Any = "small",
        depth: Any = 1,
        downgrade: int | None = None,
        cutoff: float | None = None,
        table: bool | str | None = None,
        order: Sequence[int] | None = None,
        time_limit: float | None = None,
        checksum: str | None = None,
    ) -> None:
        self.network, found = (network, "") if isinstance(network, TupleNetwork) else load_network(network)
        if checksum is not None and not (isinstance(checksum, str) and found.startswith(checksum)):
            raise ValueError(f"{network} has the checksum {found}; expected {checksum!r}: this is another network")
        tiles = [1 << rank for rank in range(2, WORD_LIMIT)]
        if downgrade is not None and (not isinstance(downgrade, int | np.integer) or downgrade not in tiles):
            raise ValueError(f"downgrade={downgrade!r}; expected a tile from 4 to 32768, or None")
        if time_limit is not None and depth == 1:
            raise ValueError(f"time_limit={time_limit!r} with depth=1; expected a depth to deepen to, such as 9")
        self.limit = WORD_LIMIT if downgrade is None else int(downgrade).bit_length() - 1
        shape = self.network.shape
        heuristic = network_heuristic(shape, self.limit)(self.network.weights)
        keeps: bool | str = depth != 1 if table is None else table
        super().__init__(heuristic, depth, cutoff, keeps, order, time_limit, "afterstate", True, shape.rows, shape.cols)
        self.options = {"checksum": found[:16]} if found else {}

    def _make_decider(self, rules: Boards, exact: bool) -> tuple[Kernel, Any]:
        if self.rule != 1:
            return super()._make_decider(rules, exact)
        return greedy_kernel(type(self.heuristic)), self._settings(rules)

    def _shape(self, boards: Boards) -> SearchShape:
        return super()._shape(boards._replace(kind="packed"))  # the network packs every board

    def _settings(self, boards: Boards) -> Settings:
        return super()._settings(boards._replace(kind="packed"))
