"""Advice on positions that are written as text, in Python and from the command line."""

import io
import json

import gymnasium as gym
import numpy as np
import pytest
from mergefall_baselines import make
from mergefall_training.play.advice import Adviser

BOARD = "2 2 4 8/. . 16 2/. . . 4/. . . 2"
FIELD = "....../....../....../##.#../##.### "


def test_values_are_the_players_best_first():
    player = make("2048/expectimax", depth=2)
    env = gym.make("mergefall/Game2048-v0")
    observation, info = env.reset(options={"board": BOARD})
    expected = player.values(observation)
    choices = Adviser(player, "mergefall/Game2048-v0").choices(BOARD)
    assert {choice.action for choice in choices} == set(np.flatnonzero(info["action_mask"]))
    assert [choice.value for choice in choices] == sorted(expected[np.isfinite(expected)], reverse=True)
    assert choices[0].action == player.act(observation)


@pytest.mark.parametrize(
    ("following", "placements"), [([], "drop"), (["S"], "slide"), (["S", "Z"], "slide"), (["S", "Z"], "drop")]
)
def test_tetris_names_the_placements(following, placements):
    player, kwargs = make("tetris/bcts"), {"placements": placements}
    choices = Adviser(player, "mergefall/Tetris-v0", kwargs).choices(f"{FIELD} T {' '.join(following)}")
    env = gym.make("mergefall/Tetris-v0", cols=6, rows=5, preview=len(following), **kwargs)
    start = {"board": FIELD.strip(), "piece": "T"} | ({"queue": following} if following else {})
    observation, info = env.reset(options=start)
    actions = {choice.name: choice.action for choice in choices}
    assert sorted(actions.values()) == np.flatnonzero(info["action_mask"]).tolist()
    assert choices[0].action == player.act(observation)
    assert actions["column 1, turned 180°"] == 2 * 6 + 1


def test_a_lost_board_has_no_choices_and_a_fatal_placement_is_worth_nothing():
    assert Adviser(make("2048/greedy"), "mergefall/Game2048-v0").choices("2 4/4 2") == []
    tower = "##../##../##../##.. O"
    values = {c.name: c.value for c in Adviser(make("tetris/bcts"), "mergefall/Tetris-v0").choices(tower)}
    assert values["column 0"] == -np.inf
    assert np.isfinite(values["column 2"])


def test_the_command_answers_each_line(command, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{BOARD}\n\n2 4/4 2\n"))
    first, second = command("advise 2048/greedy")[0].splitlines()
    assert first.startswith("right 4; left 4;")
    assert second == "no legal action"
    assert command(f"advise tetris/bcts '{FIELD}T'")[0].endswith(" others\n")
    typed = ["2,2,0\n0,0,8\n0,0,0", "[[2, 2, 0], [0, 0, 8], [0, 0, 0]]", "2 2 ./. . 8/. . ."]
    assert len(set(command("advise 2048/greedy", *typed)[0].splitlines())) == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("##../##../##../##.. O\n"))
    answer = json.loads(command("advise tetris/bcts --json")[0])
    assert answer["position"] == "##../##../##../##.. O"
    assert answer["actions"][0]["name"] == "column 2"
    assert answer["actions"][-1]["value"] is None


def test_a_position_by_keys():
    player, board = make("tetris/keys", of="tetris/bcts"), "..../..../##../###."
    env = gym.make("mergefall/TetrisKeys-v0", rows=4, cols=4, preview=1, hold=False)
    observation, _ = env.reset(options={"board": board, "piece": "I", "queue": ["S"]})
    first, second, *_ = Adviser(player, "mergefall/TetrisKeys-v0").choices(f"{board} I S")
    assert (first.action, first.value, second.value) == (player.act(observation), 0, -np.inf)
