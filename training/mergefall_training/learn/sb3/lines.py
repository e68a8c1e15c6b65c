"""The first layer of `RanksAfterstates` on a CPU: rows and columns of tiles, added up instead of multiplied.

A one-hot line has a single 1 for each cell, so its product with a matrix is a sum of a few rows of the matrix. Adding
these takes a twentieth of the operations of the matrix product, forwards and backwards.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from mergefall.kernels import kernel, unowned
from mergefall.threads import share
from mergefall.typing import Array
from numpy.typing import NDArray

F = np.float32


@kernel
def _line(line, rows, cols):
    """(number of cells of a line, its first cell, the distance of its cells): rows first, then columns."""
    if line < rows:
        return cols, line * cols, 1
    return rows, line - rows, cols


@kernel(fastmath=True)
def _features(boards, rows, cols, ranks, across, down, first, last, found):
    """Write relu(bias + the sum over a line's cells of table[cell · ranks + rank]) for lines of some boards.

    The last row of the tables `across` and `down` float32[cells · ranks + 1, channels] is the bias.
    """
    boards, across, down, found = unowned((boards, across, down, found))
    channels = across.shape[1]
    for i in range(first, last):
        for line in range(rows + cols):
            count, cell, stride = _line(line, rows, cols)
            table = across if line < rows else down
            bias = count * ranks
            if count == 4:  # the usual board, in one pass over the channels
                a = np.int64(boards[i, cell])
                b = np.int64(boards[i, cell + stride]) + ranks
                d = np.int64(boards[i, cell + 2 * stride]) + 2 * ranks
                e = np.int64(boards[i, cell + 3 * stride]) + 3 * ranks
                for c in range(channels):
                    total = table[bias, c] + table[a, c] + table[b, c] + table[d, c] + table[e, c]
                    found[i, line, c] = max(total, F(0))
                continue
            for c in range(channels):
                found[i, line, c] = table[bias, c]
            for k in range(count):
                row = k * ranks + boards[i, cell + k * stride]
                for c in range(channels):
                    found[i, line, c] += table[row, c]
            for c in range(channels):
                found[i, line, c] = max(found[i, line, c], F(0))


@kernel(fastmath=True)
def _gradients(boards, rows, cols, ranks, found, above, first, last, across, down):
    """Add the gradients of the tables from those of the features, `above`, of some boards."""
    boards, found, above, across, down = unowned((boards, found, above, across, down))
    channels = across.shape[1]
    here = np.empty(channels, F)
    for i in range(first, last):
        for line in range(rows + cols):
            count, cell, stride = _line(line, rows, cols)
            table = across if line < rows else down
            for c in range(channels):
                here[c] = above[i, line, c] if found[i, line, c] > 0 else F(0)
                table[count * ranks, c] += here[c]
            for k in range(count):
                row = k * ranks + boards[i, cell + k * stride]
                for c in range(channels):
                    table[row, c] += here[c]


class LineFeatures(torch.autograd.Function):
    """relu of a linear layer on one-hot lines: `LineFeatures.apply(boards, across, across_bias, down, down_bias)`.

    - `boards`: ranks uint8[n, rows, cols].
    - `across`, `down`: weights float32[channels, cells of a line · ranks] of rows and columns, with their biases.

    Returns float32[n, (rows + cols) · channels], rows first.
    """

    @staticmethod
    def forward(ctx: Any, boards: NDArray[np.uint8], *parameters: torch.Tensor) -> torch.Tensor:
        n, rows, cols = boards.shape
        across, down = (
            torch.cat([weight.t(), bias[None]]).numpy()
            for weight, bias in zip(parameters[::2], parameters[1::2], strict=True)
        )
        shape = rows, cols, (len(across) - 1) // cols
        flat, found = boards.reshape(n, -1), np.empty((n, rows + cols, across.shape[1]), F)
        share(lambda part: _features(flat, *shape, across, down, *part, found), _parts(n), torch.get_num_threads())
        ctx.known = flat, shape, (across.shape, down.shape), found
        return torch.from_numpy(found).flatten(1)

    @staticmethod
    def backward(ctx: Any, *above: torch.Tensor) -> Any:
        flat, shape, tables, found = ctx.known
        gradient = above[0].contiguous().numpy().reshape(found.shape)
        parts = _parts(len(flat))
        sums: list[list[Array]] = [[np.zeros(table, F) for table in tables] for _ in parts]
        work = list(zip(parts, sums, strict=True))
        share(lambda one: _gradients(flat, *shape, found, gradient, *one[0], *one[1]), work, torch.get_num_threads())
        across, down = (torch.from_numpy(np.sum(column, axis=0)) for column in zip(*sums, strict=True))
        return None, across[:-1].t(), across[-1], down[:-1].t(), down[-1]


def _parts(n: int) -> list[tuple[int, int]]:
    """Ranges of boards, one for each thread; gradients are summed in their order."""
    edges = np.linspace(0, n, torch.get_num_threads() + 1).astype(int).tolist()
    return list(pairwise(edges))
