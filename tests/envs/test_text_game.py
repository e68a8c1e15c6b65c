"""Whole games in text: the same game as by actions, and answers that name no legal move."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from mergefall.text import action_names, position, read_answer
from mergefall.text_game import FAULTS, TextGame

MADE = {
    "2048": ("mergefall/Game2048-v0", {"rows": 3, "cols": 2}),
    "tetris": ("mergefall/Tetris-v0", {"cols": 5, "rows": 6, "placements": "slide", "preview": 2}),
    "quintris": ("mergefall/Quintris-v0", {}),
}


@pytest.mark.parametrize("options", [{}, {"rules": True}])
@pytest.mark.parametrize("name", MADE)
def test_a_game_in_text_is_the_game_by_actions(name, options):
    env_id, kwargs = MADE[name]
    env, text = gym.make(env_id, **kwargs), TextGame(gym.make(env_id, **kwargs), **options)
    rng, over = np.random.default_rng(0), False
    observation, info = env.reset(seed=3)
    shown, told = text.reset(seed=3)
    for _ in range(60):
        assert text.observation_space.contains(shown)
        assert shown.startswith("You p") == bool(options)
        assert (told["action_mask"] == info["action_mask"]).all()
        action = rng.choice(np.flatnonzero(info["action_mask"]))
        answer = f"<answer>{action_names(env.unwrapped.rules)[action]}</answer>"
        assert text.action_space.contains(answer)
        observation, reward, over, _, info = env.step(action)
        shown, earned, ended, cut, told = text.step(answer)
        assert (earned, ended, cut) == (reward, over, False)
        assert told["verdict"] == ("legal", action)
        if over:
            assert shown == f"{position(observation, env.unwrapped.rules)}\nThe game is over."
            return
    assert name == "quintris"


def test_answers_without_a_legal_move_leave_the_game_and_end_it_in_the_end():
    env = TextGame(gym.make("mergefall/Game2048-v0", rows=2, cols=2), penalty=0.5, patience=2)
    first, _ = env.reset(options={"board": "2 ./2 ."})
    shown, reward, terminated, truncated, info = env.step("left")
    assert (shown, reward, terminated, truncated) == (f"{FAULTS['illegal']}\n{first}", -0.5, False, False)
    assert (info["verdict"].kind, info["legal"]) == ("illegal", False)
    info["action_mask"][:] = 0  # the caller's own copy
    _, reward, _, truncated, _ = env.step("down")
    assert (reward, truncated) == (4.0, False)
    second, reward, _, truncated, _ = env.step("hm")
    assert second.startswith(FAULTS["unreadable"])
    assert (reward, truncated) == (-0.5, False)
    _, reward, terminated, truncated, info = env.step("hm")
    assert (reward, terminated, truncated, info["verdict"].kind) == (-0.5, False, True, "unreadable")
    assert read_answer(second, env.unwrapped.rules, info["action_mask"]).kind == "unreadable"  # a prompt given back


def test_a_fault_is_paid_no_shaping():
    env = TextGame(gym.make("mergefall/Game2048-v0", shaping={"potential": "nneonneo"}))
    env.reset(options={"board": "2 . . ./2 . . ./. . . ./. . . ."})
    _, reward, _, _, info = env.step("down")
    assert reward == 4 + info["shaping"] != 4
    _, reward, _, _, info = env.step("hm")
    assert (reward, info["shaping"]) == (0.0, 0.0)


@pytest.mark.parametrize("env_id", ["mergefall/TetrisKeys-v0", "mergefall/TetrisVersus-v0"])
def test_games_by_keys_are_refused_at_once(env_id):
    env = gym.make(env_id)
    with pytest.raises(ValueError, match=", by keys; expected 2048, or Tetris by placements"):
        TextGame(env)


def test_made_again_from_its_spec():
    env = TextGame(gym.make("mergefall/Game2048-v0", rows=2, cols=3), rules=True, penalty=0.25)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.reset(seed=0)[0] == env.reset(seed=0)[0]
    assert again.step("hm")[:2] == env.step("hm")[:2]


def test_the_longest_prompt_lies_in_its_space():
    rules = {"rows": 40, "cols": 16, "placements": "reachable", "hold": True, "preview": 1}
    env = TextGame(gym.make("mergefall/Tetris-v0", **rules), rules=True)
    board = np.zeros((40, 16), int)
    board[10::3, ::4] = board[11::3, 2::4] = 1
    prompts = [env.reset(seed=0, options={"board": board, "piece": piece})[0] for piece in "LJT"]
    assert max(map(len, prompts)) > 20_000
    assert all(map(env.observation_space.contains, prompts))
