"""Adapters against the real libraries, where they are installed; they are no dependencies of the tests."""

import asyncio
from types import SimpleNamespace

import pytest
from mergefall_training.play import text_adapters
from mergefall_training.play.puzzles import puzzles, reward

SMALL = {"rows": 2, "cols": 2}


def test_puzzles_of_verifiers():
    vf = pytest.importorskip("verifiers.v1")
    Puzzles = text_adapters.verifiers_taskset()
    config_type = vf.utils.generic.concrete_type(Puzzles, vf.TasksetConfig, origin=vf.Taskset)
    taskset = Puzzles(config_type(env_kwargs=SMALL, split="test", seed=3))
    expected = puzzles("mergefall/Game2048-v0", SMALL, split="test", seed=3)
    for task, puzzle in zip(taskset.take(5), expected, strict=False):
        assert task.data.prompt == puzzle.prompt
        assert "2 rows and 2 columns" in task.data.system_prompt
        for answer in ("up", "<answer>left</answer>", "hm"):
            trace = SimpleNamespace(task=SimpleNamespace(data=task.data), last_reply=answer)
            assert asyncio.run(task.puzzle_reward(trace)) == reward(puzzle, answer)
        assert [method.__name__ for method in task.hooks("reward")] == ["puzzle_reward"]


def test_games_of_openenv():
    core = pytest.importorskip("openenv.core")
    Game, Answer, Prompt = text_adapters.openenv_types()
    env = Game("mergefall/Game2048-v0", SMALL)
    observation = env.reset(seed=0, episode_id="one")
    assert isinstance(observation, Prompt)
    for steps in range(1, 200):
        legal = observation.prompt.split("Legal moves: ")[1].splitlines()[0].split(", ")
        observation = env.step(Answer(answer=legal[0]))
        assert observation.verdict == "legal"
        assert (env.state.episode_id, env.state.step_count) == ("one", steps)
        if observation.done:
            break
    assert observation.prompt.endswith("The game is over.")
    env.reset(seed=0)
    assert [env.step(Answer(answer="hm")).done for _ in range(3)] == [False, False, True]
    assert core.create_app(lambda: Game("mergefall/Game2048-v0"), Answer, Prompt).routes


def test_games_of_textarena():
    ta = pytest.importorskip("textarena")
    env = text_adapters.textarena_game()("mergefall/Game2048-v0", SMALL)
    assert isinstance(env, ta.Env)
    env.reset(num_players=1, seed=0)
    done = False
    while not done:
        player, messages = env.get_observation()
        legal = messages[-1][1].split("Legal moves: ")[1].splitlines()[0].split(", ")
        done, _ = env.step(legal[0])
    rewards, info = env.close()
    assert player == 0
    assert rewards[0] > 0
    assert info[0]["reason"] == "The game is over."
    env.reset(num_players=1, seed=0)
    assert [env.step("hm")[0] for _ in range(2)] == [False, True]
    assert env.close()[1][0]["invalid_move"]
