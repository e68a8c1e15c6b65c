"""Boards that the tests of heuristics share."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GOLDEN = Path(__file__).parents[3] / "golden" / "game2048.json"


@pytest.fixture(scope="session")
def golden() -> list[dict[str, Any]]:
    """The golden boards with all their figures; `ranks` is the board as an array."""
    entries = json.loads(GOLDEN.read_text())["boards"]
    for entry in entries:
        entry["ranks"] = np.array(entry["board"], dtype=np.uint8).reshape(4, 4)
    return entries


@pytest.fixture(scope="session")
def boards(golden: list[dict[str, Any]]) -> np.ndarray:
    """The golden boards as a batch, uint8[n, 4, 4]."""
    return np.array([entry["ranks"] for entry in golden])
