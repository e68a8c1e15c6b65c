"""The Tetris Bot Protocol: our players as bots, and bots as players, over real pipes."""

import copy
import io
import json
import pickle
import sys
from dataclasses import asdict

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
import numpy as np
import pytest
from mergefall.tetris import game
from mergefall.tetris.field import columns_of, put
from mergefall.tetris.placements import at_rest, rest_of
from mergefall_baselines import make
from mergefall_baselines.player import chosen_by, steps
from mergefall_baselines.registry import player_of
from mergefall_baselines.tetris import bot as bots
from mergefall_baselines.tetris.bot import NAMES, ORIENTATIONS, Bot, ProtocolError, location_of, place_of
from mergefall_baselines.tetris.memory import BAG, HELD, chances_of
from mergefall_baselines.tetris.protocol import main, serve
from mergefall_training import evaluate

COMMAND = [sys.executable, "-m", "mergefall_baselines.tetris.protocol", "tetris/bcts"]
TETRIS, KEYS = "mergefall/Tetris-v0", "mergefall/TetrisKeys-v0"
RULES = {"placements": "reachable", "hold": True, "preview": 5, "randomizer": "bag7", "overflow": "clear_first"}
START = {"type": "start", "hold": None, "queue": ["T", "I", "O"], "combo": 0, "back_to_back": False}
CELLS = {  # around the centre, facing north, as Cold Clear 2 has them
    "I": ((-1, 0), (0, 0), (1, 0), (2, 0)),
    "O": ((0, 0), (1, 0), (0, 1), (1, 1)),
    "T": ((-1, 0), (0, 0), (1, 0), (0, 1)),
    "S": ((-1, 0), (0, 0), (0, 1), (1, 1)),
    "Z": ((-1, 1), (0, 1), (0, 0), (1, 0)),
    "J": ((-1, 0), (0, 0), (1, 0), (-1, 1)),
    "L": ((-1, 0), (0, 0), (1, 0), (1, 1)),
}


@pytest.fixture(autouse=True)
def no_program_is_left():
    yield
    bots.programs.cache_clear()


def cells_of(location):
    cells = CELLS[location["type"]]
    for _ in range(ORIENTATIONS.index(location["orientation"])):
        cells = [(y, -x) for x, y in cells]
    return {(location["x"] + x, location["y"] + y) for x, y in cells}


def move(piece, orientation, x, y, spin="none"):
    return {"location": {"type": piece, "orientation": orientation, "x": x, "y": y}, "spin": spin}


@pytest.mark.parametrize("piece", NAMES)
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_moves_fill_the_cells_of_their_places(piece, orientation):
    one = move(piece, orientation, 4, 4)
    place, _ = place_of(one)
    columns = np.zeros(10, np.uint64)
    put(columns, *place)
    assert {(x, y) for x in range(10) for y in range(40) if int(columns[x]) >> y & 1} == cells_of(one["location"])
    assert cells_of(location_of(*place)) == cells_of(one["location"])


# -- our players as bots ----------------------------------------------------------------------------------------------


def answers(*messages, player="tetris/bcts"):
    """What a player answers to messages, after it said who it is."""
    output = io.StringIO()
    lines = [one if isinstance(one, str) else json.dumps(one) for one in messages]
    serve(make(player) if isinstance(player, str) else player, lines, output)
    hello, *others = [json.loads(line) for line in output.getvalue().splitlines()]
    assert hello["type"] == "info"
    return others


def start(rows, **more):
    """A start on a board whose lowest rows are given, the top one first."""
    rows = [[None if cell == "." else "G" for cell in row] for row in rows[::-1]]
    return START | {"board": rows + [[None] * 10] * (40 - len(rows))} | more


def suggested(rows, **more):
    (suggestion,) = answers(start(rows, **more), {"type": "suggest"})
    return suggestion["moves"]


def test_a_bot_is_ready_and_suggests_moves():
    ready, suggestion = answers({"type": "rules"}, "\n", {"type": "unknown"}, start([]), {"type": "suggest"})
    assert ready == {"type": "ready"}
    cells = [cells_of(one["location"]) for one in suggestion["moves"]]
    assert all(0 <= x < 10 for some in cells for x, _ in some)
    assert {min(y for _, y in some) for some in cells} == {0}  # all moves on an empty board
    assert len(cells) == len(set(map(frozenset, cells))) == 34 + 17  # of T, and of I by a hold


@pytest.mark.parametrize("hold", [None, "T"])
def test_a_t_spin_is_told(hold):
    rows = ["##........", "#...######", "##.#######"]
    queue = ["T", "O", "O"] if hold is None else ["O", "I", "I"]
    spins = {json.dumps(one["location"]): one["spin"] for one in suggested(rows, queue=queue, hold=hold)}
    there = (
        move("T", "south", 2, 1)["location"],
        move("T", "north", 2, 1)["location"],
        move("T", "north", 7, 2)["location"],
    )
    assert [spins[json.dumps(location)] for location in there] == ["full", "mini", "none"]


@pytest.mark.parametrize("queue", ["TTT", "T"])
def test_cells_above_the_field_are_in_the_way(queue):
    rows = ["##........", "..........", *[".#########"] * 19]
    moves = suggested(rows, queue=list(queue))
    assert move("T", "north", 4, 19) in moves
    filled = {(x, len(rows) - 1 - i) for i, row in enumerate(rows) for x, cell in enumerate(row) if cell == "#"}
    assert not any(cells_of(one["location"]) & filled for one in moves)
    assert suggested(["####.#####"] * 25, queue=list(queue)) == []


def test_the_only_known_pieces_are_played():
    assert {one["location"]["type"] for one in suggested([], queue=["T"], hold="I")} == {"T", "I"}


def test_a_game_is_kept_over_plays(monkeypatch):
    seen, player = [], make("tetris/bcts")
    decide = type(player)._decide

    def look(self, rules, states, memory, values, exact):
        before = memory.copy()
        actions = decide(self, rules, states, memory, values, exact)
        weights = np.zeros(7)
        bag = chances_of(memory[0], BAG, 127, weights)
        state = states[0]
        queue = [NAMES[id] for id in game.nibbles(state[game.QUEUE], 1 + rules.preview)]
        pieces = queue, [None, *NAMES][int(state[game.HOLD])]
        chain = int(state[game.COMBO]) | int(state[game.BACK_TO_BACK]) << 16
        seen.append((*pieces, {NAMES[id] for id in range(7) if bag >> id & 1}, chain, before[0, HELD]))
        return actions

    monkeypatch.setattr(type(player), "_decide", look)
    ask, more = {"type": "suggest"}, {"type": "new_piece"}
    answers(
        {"type": "rules", "randomizer": "seven_bag"},
        start(
            ["####....##", "####....##", "......####"],
            queue=list("TIOJ"),
            combo=2,
            back_to_back=True,
            randomizer={"type": "seven_bag", "bag_state": list("SZL")},
        ),
        ask,
        {"type": "play", "move": move("I", "north", 5, 1)},  # a hold and a single
        more | {"piece": "S"},
        more | {"piece": "L"},
        ask,
        {"type": "play", "move": move("O", "north", 0, 2)},  # no clear
        more | {"piece": "Z"},
        ask,
        {"type": "play", "move": move("T", "south", 7, 2, "mini")},
        more | {"piece": "T"},
        ask,
        player=player,
    )
    assert seen == [
        (list("TIOJ"), None, set("SZL"), 2 | 1 << 16, 0),
        (list("OJSL"), "T", set("Z"), 3, 1),
        (list("JSLZ"), "T", set(NAMES), 0, 1),
        (list("SLZT"), "J", set(NAMES) - {"T"}, 0, 1),
    ]


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        (["hm"], "Expecting value"),
        (["[3]"], "'[3]' is no message; expected an object with a type"),
        ([{"type": "suggest"}], "suggest comes before start"),
        ([start([]), {"type": "stop"}, {"type": "suggest"}], "suggest comes before start"),
        ([{"type": "play", "move": move("T", "north", 4, 0)}], "play comes before start"),
        ([start([], queue=[]), {"type": "suggest"}], "the queue is empty"),
        ([start([], queue=["T", "X"])], "piece is 'X'; expected one of I, O, T, S, Z, J, L"),
        ([start([], queue="TI")], "pieces of the queue are 'TI'; expected a list"),
        ([start([], hold=3)], "piece is 3"),
        ([start([], board=[[None] * 10] * 20)], "board has shape (20, 10); expected 40 rows of 10 cells"),
        ([start([], board=[[None] * 10, [None] * 9] * 20)], "board has shape (40,)"),
        ([start(["#" * 10])], "a row of the board is full"),
        ([start([], combo=-1)], "combo is -1"),
        ([start([], back_to_back=2)], "back_to_back is 2"),
        ([start([]), {"type": "new_piece"}], "piece is None"),
        ([start([]), {"type": "play", "move": 5}], "5; expected moves, each"),
        ([start([]), {"type": "play", "move": move("T", "up", 4, 0)}], "expected moves, each"),
        ([start([]), {"type": "play", "move": move("T", "north", 4, 0, "double")}], "expected moves, each"),
        *(
            ([start(rows), {"type": "play", "move": move(*one)}], "is not legal here; expected a move of ['T', 'I']")
            for rows, one in [
                ([], ("O", "north", 4, 0)),
                ([], ("T", "north", -5, 0)),
                ([], ("T", "north", 9, 0)),
                ([], ("T", "north", 1.5, 0)),
                ([], ("T", "north", 4, 39)),
                (["....#....."], ("T", "north", 4, 0)),
            ]
        ),
    ],
)
def test_messages_that_make_no_sense_are_answered_by_an_error(messages, complaint):
    error, ready = answers(*messages, {"type": "rules"})
    assert (error["type"], error["reason"], ready["type"]) == ("error", "invalid_message", "ready")
    assert complaint in error["message"]


def test_a_player_of_other_rules_refuses_them():
    (error,) = answers({"type": "rules", "randomizer": "seven_bag"}, player=make("tetris/bcts", randomizer="uniform"))
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

LISTENER = """
import sys
from mergefall_baselines import make
from mergefall_baselines.tetris.protocol import serve
def heard():
    for line in sys.stdin:
        with open(sys.argv[1], "a") as file:
            file.write(line)
        yield line
serve(make("tetris/bcts"), heard(), sys.stdout)
"""
READY = ('{"type": "info"}', '{"type": "later"}', '{"type": "ready"}')


def script(*said, then="sys.stdin.read()"):
    """A program that says lines, and then does something else."""
    return [sys.executable, "-c", f"import sys, time\nfor line in {said}: print(line, flush=True)\n{then}"]


def suggests(*moves):
    return json.dumps({"type": "suggestion", "moves": moves})


def starts(file):
    """What a bot heard of positions."""
    said = [json.loads(line) for line in file.read_text().splitlines()]
    said = said[: -1 if said[-1]["type"] == "quit" else None]
    assert [one["type"] for one in said] == ["rules", *["start", "suggest", "stop"] * (len(said) // 3)]
    assert {start["randomizer"]["type"] for start in said[1::3]} == {said[0]["randomizer"]}
    return said[1::3]


def test_a_player_behind_the_protocol_plays_its_own_game():
    env, player, bot = gym.make(TETRIS, **RULES), make("tetris/bcts", **RULES), Bot(COMMAND, seconds=0)
    for step in steps(env, 3, chosen_by(player, 3)):
        if step.info["pieces"] >= 60:
            break
        assert bot.act(step.observation) == player.act(step.observation)
    assert step.info["lines"] > 10


@pytest.mark.parametrize("env_id", [TETRIS, KEYS])
def test_a_bot_is_told_the_true_position(env_id, tmp_path):
    spec = {"player": "tetris/bot", "command": [sys.executable, "-c", LISTENER, str(tmp_path / "said")], "seconds": 0}
    kwargs = RULES if env_id == TETRIS else {"garbage": {"rows": 1.0}}
    env, spec = gym.make(env_id, **kwargs), spec if env_id == TETRIS else {"player": "tetris/keys", "of": spec}
    player, truth, before = player_of(spec).with_rules(asdict(env.unwrapped.rules)), [], {"pieces": -1, "lines": 0}
    for step in steps(env, 2, chosen_by(player, 2)):
        if step.info["pieces"] == 60 or step.terminated:
            break
        if step.info["pieces"] > before["pieces"]:
            state = env.unwrapped.clone_state()
            truth.append(
                {
                    "board": [[(None, "G")[int(one) >> y & 1] for one in state[game.COLUMNS :]] for y in range(40)],
                    "queue": [NAMES[id] for id in game.nibbles(state[game.QUEUE], 6)],
                    "hold": [None, *NAMES][int(state[game.HOLD])],
                    "combo": truth[-1]["combo"] + 1 if step.info["lines"] > before["lines"] else 0,
                    "bag": [name for id, name in enumerate(NAMES) if (int(state[game.BAG]) or 127) >> id & 1],
                }
            )
            before = step.info
    bots.programs.cache_clear()
    heard = [one | {"bag": one["randomizer"]["bag_state"]} for one in starts(tmp_path / "said")]
    assert [{name: one[name] for name in truth[0]} for one in heard] == truth
    assert max(one["combo"] for one in truth) > 1
    assert any(cell for one in truth for cell in one["board"][20]) == (env_id == KEYS)


def observation(rows=(), piece="T", **more):
    board = np.zeros((20, 10), np.uint8)
    for y, row in enumerate(reversed(rows)):
        board[19 - y] = [cell == "#" for cell in row]
    return {"board": board, "piece": NAMES.index(piece), "hold": 7, "queue": np.array([0]), **more}


def test_a_bot_is_told_of_a_chain(tmp_path):
    played = [  # (the field, the bot's move, the combo and the chain that it is told after it)
        (["#########."] * 4, move("I", "east", 9, 2), (1, True)),
        ([], move("O", "north", 0, 0), (0, True)),
        (["########.."] * 2, move("O", "north", 8, 0), (1, False)),
        (["##........", "#...######", "##.#######"], move("T", "south", 2, 1, "full"), (2, True)),
        ([], move("I", "south", 5, 0), (0, True)),
    ]
    log = f"for line in sys.stdin: print(line, end='', file=open({str(tmp_path / 'said')!r}, 'a'))"
    bot, memory = Bot(script(*READY, *(suggests(one) for _, one, _ in played * 2), then=log), seconds=0), None
    for rows, one, _ in played:
        seen = observation(rows, one["location"]["type"])
        action, memory = bot.predict(seen, memory)
        assert place_of(one)[0][1:] == tuple(
            map(int, at_rest(rest_of(columns_of(seen["board"]), seen["piece"], action, False, 20)))
        )
    bot.predict(observation([], "I"), memory, episode_start=True)
    bot.close()
    told = [(one["combo"], one["back_to_back"]) for one in starts(tmp_path / "said")]
    assert told == [(0, False), *(after for *_, after in played[:-1]), (0, False)]


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        (script(then="sys.exit(3)"), "said nothing, exit status 3; expected 'info'"),
        (script('{"type": "error", "reason": "no"}'), "said {'type': 'error', 'reason': 'no'}, exit status 0"),
        (script("hello"), r"said 'hello\\n', exit status 0; expected 'info'"),
        (script(READY[0], "[1]"), r"said \[1\], exit status 0; expected 'ready'"),
        (script("[" * 10**5), r"said '\[\["),
        (script(*READY), r"said nothing, exit status -?\d+; expected 'suggestion' within 1 seconds"),
        (script(*READY, then="while True: print('{}')"), "said nothing, .*expected 'suggestion'"),
        (script(*READY, then="while True: print('x', end='')"), "said 'xxx.*expected 'suggestion'"),
        (script(*READY, '{"type": "suggestion", "moves": 5}'), "suggests 5; expected moves, each with"),
        (script(*READY, '{"type": "suggestion"}'), "suggests None; expected moves, each with"),
        (script(*READY, suggests(3)), "suggests 3; expected moves, each with a location of type, orientation, x and y"),
        (
            script(*READY, suggests(move("X", "north", 4, 0))),
            "suggests {'location': {'type': 'X'.*; expected moves",
        ),
    ],
)
def test_programs_that_fail_are_named(program, complaint, monkeypatch):
    monkeypatch.setattr(bots, "PATIENCE", 1.0)
    monkeypatch.setattr(bots, "FAREWELL", 0.2)
    with pytest.raises(ProtocolError, match=complaint):
        make("tetris/bot", command=program, seconds=0).act(observation())


def test_a_program_that_does_not_quit_is_killed(monkeypatch):
    monkeypatch.setattr(bots, "FAREWELL", 0.2)
    bot = Bot(script(*READY, suggests(move("T", "north", 4, 0)), then="while True: time.sleep(1)"), seconds=0)
    bot.act(observation())
    process = bots.programs(bot.command, "uniform")._process
    assert process.poll() is None
    bot.close()
    assert process.poll() not in (None, 0)


@pytest.mark.parametrize("moves", [[], [move("T", "north", 4, 9), move("O", "east", 40, -1)]])
@pytest.mark.parametrize("env_id", [TETRIS, KEYS])
def test_a_bot_without_a_legal_move_loses(env_id, moves):
    """It is asked once: the program answers no second time."""
    spec = {"player": "tetris/bot", "command": script(*READY, suggests(*moves)), "seconds": 0}
    player = player_of(spec if env_id == TETRIS else {"player": "tetris/keys", "of": spec})
    game = player.play(env_id, 0, RULES if env_id == TETRIS else {})
    assert game.terminated
    assert game.figures["pieces"] < 20


def test_bots_are_evaluated_and_recorded_as_other_players_are(tmp_path):
    spec = {"player": "tetris/bot", "command": COMMAND, "seconds": 0.0}
    arguments = {"env_kwargs": RULES, "max_episode_steps": 20, "progress": False, "workers": 1}
    games = evaluate(spec, TETRIS, 2, **arguments, out=tmp_path / "games.jsonl")
    assert (games.header.player, games.header.options) == ("tetris/bot", {"command": COMMAND, "seconds": 0.0})
    own = evaluate("tetris/bcts", TETRIS, 2, **arguments)
    assert [one.actions for one in games.episodes] == [one.actions for one in own.episodes]
    bots.programs.cache_clear()
    assert evaluate(spec, TETRIS, 2, **arguments, out=tmp_path / "games.jsonl").episodes == games.episodes


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda player: pickle.loads(pickle.dumps(player))])
def test_copies_of_a_used_bot_decide_the_same(again):
    bot = Bot(COMMAND, seconds=0)
    assert bot.act(observation()) == again(bot).act(observation())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"seconds": -1}, "seconds is -1"),
        ({"command": "cold-clear"}, "command is 'cold-clear'; expected a list of strings"),
        ({"command": []}, r"command is \[\]"),
        ({"command": ["bot", 3]}, r"command is \['bot', 3\]"),
        ({"rules": {"rows": 10}}, "was made for rows=20, but the observation shows rows=10"),
        ({"rules": {"hold": False}}, "was made for hold=True, but the observation shows hold=False"),
    ],
)
def test_other_options_and_games_are_refused(options, complaint):
    rules = RULES | options.pop("rules", {})
    with pytest.raises(ValueError, match=complaint):
        make("tetris/bot", **{"command": COMMAND, **options}).act(gym.make(TETRIS, **rules).reset(seed=0)[0])
