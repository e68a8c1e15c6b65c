"""Parts of `RanksAfterstates` on a CPU: the afterstates of boards, their canonical images, and the first layer.

A one-hot line has a single 1 for each cell, and for each pair of neighbours, so its product with a matrix is a sum of a
few rows of the matrix. Adding these takes a twentieth of the operations of the matrix product, forwards and backwards.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from mergefall import game2048
from mergefall.game2048 import board
from mergefall.kernels import kernel, unowned
from mergefall.typing import Array, Bytes, Ints

F = np.float32
STEEP = 5  # larger differences of rank count as this
DIFFERENCES = 2 * STEEP + 4  # kinds of neighbours: both empty, the first, the second, −STEEP to STEEP


def neighbours(ranks: int) -> Bytes:
    """The kind of two neighbours by their ranks: uint8[ranks, ranks], below DIFFERENCES."""
    first, second = np.indices((ranks, ranks))
    empty = [(first == 0) & (second == 0), first == 0, second == 0]
    return np.select(empty, [0, 1, 2], 3 + STEEP + np.clip(second - first, -STEEP, STEEP)).astype(np.uint8)


@kernel
def _moved(boards, rows, cols, after, gains):
    boards, after, gains = unowned((boards, after, gains))
    for i in range(len(boards)):
        for action in range(4):
            for c in range(rows * cols):
                after[i, action, c] = boards[i, c]
            gains[i, action] = board.move_cells(after[i, action], rows, cols, action)


def moved(boards: Bytes) -> tuple[Bytes, Array]:
    """(afterstates uint8[n, 4, rows, cols], scores float32[n, 4]) of all four moves, for ranks uint8[n, rows, cols].

    An illegal move has the score -1 and leaves the board as it is.

    >>> after, gains = moved(np.array([[[1, 1], [0, 2]]], np.uint8))
    >>> after[0, 1].tolist(), gains.tolist()
    ([[0, 2], [0, 2]], [[-1.0, 4.0, 0.0, 4.0]])
    """
    n, rows, cols = boards.shape
    after, gains = np.empty((n, 4, rows * cols), np.uint8), np.empty((n, 4), F)
    _moved(np.ascontiguousarray(boards).reshape(n, -1), rows, cols, after, gains)
    return after.reshape(n, 4, rows, cols), gains


@kernel
def _canonical(boards, images, canonical):
    """Write each board as the image of its symmetric ones that reads largest; `images` are their cells in order."""
    boards, images, canonical = unowned((boards, images, canonical))
    cells = images.shape[1]
    for i in range(len(boards)):
        best = 0
        for image in range(1, len(images)):
            for k in range(cells):
                ours, other = boards[i, images[best, k]], boards[i, images[image, k]]
                if ours != other:
                    best = image if other > ours else best
                    break
        for k in range(cells):
            canonical[i, k] = boards[i, images[best, k]]


def canonical(boards: Bytes) -> Bytes:
    """Boards of ranks uint8[n, rows, cols], each turned and mirrored to the image that reads largest, row by row.

    The images of a board all have the same canonical one. Boards that are not square have four instead of eight.
    """
    n, rows, cols = boards.shape
    images = np.empty((n, rows * cols), np.uint8)
    _canonical(np.ascontiguousarray(boards).reshape(n, -1), _images(rows, cols), images)
    return images.reshape(boards.shape)


@cache
def _images(rows: int, cols: int) -> Ints:
    """The cells of a flat board in the order of each of its images."""
    return game2048.images(np.arange(rows * cols).reshape(rows, cols))[0].reshape(-1, rows * cols)


@kernel
def _line(line, rows, cols, ranks, places):
    """(number of cells of a line, its first cell, the distance of its cells): rows first, then columns.

    Writes the row of the line's table that holds the bias behind the `places` of its inputs.
    """
    count, cell, stride = (cols, line * cols, 1) if line < rows else (rows, line - rows, cols)
    places[2 * count - 1] = count * ranks + (count - 1) * DIFFERENCES
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
def _features(boards, rows, cols, kinds, across, down, features):
    """Write relu(the sum of some rows of a table) for the lines of boards.

    - `across`, `down`: tables float32[lines, inputs + 1, channels] of rows and columns; the last row is the bias.
    - `features`: float32[n, lines, channels].
    """
    boards, kinds, across, down, features = unowned((boards, kinds, across, down, features))
    channels = across.shape[2]
    places = np.empty(2 * max(rows, cols), np.uint64)
    for line in range(rows + cols):  # one table after the other, each of which fits the fastest cache
        count, cell, stride = _line(line, rows, cols, len(kinds), places)
        table = across[line] if line < rows else down[line - rows]
        for i in range(len(boards)):
            _inputs(boards[i], count, cell, stride, kinds, places)
            total = features[i, line]
            total[:] = F(0)
            for k in range(2 * count):
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
        count, cell, stride = _line(line, rows, cols, len(kinds), places)
        table = across[line] if line < rows else down[line - rows]
        for i in range(len(boards)):
            _inputs(boards[i], count, cell, stride, kinds, places)
            active, upper = features[i, line], above[i, line]
            for c in range(channels):
                gradient[c] = upper[c] if active[c] > 0 else F(0)
            for k in range(2 * count):
                row = table[places[k]]
                for c in range(channels):
                    row[c] += gradient[c]


class LineFeatures(torch.autograd.Function):
    """relu of linear layers on one-hot lines, float32[n, (rows + cols) · channels], rows first.

    `LineFeatures.apply(boards, channels, kinds, across, across_bias, down, down_bias)`:

    - `boards`: ranks uint8[n, rows, cols].
    - `kinds`: `neighbours(ranks)`.
    - `across`, `down`: weights float32[lines · channels, inputs of a line] of rows and columns, with their biases. The
      inputs are the one-hot ranks of a line's cells, then the one-hot kinds of its neighbours.
    """

    @staticmethod
    def forward(ctx: Any, boards: Bytes, channels: int, kinds: Bytes, *parameters: torch.Tensor) -> torch.Tensor:
        n, rows, cols = boards.shape
        across, down = (
            _table(weight, bias, channels) for weight, bias in zip(parameters[::2], parameters[1::2], strict=True)
        )
        features = torch.empty(n, rows + cols, channels)
        ctx.of_boards = boards.reshape(n, -1), rows, cols, kinds, features.numpy()
        _features(*ctx.of_boards[:4], across, down, *ctx.of_boards[4:])
        ctx.tables = across.shape, down.shape
        return features.flatten(1)

    @staticmethod
    def backward(ctx: Any, *above: torch.Tensor) -> Any:
        tables: list[Array] = [np.zeros(shape, F) for shape in ctx.tables]
        gradient = above[0].contiguous().numpy().reshape(ctx.of_boards[-1].shape)
        _gradients(*ctx.of_boards, gradient, *tables)
        gradients: list[torch.Tensor] = []
        for table in map(torch.from_numpy, tables):
            gradients += [table[:, :-1].transpose(1, 2).flatten(0, 1), table[:, -1].flatten()]
        return None, None, None, *gradients


def _table(weight: torch.Tensor, bias: torch.Tensor, channels: int) -> Array:
    """The table of `_features` from the weights and biases of a layer."""
    lines, inputs = len(bias) // channels, weight.shape[1]
    table = torch.empty(lines, inputs + 1, channels)
    table[:, :inputs] = weight.view(lines, channels, inputs).transpose(1, 2)
    table[:, inputs] = bias.view(lines, channels)
    return table.numpy()
