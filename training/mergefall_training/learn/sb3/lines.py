"""Parts of `RanksAfterstates`: the canonical images of boards, and the first layer, by a kernel on CPUs.

A one-hot line has a single 1 for each cell, and for each pair of neighbours, so its product with a matrix is a sum of a
few rows of the matrix. Adding these takes a twentieth of the operations of the matrix product, forwards and backwards.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from mergefall import game2048
from mergefall.kernels import kernel, unowned
from mergefall.typing import Bytes, Ints

STEEP = 5  # larger differences of rank count as this
DIFFERENCES = 2 * STEEP + 4  # kinds of neighbours: both empty, the first, the second, −STEEP to STEEP


def neighbours(ranks: int) -> Bytes:
    """The kind of two neighbours by their ranks: uint8[ranks, ranks], below DIFFERENCES."""
    first, second = np.indices((ranks, ranks))
    empty = [(first == 0) & (second == 0), first == 0, second == 0]
    return np.select(empty, [0, 1, 2], 3 + STEEP + np.clip(second - first, -STEEP, STEEP)).astype(np.uint8)


def canonical(boards: Bytes) -> Bytes:
    """Boards of ranks uint8[n, rows, cols], each turned and mirrored to the image that reads largest, row by row.

    The images of a board all have the same canonical one. Boards that are not square have four instead of eight.
    """
    n, rows, cols = boards.shape
    images = boards.reshape(n, -1).take(_images(rows, cols), axis=1)
    largest = images.view(f"S{rows * cols}")[:, :, 0].argmax(axis=1)
    return images[np.arange(n), largest].reshape(boards.shape)


@cache
def _images(rows: int, cols: int) -> Ints:
    """The cells of a flat board in the order of each of its images."""
    return game2048.images(np.arange(rows * cols).reshape(rows, cols))[0].reshape(-1, rows * cols)


@kernel(fastmath=True)
def _add(boards, rows, cols, kinds, across, down, sums, backwards):
    """Write the sums of some rows of tables for the lines of boards; `backwards`, add these to the rows.

    - `across`, `down`: tables float32[lines, inputs + 1, channels] of rows and columns. The row of each cell, of each
      pair of neighbours, and the last one, the bias, add up.
    - `sums`: float32[n, lines, channels].
    """
    boards, kinds, across, down, sums = unowned((boards, kinds, across, down, sums))
    ranks, places = len(kinds), np.empty(2 * max(rows, cols), np.uint64)
    for line in range(rows + cols):  # one table after the other, each of which fits the fastest cache
        table = across[line] if line < rows else down[line - rows]
        count, first, stride = (cols, line * cols, 1) if line < rows else (rows, line - rows, cols)
        for i in range(len(boards)):
            for k in range(count):
                cell = first + k * stride
                places[k] = k * ranks + np.int64(boards[i, cell])
                places[count + k] = count * ranks + k * DIFFERENCES
                if k < count - 1:
                    places[count + k] += kinds[boards[i, cell], boards[i, cell + stride]]
            total = sums[i, line]
            if not backwards:
                total[:] = 0
            for place in places[: 2 * count]:
                row = table[place]
                for c in range(total.size):
                    if backwards:
                        row[c] += total[c]
                    else:
                        total[c] += row[c]


class LineSums(torch.autograd.Function):
    """Linear layers on one-hot lines, float32[n, rows + cols, channels], rows first.

    `LineSums.apply(boards, kinds, across, down)`:

    - `boards`: ranks uint8[n, rows, cols].
    - `kinds`: `neighbours(ranks)`.
    - `across`, `down`: `table_of` the layers for rows and for columns. The inputs are the one-hot ranks of a line's
      cells, then the one-hot kinds of its neighbours.
    """

    @staticmethod
    def forward(ctx: Any, boards: Bytes, kinds: Bytes, across: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        n, rows, cols = boards.shape
        sums = torch.empty(n, rows + cols, across.shape[2])
        ctx.of_boards = boards.reshape(n, -1), rows, cols, kinds
        ctx.tables = across.shape, down.shape
        _add(*ctx.of_boards, across.detach().numpy(), down.detach().numpy(), sums.numpy(), False)
        return sums

    @staticmethod
    def backward(ctx: Any, *above: torch.Tensor) -> Any:
        across, down = map(torch.zeros, ctx.tables)
        _add(*ctx.of_boards, across.numpy(), down.numpy(), above[0].contiguous().numpy(), True)
        return None, None, across, down


def table_of(layer: torch.nn.Linear, channels: int) -> torch.Tensor:
    """The weights of a layer by line and input, float32[lines, inputs + 1, channels]; the last row is the bias."""
    weights = torch.cat([layer.weight, layer.bias[:, None]], dim=1)
    return weights.unflatten(0, (-1, channels)).transpose(1, 2).contiguous()
