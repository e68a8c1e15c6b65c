"""Boards that the tests of heuristics share."""

import numpy as np
import pytest

from ... import tools


@pytest.fixture(scope="session")
def golden():
    """The golden boards with all their figures; `ranks` is the board as an array."""
    entries = tools.golden("game2048")["boards"]
    return [entry | {"ranks": np.array(entry["board"], dtype=np.uint8).reshape(4, 4)} for entry in entries]


@pytest.fixture(scope="session")
def boards(golden):
    """The golden boards as a batch, uint8[n, 4, 4]."""
    return np.array([entry["ranks"] for entry in golden])
