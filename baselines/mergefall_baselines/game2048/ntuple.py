"""The player of an n-tuple network: greedy, or with the network at the leaves of expectimax."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from mergefall.game2048.heuristics.base import NO_TABLE, Heuristic, Kernels
from mergefall.game2048.packed import U, fits
from mergefall.kernels import kernel
from mergefall.typing import Array, FilePath, Kernel
from mergefall.words import popcount

from mergefall_baselines.game2048.expectimax import expectimax
from mergefall_baselines.game2048.network import TupleNetwork
from mergefall_baselines.game2048.player import MARGIN
from mergefall_baselines.game2048.search import Search2048
from mergefall_baselines.game2048.tdl2048 import SUFFIX, read_tdl2048
from mergefall_baselines.game2048.tuples import Shape, tuple_kernels

SHIPPED = Path(__file__).parent / "networks"  # files that come with the package
WORD_LIMIT = 16  # ranks from here up do not fit a packed board


@cache
def network_kernels(shape: Shape, below: int) -> tuple[Kernel, Kernel]:
    """(value of a packed board, kernel that packs flat cells with ranks below `below`: see `ntuple`)."""
    value = tuple_kernels(shape).value

    @kernel
    def value_of_packed(board, to_move, tables, weights):
        return value(board, tables[0])

    @kernel
    def lowered(rank, removed):
        """A rank, lowered by one for each rank below it in the bits `removed`."""
        return np.int64(rank) - popcount(removed & ((U(1) << U(rank)) - U(1)))

    @kernel
    def downgraded(cells, rows, cols):
        present, top = U(0), 0
        for i in range(cells.size):
            present |= U(1) << U(cells[i])
            top = max(top, np.int64(cells[i]))
        removed = U(0)
        if top >= below or not fits(cells, rows, cols, MARGIN):
            rank, count, total = top - 1, 0, 1 << 16
            while rank > 0 and (top - count >= below or total >= 1 << 16):
                if not present >> U(rank) & U(1):
                    removed |= U(1) << U(rank)
                    count += 1
                rank, total = rank - 1, 4 * MARGIN
                for i in range(cells.size):
                    total += 1 << lowered(cells[i], removed) if cells[i] else 0
        board = U(0)
        for i in range(cells.size):
            board |= U(min(lowered(cells[i], removed), 15)) << U(16 * (i // cols) + 4 * (i % cols))
        return board

    return value_of_packed, downgraded


@dataclass(frozen=True, eq=False)
class NetworkHeuristic(Heuristic):
    """A network in the place of a search's heuristic; boards are downgraded to ranks below `limit`."""

    kind = "network"
    name = "ntuple"
    dead = 0.0
    real = np.float32

    network: TupleNetwork
    limit: int

    def kernels(self) -> Kernels:  # pyright: ignore[reportIncompatibleMethodOverride]
        value, pack = network_kernels(self.network.shape, self.limit)
        return Kernels(value, value, value, pack)

    def tables(self) -> tuple[Array, Array]:
        return self.network.weights, NO_TABLE

    def check_size(self, rows: int, cols: int) -> None:
        shape = self.network.shape
        if (rows, cols) != (shape.rows, shape.cols):
            raise ValueError(f"board of {rows}×{cols}; the network is for {shape.rows}×{shape.cols}")


@lru_cache(maxsize=4)
def _load(path: Path, changed: int, size: int) -> tuple[TupleNetwork, str]:
    return read_tdl2048(path) if path.suffix == SUFFIX else TupleNetwork.load(path)


def load_network(name: FilePath) -> tuple[TupleNetwork, str]:
    """(the network in a file or of a shipped one's name, the file's checksum); players of a process share one copy.

    Raises ValueError if there is no file.
    """
    shipped = sorted(path.stem for path in SHIPPED.glob("*.npz"))
    path = SHIPPED / f"{name}.npz" if name in shipped else Path(str(name)).resolve()
    if not isinstance(name, str | os.PathLike) or not path.is_file():
        raise ValueError(f"network={name!r}; expected a file, or one that is shipped: {', '.join(shipped)}")
    return _load(path, path.stat().st_mtime_ns, path.stat().st_size)


def ntuple(
    network: Any = "small",
    depth: Any = 1,
    downgrade: int | None = None,
    cutoff: float | None = None,
    table: bool | str | None = None,
    order: Sequence[int] | None = None,
    time_limit: float | None = None,
    checksum: str | None = None,
) -> Search2048:
    """A trained n-tuple network: the move with the highest score and value, searching `depth` own moves.

    The search is that of `2048/expectimax`, with the network's value at each leaf plus the score of all moves before
    it. A position without a legal move is worth 0. ``depth=1`` does not search.

    Args:
        network: the network's name or file. Default: ``small``.

            - ``small``: four 5-tuples, 1.4 MB, in the package.
            - ``strong``: eight 6-tuples, 13 MB, in the package. It takes 512 MiB of memory and plays best with
              ``downgrade=16384``.
            - a file of `mergefall export` or `network.TupleNetwork.save`.
            - a network of TDL2048+, a file that ends in ``.w`` (`tdl2048.read_tdl2048`).
        depth: own moves, as for `2048/expectimax`. Default: 1, no search. With a time limit, the deepest search.
        downgrade: a tile T from which on the network has learned too little, such as 16384. While a tile of T or more
            is on the board, the network sees another board. Of the tile values below the largest tile, it finds the
            largest one that is missing on the board, and halves all tiles above that value, until no tile of T is left.
            With T = 16384, it sees 16384, 8192, 1024 as 8192, 4096, 1024. Legal moves stay the same. Values and scores
            shrink, but not the scores that `2048/lookahead` or `2048/mcts` adds. Default: None, only where tiles no
            longer fit a packed board (a sum of about 65536).
        cutoff, order, time_limit: as for `2048/expectimax`.
        table: as for `2048/expectimax`. Default: True with a search, False with ``depth=1``.
        checksum: the beginning of the file's checksum, which records carry. Raises ValueError for another file.

    Source: greedy play, Szubert & Jaśkowski (2014); downgrading, Guei, Chen & Wu (2021), "Optimistic Temporal
    Difference Learning for 2048".

    Example:
        >>> from mergefall_baselines import make
        >>> player = make("2048/ntuple", depth=2)
        >>> int(player.act([[11, 10, 3, 2], [5, 4, 2, 1], [2, 1, 1, 0], [1, 0, 0, 0]]))  # the merge, to the left
        3
    """
    held, found = (network, "") if isinstance(network, TupleNetwork) else load_network(network)
    if checksum is not None and not (isinstance(checksum, str) and found.startswith(checksum)):
        raise ValueError(f"{network} has the checksum {found}; expected {checksum!r}: this is another network")
    tiles = [1 << rank for rank in range(2, WORD_LIMIT)]
    if downgrade is not None and (not isinstance(downgrade, int | np.integer) or downgrade not in tiles):
        raise ValueError(f"downgrade={downgrade!r}; expected a tile from 4 to 32768, or None")
    if time_limit is not None and depth == 1:
        raise ValueError(f"time_limit={time_limit!r} with depth=1; expected a depth to deepen to, such as 9")
    limit = WORD_LIMIT if downgrade is None else int(downgrade).bit_length() - 1
    heuristic, keeps = NetworkHeuristic(held, limit), depth != 1 if table is None else table
    rows, cols = held.shape.rows, held.shape.cols
    player = expectimax(heuristic, depth, cutoff, keeps, order, time_limit, rewards=True, rows=rows, cols=cols)
    player.options = {"checksum": found[:16]} if found else {}
    return player


def strongest(checksum: str | None = None) -> Search2048:
    """The strongest player that comes with the package: `2048/ntuple` with its network ``strong``, searching deep.

    It takes 512 MiB of memory and about 5 ms a move. Its options are those of the player `2048/ntuple`:
    ``network="strong", depth=6, downgrade=16384, cutoff=0.01, table="shared"``.

    Args:
        checksum: as for `2048/ntuple`.

    Example:
        >>> from mergefall_baselines import make
        >>> int(make("2048/strongest").act([[11, 10, 3, 2], [5, 4, 2, 1], [2, 1, 1, 0], [1, 0, 0, 0]]))
        3
    """
    return ntuple("strong", depth=6, downgrade=16384, cutoff=0.01, table="shared", checksum=checksum)
