"""`LineFeatures` computes what linear layers on one-hot lines compute, forwards and backwards."""

import numpy as np
import pytest
import torch
from mergefall_training.learn.sb3.lines import LineFeatures


def one_hot_layers(boards, ranks, across, across_bias, down, down_bias):
    planes = torch.nn.functional.one_hot(torch.from_numpy(boards).long(), ranks).to(across.dtype)
    rows = torch.nn.functional.linear(planes.flatten(2), across, across_bias)
    columns = torch.nn.functional.linear(planes.transpose(1, 2).flatten(2), down, down_bias)
    return torch.cat([rows.flatten(1), columns.flatten(1)], dim=1).relu()


@pytest.mark.parametrize(("rows", "cols"), [(4, 4), (2, 3), (3, 4), (5, 6)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_features_and_gradients_are_those_of_the_matrix_product(rows, cols, threads):
    rng, ranks, channels, n = np.random.default_rng(rows * cols), rows * cols + 2, 9, 37
    boards = rng.integers(0, ranks, (n, rows, cols)).astype(np.uint8)
    shapes = (channels, cols * ranks), (channels,), (channels, rows * ranks), (channels,)
    parameters = [torch.from_numpy(rng.normal(size=shape).astype(np.float32)).requires_grad_() for shape in shapes]
    above = torch.from_numpy(rng.normal(size=(n, (rows + cols) * channels)).astype(np.float32))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = LineFeatures.apply(boards, *parameters)
        gradients = torch.autograd.grad(found, parameters, above)
    finally:
        torch.set_num_threads(before)
    expected = one_hot_layers(boards, ranks, *parameters)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(gradients, torch.autograd.grad(expected, parameters, above), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
