"""Ctrl-C ends the longest decision that the options of any player allow."""

import math
import re
import signal
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from mergefall import interrupt
from mergefall.games import game_of
from mergefall.interrupt import Caller, stopped
from mergefall.kernels import kernel
from mergefall_baselines import make, players
from mergefall_baselines.registry import environment_of, signature_of
from numba.core import event

from tests.fuzz import needed

HUGE = 10**30
SLOW = ("tetris/beam", "quintris/expectimax")  # to compile; `tetris/keys` asks the beam, too
LONG = {"2048": "2048/minimax", "tetris": "tetris/beam"}  # what players over other players are made of


def refusal(name, option, value):
    """What `make` says of an option's value, "" if it takes it."""
    try:
        make(name, **{**needed(name), option: value})
    except ValueError as error:
        return str(error)
    return ""


def counted(name, most=math.inf):
    """The options of a player that take integers, each at the end of the range that its error states, or at `most`."""
    signature, found = signature_of(name).parameters, needed(name)
    if "of" in signature:
        long = LONG[name.partition("/")[0]]
        found["of"] = {"player": long, **counted(long, most)}
    rules = game_of(environment_of(name, found)[0]).arguments("game")
    for option in signature:
        stated = re.search(rf"{option} is {HUGE}; expected an integer from \d+ to (\d+)", refusal(name, option, HUGE))
        if stated and option not in rules:
            found[option] = min(int(stated[1]), most)
    return found if found != needed(name) else {}


SEARCHES = [name for name in players() if "model" not in signature_of(name).parameters and counted(name)]


@pytest.fixture
def ctrl_c():
    """Presses Ctrl-C in the main thread after so many seconds."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    yield lambda seconds: threading.Timer(seconds, signal.raise_signal, [signal.SIGINT]).start()
    signal.signal(signal.SIGINT, before)


def until_interrupted(call):
    with pytest.raises(KeyboardInterrupt):
        deque(iter(call, object()), 0)  # again and again


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in SEARCHES])
def test_ctrl_c_ends_the_longest_decision(name, ctrl_c):
    options = counted(name)
    env_id, kwargs = environment_of(name, options)
    short, long = (make(name, **each).with_rules(kwargs) for each in (counted(name, 2), options))
    observation, _ = gym.make(env_id, **kwargs).reset(seed=0)
    chosen = short.act(observation, short.start(0))  # compiles
    short.play(env_id, 0, kwargs, 2)
    ctrl_c(0.3)
    until_interrupted(lambda: long.act(observation))
    ctrl_c(0.3)
    until_interrupted(lambda: long.play(env_id, 0, kwargs))
    assert short.act(observation, short.start(0)) == chosen  # the next search runs to its end


def test_ctrl_c_ends_the_decision_of_an_opponent(ctrl_c):
    opponents = ({"player": "tetris/keys", **counted("tetris/keys", most)} for most in (2, math.inf))
    short, long = (gym.make("mergefall/TetrisVersus-v0", opponent=opponent) for opponent in opponents)
    short.reset(seed=0)
    long.reset(seed=0)
    short.step(0)
    ctrl_c(0.3)
    until_interrupted(lambda: long.step(0))


@kernel
def search(started, i, nodes):
    started[i] = True
    for _ in range(nodes):
        if stopped():
            break


def test_ctrl_c_ends_the_searches_of_all_threads(ctrl_c):
    """The first search to end leaves the flag to the others."""
    started = np.zeros(9, bool)
    search(started, 0, 0)
    with ThreadPoolExecutor(8) as pool:
        others = [pool.submit(Caller(), search, started, i, 1 << 60) for i in range(1, 9)]
        ctrl_c(0.3)
        until_interrupted(lambda: Caller()(search, started, 0, 1 << 60))
        assert all(isinstance(other.exception(), KeyboardInterrupt) for other in others)
    Caller()(search, started, 0, 9)
    assert started.all()


def test_ctrl_c_while_the_thread_of_a_search_starts(monkeypatch):
    """The search is not left running: the next one would share its memory."""
    start, started = threading.Thread.start, np.zeros(1, bool)

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Caller()(search, started, 0, 1 << 60)
    assert interrupt._running == 0


@kernel
def is_free():
    return not stopped()


def test_what_ctrl_c_left_behind_stops_no_later_search():
    quick = Caller()
    assert all(quick(is_free) for _ in range(3))
    interrupt._flag[0] = 1  # as after Ctrl-C twice
    assert quick(is_free)


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
