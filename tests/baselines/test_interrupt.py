import signal
import threading

import numpy as np
import pytest
from mergefall_baselines import make
from numba.core import event

BOARD = np.array([[1, 2, 0, 0], [0, 0, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0]])
FIELD = {"board": np.zeros((20, 10), np.uint8), "piece": 2, "queue": [1]}
LONG = [
    ("2048/expectimax", {"depth": 50}),
    ("2048/minimax", {"depth": 50}),
    ("2048/rollout", {"games": 10**9}),
    ("2048/mcts", {"simulations": 10**6}),
    ("tetris/expectimax", {"depth": 16}),
    ("tetris/rollout", {"games": 10**9}),
]


@pytest.fixture
def ctrl_c():
    """Presses Ctrl-C in the main thread after so many seconds."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    yield lambda seconds: threading.Timer(seconds, signal.raise_signal, [signal.SIGINT]).start()
    signal.signal(signal.SIGINT, before)


SLOW = {"tetris/expectimax": [pytest.mark.slow]}  # to compile


@pytest.mark.parametrize(
    ("name", "options"), [pytest.param(*one, id=one[0], marks=SLOW.get(one[0], [])) for one in LONG]
)
def test_ctrl_c_ends_a_long_decision(name, options, ctrl_c):
    game, observation = ("Game2048", BOARD) if name.startswith("2048") else ("Tetris", FIELD)
    player, short = make(name, **options), make(name, **{option: 1 for option in options})
    chosen = short.act(observation, short.start(0))
    ctrl_c(0.3)
    with pytest.raises(KeyboardInterrupt):
        player.act(observation)
    ctrl_c(0.3)
    with pytest.raises(KeyboardInterrupt):
        player.play(f"mergefall/{game}-v0", 0)
    assert short.act(observation, short.start(0)) == chosen  # the next search runs to its end


def compile_kernels(count, done):
    """Compile `count` kernels, one within another, with Ctrl-C while the first one is compiled."""
    with event.trigger_event("numba:compile"):
        if not done:
            signal.raise_signal(signal.SIGINT)
        done.append("begun")
        if count > 1:
            compile_kernels(count - 1, done)


@pytest.mark.parametrize("count", [1, 2])
def test_ctrl_c_waits_for_a_kernel_that_is_being_compiled(count, ctrl_c):
    done = []
    with pytest.raises(KeyboardInterrupt):
        compile_kernels(count, done)
    assert done == ["begun"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
