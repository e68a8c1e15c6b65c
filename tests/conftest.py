"""What all tests share: no example of Hypothesis fails for being slow, and slow tests are left out unless asked for."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_modifyitems(items):
    if not os.environ.get("MERGEFALL_SLOW"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: make slow"))
