"""The rules of 2048: plain Python, compiled and published data agree."""

import hashlib
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall.game2048 import batch as batches
from mergefall.game2048 import board as core
from mergefall.game2048 import from_text, legal_actions, move, outcomes, packed, reference, to_text
from mergefall.game2048.rules import Rules
from mergefall.game2048.vector_env import Game2048VectorEnv

from ..tools import SIZES, golden, moves

boards = st.integers(2, 6).flatmap(
    lambda rows: st.integers(2, 6).flatmap(
        lambda cols: st.lists(
            st.lists(st.sampled_from([0, 0, 1, 1, 2, 3]), min_size=cols, max_size=cols), min_size=rows, max_size=rows
        )
    )
)


def random_boards(rng, n, rows, cols, top):
    return np.where(rng.random((n, rows, cols)) < 0.3, 0, rng.integers(1, top + 1, (n, rows, cols))).astype(np.uint8)


@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_random_games_agree_with_the_reference(rows, cols):
    """130 000 steps for each size (1.2 million in all), every afterstate, mask, reward and new tile."""
    games, steps = 1000, 130
    rng = np.random.default_rng(1)
    envs = Game2048VectorEnv(games, rows, cols, autoreset_mode="SameStep")
    before, infos = envs.reset(seed=7)
    for _ in range(steps):
        after, gains, legal = moves(before)
        np.testing.assert_array_equal(infos["action_mask"] != 0, legal)
        mine = envs.afterstates()
        np.testing.assert_array_equal(mine[0], after)
        np.testing.assert_array_equal(mine[1], gains)
        np.testing.assert_array_equal(mine[2], legal)
        actions = rng.integers(0, 4, games)
        chosen = (np.arange(games), actions)
        obs, rewards, terminated, truncated, infos = envs.step(actions)
        assert not truncated.any()
        np.testing.assert_array_equal(rewards, gains[chosen])
        last, told = obs.copy(), infos["legal"].copy()
        for i in np.flatnonzero(terminated):
            last[i], told[i] = infos["final_obs"][i], infos["final_info"]["legal"][i]
        np.testing.assert_array_equal(told, legal[chosen])
        changed = last != after[chosen]
        np.testing.assert_array_equal(changed.sum(axis=(1, 2)), legal[chosen])
        assert (after[chosen][changed] == 0).all()
        assert np.isin(last[changed], (1, 2)).all()
        assert not moves(last[terminated])[2].any()  # and of the others the next masks tell
        before = obs


@pytest.mark.parametrize("top", [6, 14, 15, 16, 17])
def test_the_fast_step_is_the_plain_one(top):
    """On 4×4, from any ranks (those from 15 up leave the fast path), state by state and draw by draw."""
    rng = np.random.default_rng(top)
    states = core.new_states(2000, 4, 4, goal=12)
    states[:, core.STREAM] = rng.integers(0, 2**64, 2000, dtype=np.uint64)
    core.cells_of(states, 4, 4)[:] = random_boards(rng, 2000, 4, 4, top)
    fast, many, lines = states.copy(), states.copy(), packed.lines_for(4, 4)
    scratch = np.empty(batches.SCRATCH, np.uint64)
    nowhere, no_pool = np.zeros(2000, np.bool_), np.zeros((0, 16), np.uint8)
    for _ in range(5):
        actions = rng.integers(0, 4, 2000)
        plain = [core.step(states[i], action) for i, action in enumerate(actions.tolist())]
        alone = [batches.step_one(fast[i : i + 1], action, lines, scratch) for i, action in enumerate(actions.tolist())]
        assert alone == [(gain >= 0, max(gain, 0), *status) for gain, *status in plain]
        seen = Rules().seen(2000)
        batches.step(0, 2000, many, actions, nowhere, no_pool, (lines, 0, 100, 0), seen)
        gains, masks, over, tops = map(np.array, zip(*plain, strict=True))
        np.testing.assert_array_equal(seen.rewards, np.maximum(gains, 0))
        np.testing.assert_array_equal(seen.terminated, over)
        np.testing.assert_array_equal(seen.legal, gains >= 0)
        np.testing.assert_array_equal(seen.max_tiles, 1 << tops)
        np.testing.assert_array_equal(seen.masks.view(np.uint8).reshape(-1, 4), masks[:, None] >> np.arange(4) & 1)
        np.testing.assert_array_equal(seen.cells, states[:, core.CELLS :])
    np.testing.assert_array_equal(fast, states)
    np.testing.assert_array_equal(many, states)


def test_the_fast_start_is_the_plain_one():
    states = core.new_states(500, 4, 4)
    states[:, core.STREAM] = np.arange(500)
    fast, pool = states.copy(), np.zeros((0, 16), np.uint8)
    for i in range(500):
        packed.begin(fast, i, pool, True)
        core.begin(states[i], pool, True)
    np.testing.assert_array_equal(fast, states)


def compiled_left(lines):
    """Lines int[n, length] slid left by the compiled rules, six at a time: (lines, scores, legal), scores per line."""
    slid = np.array(lines, dtype=np.uint8)
    scores = np.array([core.slide(line, 0, 1, line.size) for line in slid])
    return slid, np.maximum(scores, 0), scores >= 0


def test_golden_lines():
    expected = golden("exact2048")["line"]
    lines = np.array(list(product(range(16), repeat=4)), dtype=np.uint8)
    after, scores, legal = compiled_left(lines)
    assert len(lines) == expected["rows"]
    assert (legal.sum(), scores.sum()) == (expected["left_legal"], expected["left_score_sum"])
    assert hashlib.sha256(after.tobytes()).hexdigest() == expected["left_result_sha256"]
    assert hashlib.sha256(scores.astype("<u4").tobytes()).hexdigest() == expected["left_score_sha256"]
    merges = (lines != 0).sum(axis=1) - (after != 0).sum(axis=1)
    assert np.bincount(merges).tolist() == expected["rows_with_0_1_2_merges"]
    for entry in golden("exact2048")["lines"]:
        shorter = list(product(range(entry["ranks"]), repeat=entry["length"]))
        _, scores, legal = compiled_left(shorter)
        counts = (len(shorter), legal.sum(), scores.sum())
        assert counts == (entry["lines"], entry["left_legal"], entry["left_score_sum"])


@given(boards)
def test_compiled_functions_are_the_reference(ranks):
    board = tuple(map(tuple, ranks))
    assert np.flatnonzero(legal_actions(ranks)).tolist() == reference.legal_actions(board)
    for action in range(4):
        after, score, legal = move(ranks, action)
        assert (tuple(map(tuple, after.tolist())), score, legal) == reference.move(board, action)
    results, probabilities = outcomes(ranks)
    expected = reference.outcomes(board)
    assert [tuple(map(tuple, result.tolist())) for result in results] == [result for result, _ in expected]
    np.testing.assert_allclose(probabilities, [probability for _, probability in expected])


@given(boards)
def test_text_round_trips(ranks):
    np.testing.assert_array_equal(from_text(to_text(ranks)), ranks)
    assert to_text(to_text(ranks)) == to_text(ranks)


def test_merges_are_never_capped():
    after, score, legal = move([[16, 16, 0, 0]] + [[0] * 4] * 3, 3)
    assert (after[0, 0], score, legal) == (17, 131072, True)
    after, score, legal = move([[36, 36, 0, 0, 0, 0]] + [[0] * 6] * 5, 1)
    assert (after[0, 5], score, legal) == (37, 2**37, True)
