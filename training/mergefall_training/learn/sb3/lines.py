"""Parts of `RanksAfterstates`: the canonical images of boards, and the first layer, by a kernel on CPUs.

A one-hot line has a single 1 for each cell, and for each pair of neighbours, so its product with a matrix is a sum of a
few rows of the matrix. Adding these takes a twentieth of the operations of the matrix product, forwards and backwards.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from mergefall import game2048
from mergefall.kernels import kernel, unowned
from mergefall.typing import Bytes, Ints

F = np.float32
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


@kernel
def _inputs(board, line, rows, cols, kinds, places):
    """Write which rows of a line's table add up: of each cell, of each pair of neighbours, the bias. Returns how many.

    Lines are rows first, then columns.
    """
    count, cell, stride = (cols, line * cols, 1) if line < rows else (rows, line - rows, cols)
    ranks = len(kinds)
    before = board[cell]
    places[0] = before
    for k in range(1, count):
        rank = board[cell + k * stride]
        places[k] = k * ranks + np.int64(rank)
        places[count + k - 1] = count * ranks + (k - 1) * DIFFERENCES + np.int64(kinds[before, rank])
        before = rank
    places[2 * count - 1] = count * ranks + (count - 1) * DIFFERENCES
    return 2 * count


@kernel(fastmath=True)
def _features(boards, rows, cols, kinds, across, down, features):
    """Write relu(the sum of some rows of a table) for the lines of boards.

    - `across`, `down`: tables float32[lines, inputs + 1, channels] of rows and columns; the last row is the bias.
    - `features`: float32[n, lines, channels].
    """
    boards, kinds, across, down, features = unowned((boards, kinds, across, down, features))
    channels = across.shape[2]
    places = np.empty(2 * max(rows, cols), np.uint64)
    for line in range(rows + cols):  # one table after the other, each of which fits the fastest cache
        table = across[line] if line < rows else down[line - rows]
        for i in range(len(boards)):
            count = _inputs(boards[i], line, rows, cols, kinds, places)
            total = features[i, line]
            total[:] = F(0)
            for k in range(count):
                row = table[places[k]]
                for c in range(channels):
                    total[c] += row[c]
            for c in range(channels):
                total[c] = max(total[c], F(0))


@kernel(fastmath=True)
def _gradients(boards, rows, cols, kinds, features, above, across, down):
    """Add the gradients of the tables from those of the features, `above`."""
    boards, kinds, features, above, across, down = unowned((boards, kinds, features, above, across, down))
    channels = across.shape[2]
    gradient = np.empty(channels, F)
    places = np.empty(2 * max(rows, cols), np.uint64)
    for line in range(rows + cols):  # one table after the other, each of which fits the fastest cache
        table = across[line] if line < rows else down[line - rows]
        for i in range(len(boards)):
            count = _inputs(boards[i], line, rows, cols, kinds, places)
            active, upper = features[i, line], above[i, line]
            for c in range(channels):
                gradient[c] = upper[c] if active[c] > 0 else F(0)
            for k in range(count):
                row = table[places[k]]
                for c in range(channels):
                    row[c] += gradient[c]


class LineFeatures(torch.autograd.Function):
    """relu of linear layers on one-hot lines, float32[n, (rows + cols) · channels], rows first.

    `LineFeatures.apply(boards, kinds, across, down)`:

    - `boards`: ranks uint8[n, rows, cols].
    - `kinds`: `neighbours(ranks)`.
    - `across`, `down`: `table_of` the layers for rows and for columns. The inputs are the one-hot ranks of a line's
      cells, then the one-hot kinds of its neighbours.
    """

    @staticmethod
    def forward(ctx: Any, boards: Bytes, kinds: Bytes, across: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        n, rows, cols = boards.shape
        features = torch.empty(n, rows + cols, across.shape[2])
        ctx.of_boards = boards.reshape(n, -1), rows, cols, kinds, features.numpy()
        ctx.tables = across.shape, down.shape
        _features(*ctx.of_boards[:4], across.detach().numpy(), down.detach().numpy(), features.numpy())
        return features.flatten(1)

    @staticmethod
    def backward(ctx: Any, *above: torch.Tensor) -> Any:
        across, down = map(torch.zeros, ctx.tables)
        gradient = above[0].contiguous().numpy().reshape(ctx.of_boards[-1].shape)
        _gradients(*ctx.of_boards, gradient, across.numpy(), down.numpy())
        return None, None, across, down


def table_of(layer: torch.nn.Linear, channels: int) -> torch.Tensor:
    """The weights of a layer by line and input, float32[lines, inputs + 1, channels]; the last row is the bias."""
    weights = torch.cat([layer.weight, layer.bias[:, None]], dim=1)
    return weights.unflatten(0, (-1, channels)).transpose(1, 2).contiguous()
