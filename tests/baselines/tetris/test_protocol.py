"""The Tetris Bot Protocol: our players as bots, and bots as players, over real pipes."""

import io
import json
import sys

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
import pytest
from mergefall_baselines import make
from mergefall_baselines.player import chosen_by, steps
from mergefall_baselines.tetris.protocol import CENTRED, ORIENTATIONS, Bot, Position, ProtocolError, cells_of, serve

COMMAND = [sys.executable, "-m", "mergefall_baselines.tetris.protocol", "tetris/bcts"]
RULES = {"placements": "reachable", "hold": True, "preview": 5, "randomizer": "bag7", "overflow": "clear_first"}
START = {"type": "start", "hold": None, "queue": ["T", "I", "O"], "combo": 0, "back_to_back": False}


def answers(*messages, player="tetris/bcts"):
    output = io.StringIO()
    serve(player, {}, map(json.dumps, messages), output)
    return [json.loads(line) for line in output.getvalue().splitlines()]


def start(rows, **more):
    """A start on a board whose lowest rows are given, the top one first."""
    rows = [[None if cell == "." else "G" for cell in row] for row in rows[::-1]]
    return START | {"board": rows + [[None] * 10] * (40 - len(rows))} | more


def test_orientations_are_quarter_turns_of_the_same_piece():
    for piece in CENTRED:
        shapes = [cells_of({"type": piece, "orientation": one, "x": 4, "y": 4}) for one in ORIENTATIONS]
        assert all(len(shape) == 4 and (4, 4) in shape for shape in shapes)
    east = cells_of({"type": "L", "orientation": "east", "x": 1, "y": 1})  # an upright L: foot to the right
    assert east == {(1, 0), (1, 1), (1, 2), (2, 0)}


def test_a_bot_says_hello_and_suggests_moves():
    hello, ready, suggestion = answers({"type": "rules"}, {"type": "unknown"}, start([]), {"type": "suggest"})
    assert (hello["type"], hello["name"], ready) == ("info", "tetris/bcts", {"type": "ready"})
    (move,) = suggestion["moves"]
    assert min(y for _, y in cells_of(move["location"])) == 0
    assert move["spin"] == "none"


@pytest.mark.parametrize(("hold", "expected"), [(None, ["T"]), ("T", ["O", "I"])])
def test_a_t_spin_is_told(hold, expected):
    rows = ["##........", "#...######", "##.#######"]
    *_, suggestion = answers(
        start(rows, queue=["T", "O", "O"] if hold is None else ["O", "I", "I"], hold=hold), {"type": "suggest"}
    )
    (move,) = suggestion["moves"]
    if move["location"]["type"] == "T":
        assert move == {"location": {"type": "T", "orientation": "south", "x": 2, "y": 1}, "spin": "full"}
    assert move["location"]["type"] in ("T", *expected)


def test_no_move_ends_in_filled_cells_above_the_field():
    *_, suggestion = answers(start(["####.#####"] * 25, queue=["T", "S"]), {"type": "suggest"})
    assert suggestion["moves"] == []


def test_plays_clear_rows_and_move_the_queue_on():
    position = Position(start(["####....##"]))
    position.play({"location": {"type": "I", "orientation": "north", "x": 5, "y": 0}, "spin": "none"})
    assert position.board.sum() == 0
    assert (position.queue, position.hold) == (["O"], "T")  # the T was held, and the I came from the queue
    position.queue.append("S")
    position.play({"location": {"type": "T", "orientation": "north", "x": 1, "y": 0}, "spin": "none"})
    assert (position.queue, position.hold, position.board.sum()) == (["S"], "O", 4)


def test_a_player_behind_the_protocol_plays_its_own_game():
    env, player, bot = gym.make("mergefall/Tetris-v0", **RULES), make("tetris/bcts", **RULES), Bot(COMMAND)
    for step in steps(env, 3, chosen_by(player, 3)):
        if step.info["pieces"] >= 60:
            break
        action = player.act(step.observation)
        assert bot.act(step.observation) == action
    bot.close()
    assert step.info["lines"] > 10


def test_bots_that_fail_are_named():
    observation, _ = gym.make("mergefall/Tetris-v0", **RULES).reset(seed=0)
    for program, message in [
        ("import sys; sys.exit(3)", "said nothing, exit status 3; expected 'info'"),
        ('print(\'{"type": "error", "reason": "no"}\')', "said {'type': 'error', 'reason': 'no'}, exit status 0"),
    ]:
        with pytest.raises(ProtocolError, match=message):
            Bot([sys.executable, "-c", program]).act(observation)
    for command in (["no-such-program"], [sys.executable, "-c", "print('hello')"]):
        with pytest.raises(ProtocolError, match="failed: "):
            Bot(command).act(observation)
    for rules in ({"rows": 10}, {"hold": False}):
        other, _ = gym.make("mergefall/Tetris-v0", **RULES | rules).reset(seed=0)
        with pytest.raises(ValueError, match="expected 10 columns, 20 rows and hold"):
            Bot(COMMAND).act(other)
    moves = '[{"location": {"type": "T", "orientation": "north", "x": 4, "y": 9}, "spin": "none"}]'
    floats = f"""
import sys
for kind in ("info", "ready"):
    print('{{"type": "' + kind + '"}}', flush=True)
for line in sys.stdin:
    if "suggest" in line:
        print('{{"type": "suggestion", "moves": {moves}}}', flush=True)
"""
    bot = Bot([sys.executable, "-c", floats])
    with pytest.raises(ProtocolError, match="expected a legal move"):
        bot.act(observation)
    bot.close()
    with pytest.raises(ValueError, match="seconds is -1"):
        Bot(COMMAND, seconds=-1)
    with pytest.raises(ValueError, match="the queue is"):
        answers(start([], queue=["T"]), {"type": "suggest"})
