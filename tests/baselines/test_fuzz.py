"""A few of the cases of `tests/fuzz.py`, those of environments under several rules; `make checked` plays thousands."""

import gymnasium as gym
import pytest

from tests import fuzz

SLOW = ("2048/strongest", "tetris/beam")  # to load, to compile


@pytest.mark.parametrize(
    "subject", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in fuzz.SUBJECTS]
)
def test_hostile_input_is_taken_or_refused_by_name(subject):
    try:
        for rules in range(6 if subject in fuzz.ENVIRONMENTS else 1):
            for number in range(8):
                fuzz.case(subject, rules * fuzz.SAME + number)
    except gym.error.DependencyNotInstalled as missing:
        pytest.skip(str(missing))
