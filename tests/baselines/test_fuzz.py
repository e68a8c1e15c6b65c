"""A few of the cases of `tests/fuzz.py`, those of environments under several rules; `make checked` plays thousands.

Observations are read by the rules, so one player of each game is asked here, and the others by `make slow`.
"""

import gymnasium as gym
import pytest

from tests import fuzz

ASKED = ("2048/greedy", "tetris/bcts", "tetris/keys")


@pytest.mark.parametrize(
    "subject",
    [pytest.param(one, marks=[] if one in (*fuzz.ENVIRONMENTS, *ASKED) else pytest.mark.slow) for one in fuzz.SUBJECTS],
)
def test_hostile_input_is_taken_or_refused_by_name(subject):
    try:
        for rules in range(4 if subject in fuzz.ENVIRONMENTS else 1):
            for number in range(8):
                fuzz.case(subject, rules * fuzz.SAME + number)
    except gym.error.DependencyNotInstalled as missing:
        pytest.skip(str(missing))
