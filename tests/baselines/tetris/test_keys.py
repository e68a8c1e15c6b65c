"""`tetris/keys`: the same games by keys as by placements, in time, in both loops."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from mergefall.tetris import place
from mergefall.tetris.keys import CLEARS, KEYS
from mergefall.tetris.keys.reference import Game
from mergefall_baselines import make
from mergefall_baselines.player import chosen_by, steps

NAMES = "IOTSZJL"
ID = "mergefall/TetrisKeys-v0"
CALM = {"gravity": 0.0, "randomizer": "uniform", "preview": 1, "hold": False}


def boards(env, player, seed, count):
    """The boards after the first `count` pieces of a game, the rows of the field."""
    found, pieces = [], 0
    for step in steps(env, seed, chosen_by(player, seed)):
        if step.info["pieces"] > pieces:
            found.append(step.observation["board"][-env.unwrapped.rules.rows :].tolist())
            pieces = step.info["pieces"]
        if pieces == count or step.terminated:
            break
    return found


@pytest.mark.parametrize(
    ("of", "placements"),
    [("tetris/bcts", "drop"), ("tetris/bcts", "slide"), ("tetris/two-tetrad", "drop")],
)
def test_without_gravity_the_games_are_those_by_placements(of, placements):
    player = make("tetris/keys", of=of, placements=placements)
    by_keys = boards(gym.make(ID, **CALM), player.with_rules(CALM), 5, 200)
    rules = {"preview": 1, "placements": placements}
    other = make(of).with_rules(rules)
    assert by_keys == boards(gym.make("mergefall/Tetris-v0", **rules), other, 5, 200)
    assert len(by_keys) == 200


def test_a_t_turns_in_only_for_a_spin_that_clears_lines():
    player, rules = make("tetris/keys", of="tetris/bcts", placements="drop"), {"gravity": 0}
    env, soft, spins, before = gym.make(ID, **rules), False, 0, {"pieces": 0, "lines": 0}
    env.reset(seed=0)
    for key in player.play(ID, 0, rules, 3000).actions:
        info = env.step(int(key))[-1]
        soft |= KEYS[key] == "soft drop"
        if info["pieces"] > before["pieces"]:
            spun = "T-spin" in CLEARS[info["clear"]] and info["lines"] > before["lines"]
            assert soft == spun
            soft, spins, before = False, spins + spun, info
    assert spins > 5


def test_a_player_that_decides_in_python_presses_the_same_keys():
    of = make("tetris/bcts")
    compiled, slow = make("tetris/keys", of=of), make("tetris/keys", of=make("tetris/bcts"))
    slow.compiled = False
    games = [player.with_rules(CALM).play(ID, 1, CALM, max_episode_steps=300) for player in (compiled, slow)]
    np.testing.assert_array_equal(games[0].actions, games[1].actions)


def ends(board, piece, gravity):
    """The cells of all boards that hard drops in time lead to, by the plain rules: a search over all falling pieces."""
    start = Game(draw=lambda: "I", hole=set, queue=[piece, "I"], gravity=gravity, board=board)
    start.appear()
    found, seen, games = {}, set(), [start]
    for game in games:  # which grows
        for key in KEYS[:7]:
            after = copy.copy(game)
            after.board, after.queue = set(game.board), list(game.queue)
            after.step(key)
            if key == "hard drop":
                cells = frozenset(after.board - board)
                found[cells] = after
                continue
            place = after.falling.rotation, after.falling.x, after.falling.y
            if after.board == board and place not in seen:
                seen.add(place)
                games.append(after)
    return set(found)


@pytest.mark.parametrize("piece", "IOTSZJL")
def test_what_cannot_be_reached_in_time_is_not_chosen(piece):
    """At 20 rows a step a piece that appears left of a wall stays there, though the player would like it beyond."""
    rows = [".........."] * 8 + ["......#..."] * 12
    rules = {"gravity": 20.0, "hold": False, "preview": 1}
    env = gym.make(ID, **rules)
    player = make("tetris/keys", of="tetris/bcts").with_rules(rules)
    observation, _ = env.reset(seed=0, options={"board": "/".join(rows), "piece": piece})
    before, state = observation["board"], player.start(0)
    board = {(23 - r, c) for r, c in np.argwhere(before).tolist()}
    while (observation["board"] == before).all():
        key, state = player.predict(observation, state)
        observation = env.step(int(key))[0]
    cells = frozenset((23 - r, c) for r, c in np.argwhere(observation["board"] > before).tolist())
    in_time = ends(board, piece, 20 << 16)
    assert cells in in_time
    of, best, chosen = make("tetris/bcts"), -np.inf, None
    values = of.values({"board": before[-20:], "piece": NAMES.index(piece), "queue": [0]})
    for action in np.argsort(-values, kind="stable"):
        placed = place("/".join(rows), piece, action // 10, action % 10) if values[action] > -np.inf else None
        if placed and values[action] > best and frozenset((19 - r, c) for r, c in placed.cells) in in_time:
            best, chosen = values[action], frozenset((19 - r, c) for r, c in placed.cells)
    assert cells == chosen
    assert values.max() >= best
