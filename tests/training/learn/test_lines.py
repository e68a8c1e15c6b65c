"""`LineFeatures` computes what linear layers on one-hot lines compute, forwards and backwards."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from mergefall_training.learn.sb3.lines import DIFFERENCES, LineFeatures, canonical, neighbours, table_of
from mergefall_training.learn.sb3.networks import RanksAfterstates
from torch.nn.functional import one_hot


def one_hot_lines(lines, kinds):
    planes = one_hot(lines.long(), len(kinds)).flatten(2)
    pairs = torch.from_numpy(kinds)[lines[:, :, :-1].int(), lines[:, :, 1:].int()]
    return torch.cat([planes, one_hot(pairs.long(), DIFFERENCES).flatten(2)], dim=2)


def one_hot_layers(boards, channels, kinds, *layers):
    ranks, found = torch.from_numpy(boards), []
    for lines, layer in zip((ranks, ranks.transpose(1, 2)), layers, strict=True):
        inputs = one_hot_lines(lines, kinds).float()
        for line in range(inputs.shape[1]):
            own = slice(line * channels, (line + 1) * channels)
            found.append(torch.nn.functional.linear(inputs[:, line], layer.weight[own], layer.bias[own]))
    return torch.cat(found, dim=1).relu()


@pytest.mark.parametrize(("rows", "cols"), [(4, 4), (2, 3), (5, 6)])
def test_features_and_gradients_are_those_of_the_matrix_product(rows, cols):
    rng, ranks, channels, n = np.random.default_rng(rows * cols), rows * cols + 2, 9, 37
    kinds = neighbours(ranks)
    boards = rng.integers(0, ranks, (n, rows, cols)).astype(np.uint8)
    boards[rng.random(boards.shape) < 0.3] = 0
    layers = [
        torch.nn.Linear(cells * ranks + (cells - 1) * DIFFERENCES, lines * channels)
        for lines, cells in ((rows, cols), (cols, rows))
    ]
    parameters = [part for layer in layers for part in (layer.weight, layer.bias)]
    for part in parameters:
        part.data = torch.from_numpy(rng.normal(size=part.shape).astype(np.float32))
    above = torch.from_numpy(rng.normal(size=(n, (rows + cols) * channels)).astype(np.float32))
    found = LineFeatures.apply(boards, kinds, *(table_of(layer, channels) for layer in layers))
    gradients = torch.autograd.grad(found, parameters, above)
    expected = one_hot_layers(boards, channels, kinds, *layers)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    theirs = torch.autograd.grad(expected, parameters, above)
    for ours, other in zip(gradients, theirs, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-4)


def test_kinds_of_neighbours():
    kinds = neighbours(18)
    assert kinds.shape == (18, 18)
    assert set(kinds.ravel()) == set(range(DIFFERENCES))
    equal = {int(kinds[rank, rank]) for rank in range(1, 18)}
    assert len(equal) == 1  # whatever their rank, two equal tiles look the same
    assert equal.isdisjoint(kinds[~np.eye(18, dtype=bool)])


def test_lines_are_the_same_on_other_devices():
    space = gym.spaces.Box(0, 7, (2, 3), np.uint8)
    extractor = RanksAfterstates(space, 5, 4)
    boards = np.random.default_rng(0).integers(0, 8, (50, 2, 3)).astype(np.uint8)
    ranks = torch.from_numpy(boards).int()

    def by_products():
        across, down = (table_of(layer, 5) for layer in (extractor.across, extractor.down))
        lines = extractor._products(ranks, across), extractor._products(ranks.transpose(1, 2), down)
        return torch.cat(lines, dim=1)

    products = by_products()
    torch.testing.assert_close(extractor._lines(boards, torch.device("cpu")), products, rtol=1e-5, atol=1e-5)
    extractor.mixed_precision = True
    coarse = by_products()
    assert coarse.dtype == torch.bfloat16
    torch.testing.assert_close(coarse.float(), products, rtol=0.02, atol=0.02)


def test_ranks_that_no_game_has_count_as_the_highest():
    extractor = RanksAfterstates(gym.spaces.Box(0, 7, (2, 3), np.uint8), 5, 4, 3)
    boards = torch.tensor([[[7, 1, 2], [3, 4, 5]], [[9, 1, 2], [3, 4, 5]], [[61, 1, 2], [3, 4, 5]]])
    highest, *others = extractor(boards)
    for other in others:
        torch.testing.assert_close(other, highest)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3), (3, 2), (1, 4), (3, 3)])
def test_symmetric_boards_have_one_canonical_image(shape):
    boards = np.random.default_rng(0).integers(0, 4, (200, *shape)).astype(np.uint8)
    found = canonical(boards)
    for board_, ours in zip(boards, found, strict=True):
        turned = [np.rot90(board_, k) for k in range(4)]
        images = [image for one in turned for image in (one, np.fliplr(one)) if image.shape == shape]
        assert ours.tolist() == max(image.tolist() for image in images)
        same = canonical(np.array(images))
        assert (same == ours).all()
