"""The Tetris Bot Protocol: our players as bots, and bots as players, over real pipes."""

import copy
import io
import json
import pickle
import sys
from dataclasses import asdict

import gymnasium as gym
import numpy as np
import pytest
from mergefall.tetris import game
from mergefall.tetris.field import columns_of, put
from mergefall.tetris.placements import at_rest, rest_of
from mergefall_baselines import make
from mergefall_baselines.player import chosen_by, steps
from mergefall_baselines.registry import player_of
from mergefall_baselines.tetris import bot as bots
from mergefall_baselines.tetris.bot import NAMES, ORIENTATIONS, ProtocolError, location_of, place_of
from mergefall_baselines.tetris.player import BAG, chances_of
from mergefall_baselines.tetris.protocol import main, serve
from mergefall_training import evaluate

COMMAND = [sys.executable, "-m", "mergefall_baselines.tetris.protocol", "tetris/bcts"]
TETRIS, KEYS = "mergefall/Tetris-v0", "mergefall/TetrisKeys-v0"
RULES = {"placements": "reachable", "hold": True, "preview": 5, "randomizer": "bag7", "overflow": "clear_first"}
CELLS = {  # around the centre, facing north, as Cold Clear 2 has them
    "I": "-1,0 0,0 1,0 2,0",
    "O": "0,0 1,0 0,1 1,1",
    "T": "-1,0 0,0 1,0 0,1",
    "S": "-1,0 0,0 0,1 1,1",
    "Z": "-1,1 0,1 0,0 1,0",
    "J": "-1,0 0,0 1,0 -1,1",
    "L": "-1,0 0,0 1,0 1,1",
}


@pytest.fixture(autouse=True)
def no_program_is_left():
    yield
    bots.programs.cache_clear()


def cells_of(location):
    cells = [tuple(map(int, cell.split(","))) for cell in CELLS[location["type"]].split()]
    for _ in range(ORIENTATIONS.index(location["orientation"])):
        cells = [(y, -x) for x, y in cells]
    return {(location["x"] + x, location["y"] + y) for x, y in cells}


def move(text):
    """The move in a text such as "T north 4 0 full"."""
    piece, orientation, x, y, spin = [*text.split(), "none"][:5]
    return {"location": {"type": piece, "orientation": orientation, "x": json.loads(x), "y": int(y)}, "spin": spin}


@pytest.mark.parametrize("piece", NAMES)
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_moves_fill_the_cells_of_their_places(piece, orientation):
    one = move(f"{piece} {orientation} 4 4")
    place, _ = place_of(one)
    columns = np.zeros(10, np.uint64)
    put(columns, *place)
    assert {(x, y) for x in range(10) for y in range(40) if int(columns[x]) >> y & 1} == cells_of(one["location"])
    assert cells_of(location_of(*place)) == cells_of(one["location"])


# -- our players as bots ----------------------------------------------------------------------------------------------


def start(field="", **more):
    """A start on a board whose lowest rows are given, the top one first."""
    board = [[None if cell == "." else "G" for cell in row] for row in field.split("/")[::-1] if row]
    board += [[None] * 10] * (40 - len(board))
    given = {"board": board, "queue": list("TIO"), "hold": None, "combo": 0, "back_to_back": False}
    return {"type": "start", **given, **more}


def message(text):
    match text.partition(" "):
        case "start", _, rest:
            return json.dumps(start(**json.loads(rest or "{}")))
        case "play", _, rest:
            return json.dumps({"type": "play", "move": rest and move(rest)})
        case kind, _, rest if kind.isidentifier():
            return json.dumps({"type": kind, "piece": rest, "randomizer": rest})
    return text


def answers(said, player="tetris/bcts"):
    """What a player answers to messages, one on each line, after it said who it is."""
    output = io.StringIO()
    serve(player_of(player), map(message, said.split("\n")), output)
    hello, *others = [json.loads(line) for line in output.getvalue().splitlines()]
    assert hello["type"] == "info"
    return others


def suggested(**position):
    (suggestion,) = answers(f"start {json.dumps(position)}\nsuggest")
    return suggestion["moves"]


def test_a_bot_is_ready_and_suggests_moves():
    ready, suggestion = answers("rules\n\nunknown\nstart\nsuggest")
    assert ready == {"type": "ready"}
    cells = [frozenset(cells_of(one["location"])) for one in suggestion["moves"]]
    assert len(cells) == len(set(cells)) == 34 + 17  # of T, and of I by a hold
    assert all({0 <= x < 10 for x, _ in some} == {True} and min(y for _, y in some) == 0 for some in cells)


@pytest.mark.parametrize("position", [{"queue": "TOO"}, {"queue": "OII", "hold": "T"}])
def test_a_t_spin_is_told(position):
    position = {**position, "queue": list(position["queue"])}
    moves = suggested(field="##......../#...######/##.#######", **position)
    for text in ("T south 2 1 full", "T north 2 1 mini", "T north 7 2 none"):
        assert move(text) in moves


@pytest.mark.parametrize("queue", [["T"] * 3, ["T"]])
def test_cells_above_the_field_are_in_the_way(queue):
    moves = suggested(field="##......../........../" + ".#########/" * 19, queue=queue)
    assert move("T north 4 19") in moves
    assert not any({(0, 20), (1, 20)} & cells_of(one["location"]) for one in moves)
    assert suggested(field="####.#####/" * 25, queue=queue) == []


def test_the_only_known_pieces_are_played():
    assert {one["location"]["type"] for one in suggested(queue=["T"], hold="I")} == {"T", "I"}


def test_a_game_is_kept_over_plays(monkeypatch):
    seen, player = [], make("tetris/bcts")
    decide = type(player)._decide

    def look(self, rules, states, memory, *others):
        actions, state = decide(self, rules, states, memory, *others), states[0]
        bag, queue = chances_of(memory[0], BAG, 127, np.zeros(7)), game.nibbles(state[game.QUEUE], 1 + rules.preview)
        names = "".join(NAMES[id] for id in queue), [None, *NAMES][int(state[game.HOLD])]
        left = "".join(sorted(NAMES[id] for id in range(7) if bag >> id & 1))
        seen.append((*names, left, int(state[game.COMBO]), int(state[game.BACK_TO_BACK])))
        assert rules.randomizer == "bag7"
        return actions

    monkeypatch.setattr(type(player), "_decide", look)
    begun = {"field": "####....##/####....##/......####", "queue": list("TIOJ"), "combo": 2, "back_to_back": True}
    answers(
        f"""rules seven_bag
start {json.dumps({**begun, "randomizer": {"type": "seven_bag", "bag_state": list("SZL")}})}
suggest
play I north 5 1
new_piece S
new_piece L
suggest
play O north 0 2
new_piece Z
suggest
play T south 7 2 mini
new_piece T
suggest""",
        player,
    )
    assert seen == [
        ("TIOJ", None, "LSZ", 2, 1),
        ("OJSL", "T", "Z", 3, 0),  # the T was held, and the I filled a row
        ("JSLZ", "T", "IJLOSTZ", 0, 0),
        ("SLZT", "J", "IJLOSZ", 0, 0),
    ]


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("[hm", "Expecting value"),
        ("[3]", "'[3]' is no message; expected an object with a type"),
        ("suggest", "the queue is empty; expected start, with a current piece, before suggest"),
        ("start\nstop\nsuggest", "the queue is empty"),
        ("play T north 4 0", "is not legal here"),
        ('start {"queue": []}\nsuggest', "the queue is empty"),
        ('start {"queue": ["T", "X"]}', "piece is 'X'; expected one of I, O, T, S, Z, J, L"),
        ('start {"queue": "TI"}', "pieces of the queue are 'TI'; expected a list"),
        ('start {"hold": 3}', "piece is 3"),
        ('start {"board": [[null], [null]]}', "board has shape (2, 1); expected 40 rows of 10 cells"),
        ('start {"board": [[null], [null, "T"]]}', "board has shape (2,)"),
        ('start {"field": "##########"}', "a row of the board is full"),
        (f'start {{"combo": {10**30}}}', "combo is 10"),
        ('start {"back_to_back": 2}', "back_to_back is 2"),
        ('start {"randomizer": {"type": "seven_bag", "bag_state": ["X"]}}', "piece is 'X'"),
        ("start\nnew_piece", "piece is ''"),
        ("start\nplay", "''; expected moves, each with a location of type, orientation, x and y, and a spin"),
        ("start\nplay T up 4 0", "expected moves, each"),
        ("start\nplay T north 4 0 double", "expected moves, each"),
        ("start\nplay O north 4 0", "is not legal here; expected a placement of the current or the other piece"),
        ("start\nplay T north -5 0", "is not legal here"),
        ("start\nplay T north 1.5 0", "is not legal here"),
        ("start\nplay T north 4 39", "is not legal here"),
        ('start {"field": "....#....."}\nplay T north 4 0', "is not legal here"),
    ],
)
def test_messages_that_make_no_sense_are_answered_by_an_error(said, complaint):
    error, ready = answers(f"{said}\nrules")
    assert (error["type"], error["reason"], ready["type"]) == ("error", "invalid_message", "ready")
    assert complaint in error["message"]


def test_a_player_of_other_rules_refuses_them():
    (error,) = answers("rules seven_bag", {"player": "tetris/bcts", "randomizer": "uniform"})
    assert (error["type"], error["reason"]) == ("error", "unsupported_rules")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--help"], 0, "Be a bot on standard input and output"),
        (["tetris/nobody"], 2, "there is no player 'tetris/nobody'"),
        (["tetris/keys"], 2, "which plays another game"),
        (["tetris/bcts", "[1]"], 2, "options are [1]; expected a JSON object"),
    ],
)
def test_the_command_says_what_it_takes(arguments, status, text, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["protocol", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == status
    assert text in "".join(capsys.readouterr())


# -- bots as our players ----------------------------------------------------------------------------------------------

READY = ('{"type": "info"}', '{"type": "later"}', '{"type": "ready"}')
LISTENING = """
import sys
from mergefall_baselines import make
from mergefall_baselines.tetris.protocol import serve
serve(make("tetris/bcts"), (print(line, end="", file=open(sys.argv[1], "a")) or line for line in sys.stdin), sys.stdout)
"""


def script(*said, then="sys.stdin.read()"):
    """A program that says lines, and then does something else."""
    return [sys.executable, "-c", f"import sys, time\nfor line in {said}: print(line, flush=True)\n{then}"]


def suggests(*texts):
    return json.dumps({"type": "suggestion", "moves": list(map(move, texts))})


def bot(command, **options):
    return {"player": "tetris/bot", "command": command, "seconds": 0.0, **options}


def starts(file):
    """What a bot heard of positions."""
    bots.programs.cache_clear()
    rules, *said, _ = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["type"] for one in said] == ["start", "suggest", "stop"] * (len(said) // 3)
    assert {start["randomizer"]["type"] for start in said[::3]} == {rules["randomizer"]}
    return said[::3]


def observation(field="", piece="T"):
    board = np.zeros((20, 10), np.uint8)
    for y, row in enumerate(filter(None, field.split("/")[::-1])):
        board[19 - y] = [cell == "#" for cell in row]
    return {"board": board, "piece": NAMES.index(piece), "hold": 7, "queue": np.array([0])}


@pytest.mark.parametrize("env_id", [TETRIS, KEYS])
def test_a_bot_is_told_the_true_position(env_id, tmp_path):
    spec, kwargs = bot([sys.executable, "-c", LISTENING, str(tmp_path / "said")]), RULES
    if env_id == KEYS:
        spec, kwargs = {"player": "tetris/keys", "of": spec}, {"garbage": {"rows": 1.0}}
    env = gym.make(env_id, **kwargs)
    player, truth, before = player_of(spec).with_rules(asdict(env.unwrapped.rules)), [], {"pieces": -1, "lines": 0}
    for step in steps(env, 2, chosen_by(player, 2)):
        if step.info["pieces"] == 60 or step.terminated:
            break
        if step.info["pieces"] > before["pieces"]:
            state = env.unwrapped.clone_state()
            board = [[(None, "G")[int(one) >> y & 1] for one in state[game.COLUMNS :]] for y in range(40)]
            queue = [NAMES[id] for id in game.nibbles(state[game.QUEUE], 6)]
            combo = truth[-1][3] + 1 if step.info["lines"] > before["lines"] else 0
            left = [name for id, name in enumerate(NAMES) if (int(state[game.BAG]) or 127) >> id & 1]
            truth.append((board, queue, [None, *NAMES][int(state[game.HOLD])], combo, left))
            before = step.info
    parts = "board", "queue", "hold", "combo"
    heard = [(*(one[part] for part in parts), one["randomizer"]["bag_state"]) for one in starts(tmp_path / "said")]
    assert heard == truth
    assert max(combo for *_, combo, _ in truth) > 1
    assert any(cell for board, *_ in truth for cell in board[20]) == (env_id == KEYS)


def test_a_bot_is_told_of_a_chain(tmp_path):
    played = [  # (the field, the bot's move, the combo and the chain that it is told after it)
        ("#########./" * 4, "I east 9 2", (1, True)),
        ("", "O north 0 0", (0, True)),
        ("########../" * 2, "O north 8 0", (1, False)),
        ("##......../#...######/##.#######", "T south 2 1 full", (2, True)),
        ("", "I south 5 0", (0, True)),
    ]
    log = f"for line in sys.stdin: print(line, end='', file=open({str(tmp_path / 'said')!r}, 'a'))"
    player, memory = player_of(bot(script(*READY, *(suggests(one) for _, one, _ in played * 2), then=log))), None
    for field, text, _ in played:
        seen = observation(field, text[0])
        action, memory = player.predict(seen, memory)
        rest = rest_of(columns_of(seen["board"]), seen["piece"], int(action), False, 20)
        assert place_of(move(text))[0] == (seen["piece"], *at_rest(rest))
    player.predict(observation(piece="I"), memory, episode_start=True)
    told = [(one["combo"], one["back_to_back"]) for one in starts(tmp_path / "said")]
    assert told == [(0, False), *(after for *_, after in played[:-1]), (0, False)]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (script(then="sys.exit(3)"), "said nothing, exit status 3; expected 'info'"),
        (script('{"type": "error", "reason": "no"}'), "said {'type': 'error', 'reason': 'no'}, exit status 0"),
        (script("hello"), r"said 'hello\\n', exit status 0; expected 'info'"),
        (script(READY[0], "[1]"), r"said \[1\], exit status 0; expected 'ready'"),
        (script("[" * 10**5), r"said '\[\["),
        (script(*READY), r"said nothing, exit status -?\d+; expected 'suggestion' within 1 seconds"),
        (script(*READY, then="while True: print('{}')"), "said nothing, .*expected 'suggestion'"),
        (script(*READY, then="while True: print('x', end='')"), "said 'xxx.*expected 'suggestion'"),
        (script(*READY, '{"type": "suggestion"}'), "suggests None; expected moves, each with"),
        (script(*READY, '{"type": "suggestion", "moves": [3]}'), "suggests 3; expected moves, each with a"),
        (script(*READY, suggests("X north 4 0")), "suggests {'location': {'type': 'X'.*; expected moves, each"),
    ],
)
def test_programs_that_fail_are_named(command, complaint, monkeypatch):
    monkeypatch.setattr(bots, "PATIENCE", 1.0)
    monkeypatch.setattr(bots, "FAREWELL", 0.2)
    with pytest.raises(ProtocolError, match=complaint):
        player_of(bot(command)).act(observation())


def test_a_program_that_does_not_quit_is_killed(monkeypatch):
    monkeypatch.setattr(bots, "FAREWELL", 0.2)
    player = player_of(bot(script(*READY, suggests("T north 4 0"), then="while True: time.sleep(1)")))
    player.act(observation())
    process = bots.programs(player.command, "uniform")._process
    assert process.poll() is None
    player.close()
    assert process.poll() not in (None, 0)


@pytest.mark.parametrize("moves", [[], ["T north 4 9", "O east 40 -1"]])
@pytest.mark.parametrize("env_id", [TETRIS, KEYS])
def test_a_bot_without_a_legal_move_loses(env_id, moves):
    """It is asked once: the program answers no second time."""
    spec, kwargs = bot(script(*READY, suggests(*moves))), RULES
    if env_id == KEYS:
        spec, kwargs = {"player": "tetris/keys", "of": spec}, {}
    game = player_of(spec).play(env_id, 0, kwargs)
    assert game.terminated
    assert game.figures["pieces"] < 20


def test_bots_are_evaluated_and_recorded_as_other_players_are(tmp_path):
    arguments = {"env_kwargs": RULES, "max_episode_steps": 60, "progress": False, "workers": 1}
    games = evaluate(bot(COMMAND), TETRIS, 2, **arguments, out=tmp_path / "games.jsonl")
    assert {"player": games.header.player, **games.header.options} == bot(COMMAND)
    own = evaluate("tetris/bcts", TETRIS, 2, **arguments)
    assert [one.actions for one in games.episodes] == [one.actions for one in own.episodes]
    assert evaluate(bot(COMMAND), TETRIS, 2, **arguments, out=tmp_path / "games.jsonl").episodes == games.episodes


def test_copies_of_a_used_bot_decide_the_same():
    player = player_of(bot(COMMAND))
    action = player.act(observation())
    for twin in (copy.copy(player), copy.deepcopy(player), pickle.loads(pickle.dumps(player))):
        assert twin.act(observation()) == action
