"""The first layer of `RanksAfterstates` on a CPU: rows and columns of tiles, added up instead of multiplied.

A one-hot line has a single 1 for each cell, and for each pair of neighbours, so its product with a matrix is a sum of a
few rows of the matrix. Adding these takes a twentieth of the operations of the matrix product, forwards and backwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from mergefall.kernels import kernel, unowned
from mergefall.threads import ranges, share
from mergefall.typing import Array
from numpy.typing import NDArray

F = np.float32
STEEP = 5  # larger differences of rank count as this
DIFFERENCES = 2 * STEEP + 4  # kinds of neighbours: both empty, the first, the second, −STEEP to STEEP
_HALF = np.uint32(1 << 15)  # rounds float32 to bfloat16, its upper 16 bits
_AT_ONCE = 8  # rows of a table that are added in one pass: all those of a line of four tiles


def neighbours(ranks: int) -> NDArray[np.uint8]:
    """The kind of two neighbours by their ranks: uint8[ranks, ranks], below DIFFERENCES.

    >>> kinds = neighbours(12)
    >>> [int(kinds[pair]) for pair in ((0, 0), (0, 4), (4, 0), (4, 4), (4, 5), (11, 1))]
    [0, 1, 2, 8, 9, 3]
    """
    first, second = np.indices((ranks, ranks))
    empty = [(first == 0) & (second == 0), first == 0, second == 0]
    return np.select(empty, [0, 1, 2], 3 + STEEP + np.clip(second - first, -STEEP, STEEP)).astype(np.uint8)


@kernel
def _line(line, rows, cols, ranks, places):
    """(number of cells of a line, its first cell, the distance of its cells): rows first, then columns.

    Writes the rows of the line's table that hold the bias and zeros behind the `places` of its inputs.
    """
    count, cell, stride = (cols, line * cols, 1) if line < rows else (rows, line - rows, cols)
    bias = count * ranks + (count - 1) * DIFFERENCES
    places[2 * count - 1] = bias
    places[2 * count :] = bias + 1
    return count, cell, stride


@kernel
def _inputs(board, count, cell, stride, kinds, places):
    """Write where the inputs of a line are 1, as rows of its table: for each cell, then for each pair of neighbours."""
    ranks = len(kinds)
    before = board[cell]
    places[0] = before
    for k in range(1, count):
        rank = board[cell + k * stride]
        places[k] = k * ranks + np.int64(rank)
        places[count + k - 1] = count * ranks + (k - 1) * DIFFERENCES + np.int64(kinds[before, rank])
        before = rank


@kernel(fastmath=True)
def _features(boards, rows, cols, kinds, across, down, first, last, half, found):
    """Write relu(the sum of some rows of a table) for the lines of some boards.

    - `across`, `down`: tables float32[lines, inputs + 2, channels] of rows and columns; the last two rows are the bias
      and zeros.
    - `found`: float32[n, lines, channels], or with `half` bfloat16 as uint16.
    """
    boards, kinds, across, down, found = unowned((boards, kinds, across, down, found))
    channels = across.shape[2]
    total = np.empty(channels, F)
    bits = total.view(np.uint32)
    places = np.empty(-(-2 * max(rows, cols) // _AT_ONCE) * _AT_ONCE, np.uint64)
    for line in range(rows + cols):  # one table after the other, each of which fits the fastest cache
        count, cell, stride = _line(line, rows, cols, len(kinds), places)
        table = across[line] if line < rows else down[line - rows]
        for i in range(first, last):
            _inputs(boards[i], count, cell, stride, kinds, places)
            total[:] = F(0)
            for k in range(0, 2 * count, _AT_ONCE):
                a, b, d, e = table[places[k]], table[places[k + 1]], table[places[k + 2]], table[places[k + 3]]
                f, g, h, j = table[places[k + 4]], table[places[k + 5]], table[places[k + 6]], table[places[k + 7]]
                for c in range(channels):
                    total[c] += (a[c] + b[c] + d[c] + e[c]) + (f[c] + g[c] + h[c] + j[c])
            for c in range(channels):
                total[c] = max(total[c], F(0))
            if half:
                at = found[i, line]
                for c in range(channels):
                    at[c] = np.uint16((bits[c] + _HALF) >> np.uint32(16))
            else:
                found[i, line] = total


@kernel(fastmath=True)
def _gradients(boards, rows, cols, kinds, half, kept, above, first, last, across, down):
    """Add the gradients of the tables from those of the features, `above`, of some boards.

    `kept` holds the features; both are float32, or with `half` bfloat16 as uint16.
    """
    boards, kinds, kept, above, across, down = unowned((boards, kinds, kept, above, across, down))
    channels = across.shape[2]
    here = np.empty(channels, F)
    bits = here.view(np.uint32)
    places = np.empty(2 * max(rows, cols), np.uint64)
    for line in range(rows + cols):  # one table after the other, each of which fits the fastest cache
        count, cell, stride = _line(line, rows, cols, len(kinds), places)
        table = across[line] if line < rows else down[line - rows]
        for i in range(first, last):
            _inputs(boards[i], count, cell, stride, kinds, places)
            seen, wanted = kept[i, line], above[i, line]
            if half:
                for c in range(channels):
                    bits[c] = np.uint32(wanted[c]) << np.uint32(16) if seen[c] > 0 else np.uint32(0)
            else:
                for c in range(channels):
                    here[c] = wanted[c] if seen[c] > 0 else F(0)
            for k in range(2 * count):
                row = table[places[k]]
                for c in range(channels):
                    row[c] += here[c]


class LineFeatures(torch.autograd.Function):
    """relu of linear layers on one-hot lines, float32[n, (rows + cols) · channels], rows first.

    `LineFeatures.apply(boards, channels, kinds, half, across, across_bias, down, down_bias)`:

    - `boards`: ranks uint8[n, rows, cols].
    - `kinds`: `neighbours(ranks)`.
    - `half`: whether the features are bfloat16.
    - `across`, `down`: weights float32[lines · channels, inputs of a line] of rows and columns, with their biases. The
      inputs are the one-hot ranks of a line's cells, then the one-hot kinds of its neighbours.
    """

    @staticmethod
    def forward(
        ctx: Any,
        boards: NDArray[np.uint8],
        channels: int,
        kinds: NDArray[np.uint8],
        half: bool,
        *parameters: torch.Tensor,
    ) -> torch.Tensor:
        n, rows, cols = boards.shape
        across, down = (
            _table(weight, bias, channels) for weight, bias in zip(parameters[::2], parameters[1::2], strict=True)
        )
        flat, shape = boards.reshape(n, -1), (rows, cols, kinds)
        found = torch.empty(n, rows + cols, channels, dtype=torch.bfloat16 if half else torch.float32)
        kept = _numbers(found)
        threads = torch.get_num_threads()
        share(lambda part: _features(flat, *shape, across, down, *part, half, kept), ranges(n, threads), threads)
        ctx.known = flat, shape, half, (across.shape, down.shape), kept
        return found.flatten(1)

    @staticmethod
    def backward(ctx: Any, *above: torch.Tensor) -> Any:
        flat, shape, half, tables, kept = ctx.known
        gradient = _numbers(above[0].contiguous()).reshape(kept.shape)
        threads = torch.get_num_threads()
        parts = ranges(len(flat), threads)  # gradients are summed in their order
        sums: list[list[Array]] = [[np.zeros(table, F) for table in tables] for _ in parts]
        work = list(zip(parts, sums, strict=True))
        share(lambda one: _gradients(flat, *shape, half, kept, gradient, *one[0], *one[1]), work, threads)
        found: list[torch.Tensor] = []
        for column in zip(*sums, strict=True):
            total = torch.from_numpy(np.sum(column, axis=0))
            found += [total[:, :-2].transpose(1, 2).flatten(0, 1), total[:, -2].flatten()]
        return None, None, None, None, *found


def _table(weight: torch.Tensor, bias: torch.Tensor, channels: int) -> Array:
    """The table of `_features` from the weights and biases of a layer."""
    lines, inputs = len(bias) // channels, weight.shape[1]
    table = torch.zeros(lines, inputs + 2, channels)
    table[:, :inputs] = weight.view(lines, channels, inputs).transpose(1, 2)
    table[:, inputs] = bias.view(lines, channels)
    return table.numpy()


def _numbers(tensor: torch.Tensor) -> Array:
    """A tensor's memory as an array; bfloat16 as uint16."""
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()
