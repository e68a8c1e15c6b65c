"""2048 for `KernelPlayer`: the entry that calls its decision kernels."""

from functools import cache
from typing import Any, NamedTuple

from mergefall.game2048 import board
from mergefall.game2048.packed import fits
from mergefall.game2048.rules import Rules
from mergefall.kernels import kernel, unowned
from mergefall.typing import Kernel

from mergefall_baselines.entry import entry_kernel
from mergefall_baselines.kernel_player import GO_ON, ILLEGAL, OUTGROWN, OVER, Form, episode_loop

MARGIN = 64  # own moves ahead for which a packed board must hold; only exact searches look further, on small boards


class Boards(NamedTuple):
    """How a kernel holds boards, and their size: in words, or as rows of a scratch (`search.py`)."""

    kind: str  # "packed": 4×4 in a word; "small": smaller boards in a word; "wide": any board
    rows: int
    cols: int


def _ways(rules: Rules) -> tuple[Boards, ...]:
    """The ways to hold boards, the fastest first; a game can outgrow all but "wide"."""
    rows, cols = rules.rows, rules.cols
    wide = Boards("wide", rows, cols)
    if rows > 4 or cols > 4:
        return (wide,)
    return Boards("packed" if rows == cols == 4 else "small", rows, cols), wide


def rules_for(rewards: Any, rows: int, cols: int) -> Rules:
    """The rules with the reward that a search's option `rewards` counts."""
    reward: Any = rewards if isinstance(rewards, str) else "score"
    return Rules(rows, cols, reward=reward)


@kernel
def pick(values, order):
    """The action of the highest value; ties, and a board without a legal move, go to the first in `order`."""
    best = order[0]
    for i in range(1, 4):
        if values[order[i]] > values[best]:
            best = order[i]
    return best


@kernel
def _turn(state, action):
    gain, _, over, _ = board.step(state, action)
    if gain < 0:  # it would be chosen again, for ever
        return ILLEGAL
    return OVER if over else GO_ON


@cache
def _entry(signature: Any, bounded: bool) -> Kernel:
    decide = entry_kernel(signature)

    @kernel
    def entry(state, memory, values, settings):
        state = unowned(state)
        return decide(state, memory, values, settings) if fits(*board.board_in(state), MARGIN) else OUTGROWN

    return entry if bounded else decide


FORM = Form(
    rules=Rules,
    memory_words=1,
    loop=episode_loop(_turn, 0, False),
    shift=0,
    entry=lambda signature, boards: _entry(signature, boards.kind != "wide"),
    ways=_ways,
    loses=False,
)
