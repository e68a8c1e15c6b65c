"""Teachers label boards on any number of threads; their targets follow their values."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall_baselines import Player, make
from mergefall_baselines.registry import player_of
from mergefall_training.learn.presets import configure, presets_of
from mergefall_training.learn.teachers import Teachers, gaps, soft_targets

from tests.training.learn.small_runs import G2048, KEYS, KEYS_FIELD, LEARNERS, OF_TETRIS, SMALL, TETRIS, small


def teachers_of(teacher, gap_share=0.3, workers=1, config=None):
    return Teachers(config or small("distill", timesteps=300), teacher, gap_share, workers, taught=1.0)


def boards(count=24):
    envs = gym.make_vec(G2048, num_envs=count, **SMALL)
    found, infos = envs.reset(seed=3)
    for _ in range(8):
        found, *_, infos = envs.step(infos["action_mask"].argmax(axis=1))
    return found


def test_any_number_of_workers_gives_the_same_labels():
    seen = boards()
    expected = make("2048/optimal").with_rules(SMALL).values(seen)
    for workers in (1, 2):
        teachers = teachers_of({"player": "2048/optimal"}, workers=workers)
        np.testing.assert_array_equal(teachers.values(seen, 0), expected)


def test_an_agent_teaches_on_threads_by_the_rules_of_the_run():
    """Its own rules, those that it was trained by, have 40 actions in place of 120 here."""
    config = small("distill", OF_TETRIS, env_id=TETRIS, env_kwargs={"cols": 10, "rows": 5, "placements": "slide"})
    seen, _ = gym.make_vec(TETRIS, num_envs=6, **config.env_kwargs).reset(seed=0)
    expected = make("tetris/cross-entropy").with_rules(config.env_kwargs).values(seen)
    assert expected.shape == (6, 120)
    teachers = teachers_of("tetris/cross-entropy", workers=2, config=config)
    np.testing.assert_array_equal(teachers.values(seen, 0), expected)


def test_each_teacher_of_a_list_has_an_equal_share_of_the_steps():
    seen, names = boards(), ["2048/optimal", "2048/greedy", {"name": "2048/expectimax", "depth": 2}]
    players = [player_of(name).with_rules(SMALL) for name in names]
    teachers = teachers_of(names)
    for step, number in ((0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (299, 2), (320, 2)):
        np.testing.assert_array_equal(teachers.values(seen, step), players[number].values(seen))


VALUES = st.lists(st.lists(st.floats(-1e6, 1e6) | st.just(-np.inf), min_size=4, max_size=4), min_size=1, max_size=6)


@given(VALUES, st.floats(1e-3, 1e6))
def test_targets_are_chances_that_follow_the_values(rows, temperature):
    values = np.array(rows)
    legal = np.isfinite(values) | (np.arange(4) == 0)
    targets = soft_targets(values, legal, temperature)
    assert targets.dtype == np.float32
    np.testing.assert_allclose(targets.sum(axis=1), 1, rtol=1e-5)
    assert not targets[~legal].any()
    for row, chances, allowed in zip(values, targets, legal, strict=True):
        if not np.isfinite(row[allowed]).any():
            np.testing.assert_allclose(chances[allowed], 1 / allowed.sum())
            continue
        order = np.argsort(row[allowed])
        assert (np.diff(chances[allowed][order]) >= -1e-6).all()
        finite = np.flatnonzero(np.isfinite(row) & (chances > 1e-20))
        for a in finite:
            for b in finite:
                assert np.isclose(
                    np.log(chances[a] / chances[b]), (row[a] - row[b]) / temperature, rtol=1e-3, atol=1e-3
                )


def test_gaps_leave_out_boards_with_one_move():
    values = np.array([[3.0, -np.inf, 1.0], [2.0, -np.inf, -np.inf], [-np.inf] * 3, [5.0, 5.0, 0.0]])
    np.testing.assert_array_equal(gaps(values), [2.0, 0.0])


def test_the_temperature_is_of_the_teachers_gaps():
    seen, legal = boards(), np.ones((24, 4), bool)
    teachers = teachers_of("2048/optimal", gap_share=0.5)
    targets, values = teachers.targets(seen, legal, 0), teachers.values(seen, 0)
    expected = 0.5 * np.median(gaps(values))
    assert teachers.temperature == pytest.approx(expected)
    np.testing.assert_array_equal(targets, soft_targets(values, legal, expected))


def test_the_temperature_starts_anew_with_each_teacher():
    seen, legal = boards(), np.ones((24, 4), bool)
    both = teachers_of(["2048/optimal", {"name": "2048/expectimax", "depth": 1}])
    both.targets(seen, legal, 0)
    both.targets(seen, legal, 150)
    alone = teachers_of({"name": "2048/expectimax", "depth": 1})
    alone.targets(seen, legal, 0)
    assert both.temperature == alone.temperature


@pytest.mark.parametrize(
    ("algorithm", "env_id", "name"), [(one, *found[:2]) for one in LEARNERS for found in presets_of(one)]
)
def test_the_teachers_of_the_presets_need_the_observation_alone(algorithm, env_id, name):
    config = configure(algorithm, env_id, preset=name or None)
    jobs = teachers_of(config.hyperparameters["teacher"], config=config).jobs
    assert jobs
    assert all(job.player.start(0) is None or job.player.caches for job in jobs)


@pytest.mark.slow  # to compile
def test_a_player_that_caches_plays_the_same_game_if_it_is_asked_about_single_boards():
    """`tetris/keys` remembers its route; without it, it finds one of as many keys to the same place."""
    ours, theirs = (gym.make_vec(KEYS, num_envs=16, **KEYS_FIELD) for _ in range(2))
    player, state = make("tetris/keys", placements="drop", **KEYS_FIELD), None
    seen, others = (envs.reset(seed=0)[0] for envs in (ours, theirs))
    for _ in range(150):
        keys, state = player.predict(seen, state)
        seen, *_, infos = ours.step(keys)
        others, *_, their_infos = theirs.step(player.values(others).argmax(axis=1))
        np.testing.assert_array_equal(seen["board"], others["board"])
    assert infos["lines"].sum() == their_infos["lines"].sum() > 0


class FirstLegal(Player):
    def predict(self, observation, state=None, episode_start=None, deterministic=True, action_masks=None):
        return np.flatnonzero(action_masks)[0], state


def test_a_player_without_values_cannot_teach():
    with pytest.raises(ValueError, match="teacher: player does not value actions; it only chooses one"):
        teachers_of(FirstLegal()).check(boards())
