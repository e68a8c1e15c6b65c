"""What `restore_state` takes: every state that a game comes to; `tests/fuzz.py` holds that no other harms a kernel."""

import gymnasium as gym
import numpy as np
import pytest
from mergefall.game2048 import board
from mergefall.tetris import game
from mergefall.tetris.keys import STATUS

from .test_api import equal

TETRIS, G2048 = "mergefall/Tetris-v0", "mergefall/Game2048-v0"
KEYS, VERSUS = "mergefall/TetrisKeys-v0", "mergefall/TetrisVersus-v0"
GAMES = [
    (G2048, {}),
    (G2048, {"rows": 3, "cols": 3, "goal": 64}),
    (G2048, {"rows": 2, "cols": 5}),
    (TETRIS, {}),
    (TETRIS, {"randomizer": "hidden", "preview": 0, "cols": 6, "rows": 8}),
    (TETRIS, {"randomizer": "bag7", "preview": 8, "placements": "slide", "overflow": "clear_first", "cols": 5}),
    (TETRIS, {"pieces": "sz", "randomizer": "hidden", "preview": 2, "cols": 4, "rows": 4}),
    (TETRIS, {"pieces": "sz", "randomizer": "bag7", "cols": 16, "rows": 40}),
    (TETRIS, {"placements": "reachable", "hold": True, "randomizer": "bag7", "cols": 5, "rows": 6}),
    ("mergefall/Quintris-v0", {"placements": "slide", "overflow": "clear_first"}),
    (KEYS, {"levels": True, "cols": 4, "rows": 4}),
    (KEYS, {"gravity": 1.5, "garbage": {"rows": 2.5, "holes": 3}, "preview": 0, "hold": False, "pieces": "sz"}),
    (VERSUS, {"opponent": "keys/random", "cols": 5, "rows": 6, "gravity": 0.5, "rotate_180": True}),
]
each_game = pytest.mark.parametrize(("env_id", "kwargs"), GAMES)


def started(env_id, kwargs, moves=0):
    env = gym.make(env_id, **kwargs).unwrapped
    env.reset(seed=0)
    for _ in range(moves):
        env.step(int(np.flatnonzero(env.action_masks())[0]))
    return env


@each_game
def test_states_are_the_inverse_of_observations(env_id, kwargs):
    """What an observation shows is in its state; a number that no game shows is refused, the part named."""
    if env_id == G2048:
        pytest.skip("its observation is its board")
    envs = gym.make_vec(env_id, num_envs=8, **kwargs).unwrapped
    rng, (seen, info) = np.random.default_rng(1), envs.reset(seed=0)
    for _ in range(150):
        states = envs.rules.states(seen)
        for name, part in envs.rules.observations(states).items():
            np.testing.assert_array_equal(part, seen[name])
        name = rng.choice(list(seen))
        wrong = {**seen, name: np.array(seen[name], np.int64)}
        at = tuple(rng.integers(wrong[name].shape))
        wrong[name][at] = rng.choice([-1, -(1 << 40), 1 << 16, 1 << 62])
        for read in (envs.rules.states, lambda shown: envs.rules.view("flat", shown)):
            with pytest.raises(ValueError, match=rf"^{name}[^ ]* is {wrong[name][at]}; expected "):
                read(wrong)
        seen, *_, info = envs.step([rng.choice(np.flatnonzero(row)) for row in info["action_mask"]])


@each_game
def test_restarts_go_on_from_earlier_states_with_other_luck(env_id, kwargs):
    """Of the games lost, and of no others; a batch that gets states and past goes on alike."""
    make = {"num_envs": 16, "autoreset_mode": "SameStep", "restarts": 0.7, "max_episode_steps": 400, **kwargs}
    envs, rng = gym.make_vec(env_id, **make).unwrapped, np.random.default_rng(0)
    twin, (seen, info) = gym.make_vec(env_id, **make).unwrapped, envs.reset(seed=0)
    past, lost, back, steps_word = [], 0, 0, envs.rules.steps_word
    for step in range(600):
        if step == 200:
            twin.restore_state(envs.clone_state(), envs.past)
        past.append(envs.clone_state())
        actions = [rng.choice(np.flatnonzero(row)) for row in info["action_mask"]]
        seen, rewards, terminated, truncated, info = envs.step(actions)
        states = envs.clone_state()
        if step >= 200:
            equal(twin.step(actions), (seen, rewards, terminated, truncated, info))
        equal(envs.rules.observations(states), seen)
        assert not states[truncated & ~terminated, steps_word].any()
        for i in np.flatnonzero(terminated):
            before = [one[i] for one in past[-120:]]
            lost, earlier = lost + 1, [(one[1:] == states[i, 1:]).all() for one in before]
            back += states[i, steps_word] > 0
            assert states[i, steps_word] == 0 or any(earlier[: max(1, len(earlier) - 9)])
            assert states[i, 0] not in [one[0] for one in before]
    assert back > lost / 4 if lost > 9 else env_id == KEYS
    with pytest.raises(ValueError, match=r"restarts is 0\.5; expected 0, or autoreset_mode='SameStep'"):
        gym.make_vec(env_id, 2, restarts=0.5, **kwargs)


@pytest.mark.parametrize(
    ("part", "at", "value", "message"),
    [
        ("status", 0, 1023, r"status\[0\] is 1023; expected 0 to 1"),
        ("place", 1, 8, "the column 0x8; expected a place within the walls"),
        ("status", STATUS.index("grounded"), 31, "the grounded 0x1f; expected 0x0 to 0x1e, steps at rest"),
        ("status", STATUS.index("level"), 3, "the level 0x3; expected 1 without levels"),
        ("board", 23, 1, "the full rows 0x1; expected none"),
    ],
)
def test_no_observation_becomes_another_position(part, at, value, message):
    env = started(KEYS, {})
    seen = {name: np.array(value)[None] for name, value in env.reset(options={"piece": "I"})[0].items()}
    seen[part][0, at] = value
    with pytest.raises(ValueError, match=message):
        env.rules.states(seen)
    if part == "place":  # as a view draws it
        with pytest.raises(ValueError, match=message):
            env.rules.view("flat", seen)


@each_game
def test_every_state_of_a_game_is_restored(env_id, kwargs):
    """Before the first reset, in play, where games end, and beyond their ends."""
    env, envs = gym.make(env_id, **kwargs).unwrapped, gym.make_vec(env_id, num_envs=4, **kwargs).unwrapped
    other, others = gym.make(env_id, **kwargs).unwrapped, gym.make_vec(env_id, num_envs=4, **kwargs).unwrapped
    rng, ends = np.random.default_rng(0), 0
    for episode in range(6):
        for step in range(400):
            if episode or step:
                ended = env.step(rng.choice(np.flatnonzero(env.action_masks())))[2]
                envs.step([rng.choice(np.flatnonzero(row)) for row in envs.action_masks()])
                ends += ended
            for here, there in ((env, other), (envs, others)):
                state = here.clone_state()
                there.restore_state(state)
                np.testing.assert_array_equal(there.clone_state(), state)
            if not (episode or step) or (ended and rng.random() < 0.2):
                break
        env.reset(seed=episode)
        envs.reset(seed=episode)
    assert ends or kwargs.get("rows") == 40


def test_a_state_after_years_of_play_is_restored_and_restores_again():
    env = started(TETRIS, {"reward": "score"})
    state = env.clone_state()
    state[[game.PIECES, game.STEPS]] = 1 << 53
    for _ in range(2):
        env.restore_state(state)
        assert env.step(0)[4]["pieces"] == 1 + int(state[game.PIECES])
        state = env.clone_state()


@pytest.mark.parametrize("size", [(2, 2), (2, 3), (4, 4), (6, 6)])
def test_the_largest_boards_of_2048_and_what_they_merge_to_are_restored(size):
    """A game may start with nothing but tiles of the highest rank."""
    env = started(G2048, {"rows": size[0], "cols": size[1]})
    highest = size[0] * size[1] + 1
    env.reset(seed=0, options={"board": np.full(size, highest)})
    for _ in range(2000):
        state = env.clone_state()
        env.restore_state(state)
        if env.step(int(np.flatnonzero(env.action_masks())[0]))[2]:
            break
    assert env.clone_state()[board.CELLS :].view(np.uint8).max() > highest


@pytest.mark.parametrize(
    ("env_id", "kwargs", "word", "value", "message"),
    [
        (TETRIS, {}, game.QUEUE, 0x2D, r"the queue 0x2d; expected 2 ids of four bits, each one of 0 I, 1 O"),
        (TETRIS, {"randomizer": "bag7"}, game.BAG, 1 << 7, "the bag 0x80; expected a bit for each piece left"),
        (TETRIS, {"randomizer": "hidden"}, game.BAG, 0, "the bag 0x0; expected copies .* not all 0"),
        (TETRIS, {}, game.HOLD, 1, "the hold 0x1; expected 0$"),
        (TETRIS, {"hold": True}, game.HOLD, 8, "the hold 0x8; expected 0, or an id plus one, the id one of 0 I, 1 O"),
        (TETRIS, {}, game.GRAVITY, 1, "the word of play by keys 0x1; expected 0"),
        (TETRIS, {}, game.RULES, 0, "the rules word 0x0; expected 0x.*, Rules.cols=10, rows=20"),
        (TETRIS, {}, game.COLUMNS, 1 << 24, "the highest cells 0x.*; expected cells in the 24 rows"),
        (VERSUS, {}, game.COLUMNS + 10 + game.COLUMNS, 1 << 63, "the highest cells 0x.*; expected cells in the 24"),
        (KEYS, {}, game.LINES, 1 << 63, "the lines 0x8000000000000000; expected"),
        (KEYS, {"garbage": {"rows": 1, "holes": 2}}, game.HOLE, 9, "the hole 0x9; expected 0x0 to 0x8"),
        (VERSUS, {}, game.COLUMNS + 10 + game.OPPONENTS_KEY, 8, "the opponent's key 0x8; expected 0x0 to 0x7"),
        (G2048, {}, board.CELLS, 23, r"the highest rank 0x17; expected at most 0x16"),
        (G2048, {}, board.SHAPE, 0, "the rules word 0x0; expected 0x404, 4×4, goal rank 0"),
    ],
)
def test_the_error_names_the_game_the_value_and_what_was_expected(env_id, kwargs, word, value, message):
    env = started(env_id, kwargs, moves=1)
    envs = gym.make_vec(env_id, num_envs=3, **kwargs).unwrapped
    envs.reset(seed=0)
    envs.step(np.argmax(envs.action_masks(), axis=1))
    for here, whose in ((env, "^state has "), (envs, "^state of game 1 has ")):
        state = here.clone_state()
        crafted = state.copy()
        crafted.reshape(-1, state.shape[-1])[-2 if here is envs else 0, word] = value
        with pytest.raises(ValueError, match=whose + message):
            here.restore_state(crafted)
        np.testing.assert_array_equal(here.clone_state(), state)


def test_a_full_row_is_refused_but_where_the_game_is_over():
    """The kernels pay for as many rows as one piece can complete; a fatal placement leaves its rows as they are."""
    env = started(TETRIS, {})
    state = env.clone_state()
    state[game.COLUMNS :] = 0b100
    with pytest.raises(ValueError, match="state has the full rows 0x4; expected none in a game that goes on"):
        env.restore_state(state)
    state[game.COLUMNS] |= np.uint64(1 << 20)
    env.restore_state(state)
    assert env.step(0)[2]


@pytest.mark.parametrize("randomizer", ["uniform", "bag7", "hidden"])
@pytest.mark.parametrize("pieces", ["tetromino", "sz", "five"])
def test_a_game_before_its_first_reset_can_be_restored_as_any_other(randomizer, pieces):
    """`clone_state` hands it out, and another environment may restore it; a hidden multiset of nothing is no end."""
    env = gym.make(TETRIS, randomizer=randomizer, pieces=pieces).unwrapped
    envs = gym.make_vec(TETRIS, num_envs=1, randomizer=randomizer, pieces=pieces).unwrapped
    envs.restore_state(env.clone_state()[None])
    observations, *_ = envs.step([0])
    assert observations["piece"][0] in env.rules.piece_set.drawn
    with pytest.raises(gym.error.ResetNeeded, match=r"step\(\) was called before reset\(\)"):
        env.step(0)
    env.restore_state(env.clone_state())
    assert env.step(0)[0]["piece"] == observations["piece"][0]
