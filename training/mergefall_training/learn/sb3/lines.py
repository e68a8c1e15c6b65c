"""Parts of `RanksAfterstates`: the canonical images of boards, and its layers on CPUs.

A one-hot line has a single 1 for each cell, and for each pair of neighbours, so its product with a matrix is a sum of a
few rows of the matrix. Adding these takes a twentieth of the operations of the matrix product, forwards and backwards.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from mergefall import game2048
from mergefall.kernels import kernel, unowned
from mergefall.threads import share
from mergefall.typing import Bytes, Ints

STEEP = 5  # larger differences of rank count as this
DIFFERENCES = 2 * STEEP + 4  # kinds of neighbours: both empty, the first, the second, −STEEP to STEEP
FEWEST = 128  # boards of a thread


def neighbours(ranks: int) -> Bytes:
    """The kind of two neighbours by their ranks: uint8[ranks, ranks], below DIFFERENCES."""
    first, second = np.indices((ranks, ranks))
    empty = [(first == 0) & (second == 0), first == 0, second == 0]
    return np.select(empty, [0, 1, 2], 3 + STEEP + np.clip(second - first, -STEEP, STEEP)).astype(np.uint8)


def canonical(boards: Bytes) -> Bytes:
    """Boards of ranks uint8[n, rows, cols], each turned and mirrored to the image that reads largest, row by row.

    The images of a board all have the same canonical one. Boards that are not square have four instead of eight.
    """
    turned = np.empty_like(boards)
    _turn(boards.reshape(len(boards), -1), _images(*boards.shape[1:]), turned.reshape(len(boards), -1))
    return turned


@cache
def _images(rows: int, cols: int) -> Ints:
    """The cells of a flat board in the order of each of its images."""
    return game2048.images(np.arange(rows * cols).reshape(rows, cols))[0].reshape(-1, rows * cols)


@kernel
def _turn(boards, images, turned):
    boards, images, turned = unowned((boards, images, turned))
    for i in range(len(boards)):
        largest = 0
        for k in range(1, len(images)):
            for cell in range(boards.shape[1]):
                ours, theirs = boards[i, images[k, cell]], boards[i, images[largest, cell]]
                if ours != theirs:
                    largest = k if ours > theirs else largest
                    break
        for cell in range(boards.shape[1]):
            turned[i, cell] = boards[i, images[largest, cell]]


@kernel(fastmath=True)
def _add(boards, rows, cols, kinds, across, down, sums, backwards):
    """Write the sums of some rows of tables for the lines of boards, 0 if negative; `backwards`, add these to the rows.

    - `across`, `down`: tables float32[lines, inputs + 1, channels] of rows and columns. The row of each cell, of each
      pair of neighbours, and the last one, the bias, add up.
    - `sums`: float32[n, lines, channels].
    """
    boards, kinds, across, down, sums = unowned((boards, kinds, across, down, sums))
    ranks = len(kinds)
    for line in range(rows + cols):  # one table after the other, each of which fits the fastest cache
        table = across[line] if line < rows else down[line - rows]
        count, first, stride = (cols, line * cols, 1) if line < rows else (rows, line - rows, cols)
        for i in range(len(boards)):
            total = sums[i, line]
            for k in range(count):
                cell, last = first + k * stride, k == count - 1
                pair = count * ranks + k * DIFFERENCES
                if not last:
                    pair += np.int64(kinds[boards[i, cell], boards[i, cell + stride]])
                one, two = table[np.uint64(k * ranks + np.int64(boards[i, cell]))], table[np.uint64(pair)]
                for c in range(total.size):
                    if backwards:
                        one[c] += total[c]
                        two[c] += total[c]
                    elif k == 0:
                        total[c] = one[c] + two[c]
                    elif last:
                        total[c] = max(total[c] + (one[c] + two[c]), np.float32(0))
                    else:
                        total[c] += one[c] + two[c]


class Layers(torch.autograd.Function):
    """Rectified layers on the lines of canonical boards: `Layers.apply(threads, boards, kinds, dtype, across, down,
    *layers)`.

    - `threads`: threads that share the boards, forwards and backwards. PyTorch's own, which share each product, mostly
      wait for each other.
    - `boards`: ranks uint8[n, rows, cols].
    - `kinds`: `neighbours(ranks)`.
    - `dtype`: that of all layers but the first.
    - `across`, `down`: `table_of` the first layer for rows and for columns. The inputs are the one-hot ranks of a
      line's cells, then the one-hot kinds of its neighbours.
    - `layers`: weights and biases of further layers.

    Returns float32[n, features].
    """

    @staticmethod
    def forward(
        ctx: Any, threads: int, boards: Bytes, kinds: Bytes, dtype: torch.dtype, *parameters: torch.Tensor
    ) -> Any:
        n, rows, cols = boards.shape
        tables = [part.detach().numpy() for part in parameters[:2]]
        layers = [part.to(dtype) for part in parameters[2:]]
        threads = max(1, min(threads, n // FEWEST))
        parts = [slice(n * i // threads, n * (i + 1) // threads) for i in range(threads)]
        passed: list[Any] = [None] * threads

        def work(i: int) -> None:
            part = canonical(boards[parts[i]]).reshape(-1, rows * cols)
            sums = torch.empty(len(part), rows + cols, tables[0].shape[2])
            _add(part, rows, cols, kinds, *tables, sums.numpy(), False)
            values = [sums.flatten(1).to(dtype)]
            for weight, bias in zip(layers[::2], layers[1::2], strict=True):
                values.append(torch.addmm(bias, values[-1], weight.T).relu_())
            passed[i] = part, values

        _each(work, threads)
        ctx.all = rows, cols, kinds, [part.shape for part in tables], layers, parts, passed
        return torch.cat([values[-1].float() for _, values in passed])

    @staticmethod
    def backward(ctx: Any, *above: torch.Tensor) -> Any:
        rows, cols, kinds, shapes, layers, parts, passed = ctx.all
        gradients: list[Any] = [None] * len(parts)

        def work(i: int) -> None:
            (part, values), found = passed[i], []
            gradient = above[0][parts[i]].to(values[0].dtype)
            for weight, (before, after) in zip(
                layers[-2::-2], zip(values[-2::-1], values[:0:-1], strict=True), strict=True
            ):
                gradient = torch.ops.aten.threshold_backward(gradient, after, 0)
                found += [gradient.sum(0), gradient.T @ before]
                gradient = gradient @ weight
            gradient = torch.ops.aten.threshold_backward(gradient, values[0], 0).float()
            tables = [torch.zeros(shape) for shape in shapes]
            sums = gradient.view(len(part), rows + cols, -1).numpy()
            _add(part, rows, cols, kinds, *(table.numpy() for table in tables), sums, True)
            gradients[i] = tables + found[::-1]

        _each(work, len(parts))
        return None, None, None, None, *(torch.stack(shares).sum(0).float() for shares in zip(*gradients, strict=True))


def _each(work: Any, threads: int) -> None:
    """Call `work(i)` on as many threads; with more than one, PyTorch computes alone in each."""
    before = torch.get_num_threads()

    def alone(i: int) -> None:
        if threads > 1 and torch.get_num_threads() > 1:
            torch.set_num_threads(1)
        with torch.no_grad():
            work(i)

    try:
        share(alone, range(threads), threads)
    finally:
        if torch.get_num_threads() < before:
            torch.set_num_threads(before)


def table_of(layer: torch.nn.Linear, channels: int) -> torch.Tensor:
    """The weights of a layer by line and input, float32[lines, inputs + 1, channels]; the last row is the bias."""
    weights = torch.cat([layer.weight, layer.bias[:, None]], dim=1)
    return weights.unflatten(0, (-1, channels)).transpose(1, 2).contiguous()
