"""What all tests share.

PyTorch computes with one thread, so that sums are added up in one order; pytest-xdist uses the other cores. No example
of Hypothesis fails for being slow. Slow tests are left out unless asked for.
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from mergefall.games import games

os.environ["OMP_NUM_THREADS"] = "1"  # before the first import of PyTorch
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_modifyitems(items):
    if not os.environ.get("MERGEFALL_SLOW"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: make slow"))


@pytest.fixture
def registered():
    """Forget the heuristics that a test registers."""
    known = [(game.library().known, dict(game.library().known)) for game in games().values()]
    yield
    for heuristics, before in known:
        heuristics.clear()
        heuristics.update(before)
