"""Small networks of our own: what Stable-Baselines3 calls feature extractors, for 2048's ranks and Tetris's boards."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import torch
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn


class RanksConv(BaseFeaturesExtractor):
    """2048: each cell's rank as one of `rows·cols + 2` planes, then two layers of 2×2 windows.

    Takes float[n, rows, cols] and gives float[n, (rows − 2)·(cols − 2)·channels]; boards of fewer than three rows or
    columns have windows of one in that direction, in the second layer. A merge is seen by one window, and no window
    knows where on the board it is until the layer after these.
    """

    def __init__(self, observation_space: gym.spaces.Box, channels: int = 128) -> None:
        rows, cols = observation_space.shape
        self.ranks = int(observation_space.high.max()) + 1
        second = min(2, rows - 1), min(2, cols - 1)
        super().__init__(observation_space, channels * (rows - second[0]) * (cols - second[1]))
        self.layers = nn.Sequential(
            nn.Conv2d(self.ranks, channels, 2),
            nn.ReLU(),
            nn.Conv2d(channels, channels, second),
            nn.ReLU(),
            nn.Flatten(),
        )

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        planes = nn.functional.one_hot(observations.long(), self.ranks)
        return self.layers(planes.permute(0, 3, 1, 2).float())


class BoardConv(BaseFeaturesExtractor):
    """Tetris: 3×3 windows over the board, what is in each column, and the pieces, all into one layer.

    Takes the observation as Stable-Baselines3 prepares it: board float[n, rows, cols], piece and next one-hot. Gives
    float[n, features_dim]. The second layer has windows as high as the board: a column's whole contents decide what
    fits on it.
    """

    def __init__(self, observation_space: gym.spaces.Dict, channels: int = 32, features_dim: int = 256) -> None:
        super().__init__(observation_space, features_dim)
        rows, cols = observation_space["board"].shape  # pyright: ignore[reportGeneralTypeIssues]
        self.windows = nn.Sequential(
            nn.Conv2d(2, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, channels, (rows, 1)), nn.ReLU()
        )
        self.pieces = [name for name in ("piece", "next") if name in observation_space.spaces]
        known = sum(gym.spaces.flatdim(observation_space[name]) for name in self.pieces)
        self.last = nn.Sequential(nn.Linear(channels * cols + 3 * cols + known, features_dim), nn.ReLU())
        # The height of each row, so that heights and holes can be told from a cell alone.
        self.register_buffer("heights", torch.arange(rows, 0, -1).view(1, rows, 1) / rows, persistent=False)

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        board: torch.Tensor = observations["board"]
        heights: Any = self.heights
        tops = (board * heights).amax(dim=1)
        filled = board.mean(dim=1)
        steps = nn.functional.pad(tops.diff(dim=1), (0, 1))
        planes = torch.stack([board, heights.expand_as(board)], dim=1)
        columns = self.windows(planes).flatten(1)
        pieces = [observations[name].flatten(1) for name in self.pieces]  # a replay buffer's have one dimension more
        return self.last(torch.cat([columns, tops, filled, steps, *pieces], dim=1))


EXTRACTORS: dict[str, type[BaseFeaturesExtractor]] = {"ranks-conv": RanksConv, "board-conv": BoardConv}
ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "elu": nn.ELU, "silu": nn.SiLU}
