"""What is refused, and that the message names the value and what was expected: a table for each public function."""

from dataclasses import fields

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from mergefall import game2048, tetris
from mergefall.game2048 import Game2048Env, Game2048VectorEnv
from mergefall.games import ENVIRONMENTS, game_of
from mergefall.tetris import TetrisEnv, TetrisVectorEnv
from mergefall.tetris.keys import TetrisKeysEnv
from mergefall.text_game import TextGame
from mergefall.wrappers import flat, observe_mask, planes, replace_illegal

from tests.fuzz import NONSENSE, refused

G2048, TETRIS, KEYS = "mergefall/Game2048-v0", "mergefall/Tetris-v0", "mergefall/TetrisKeys-v0"
EMPTY = "/".join(["...."] * 4)


def table(names, *rows):
    return pytest.mark.parametrize(names, rows)


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_every_argument_is_refused_by_name(env_id):
    rules, fits = game_of(env_id), {"gravity": [2.5], "garbage": [{}, None], "goal": [None]}
    for field in fields(rules):
        low, high = field.metadata["range"] or (0, 0)
        for value in (*NONSENSE, low - 1, high + 1, True)[: None if field.metadata["range"] else len(NONSENSE)]:
            taken = not refused(lambda: rules(**{field.name: value}), f"{field.name} is {value!r}", field.name)  # noqa: B023
            assert not taken or field.name == "opponent" or value in fits.get(field.name, ()), (field.name, value)


@table(
    ("env_id", "kwargs", "message"),
    (G2048, {"goal": 100}, "goal is 100; expected a tile"),
    (G2048, {"goal": 2**18}, "goal is 262144; expected an integer from 8 to 131072"),
    (G2048, {"reward": "goal"}, "reward is 'goal', but goal is None; expected a tile to reach"),
    (
        TETRIS,
        {"placements": "reachable", "pieces": "five"},
        "placements is 'reachable' with pieces='five'; SRS has no kicks",
    ),
    (TETRIS, {"hold": True, "preview": 0}, "hold is True with preview=0; expected a preview of at least 1"),
    (KEYS, {"garbage": {"lines": 1}}, "garbage has no 'lines'; it has rows, holes, moves"),
    (KEYS, {"garbage": {"rows": 1, "holes": 10}}, "holes of garbage is 10; expected an integer from 1 to 9"),
)
def test_arguments(env_id, kwargs, message):
    for call in (gym.make, gym.make_vec):
        with pytest.raises(ValueError, match=message):
            call(env_id, **kwargs)


def test_calls_of_batches():
    envs = TetrisVectorEnv(3)
    some = np.array([True, False, False])
    for call in (lambda: envs.step([0, 0, 0]), lambda: envs.reset(options={"reset_mask": some})):
        with pytest.raises(gym.error.ResetNeeded):
            call()
    envs.reset(seed=0)
    state = envs.clone_state()
    masks = [[True, False, False], some[:2], some.astype(int)]
    for call, message in [
        (lambda: envs.step([0, 40, 0]), "action of game 1 is 40"),
        (lambda: envs.step([0, 0, -1]), "action of game 2 is -1"),
        (lambda: envs.step([0, 0]), r"int64\[2\]; expected integers of shape \(3,\)"),
        (lambda: envs.step([0.0, 0.0, 0.0]), "float64"),
        *((lambda mask=mask: envs.reset(options={"reset_mask": mask}), "reset_mask is") for mask in masks),
        (lambda: envs.reset(seed=[1, 2]), "list of 2; expected one for each of 3"),
        (lambda: envs.reset(seed=-1), "seed is -1"),
        (lambda: envs.reset(seed=[[], 1, 2]), r"seed is \[\]"),
        (lambda: envs.restore_state(state[:2]), r"state is uint64\[2, (\d+)\]; expected uint64\[3, \1\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    np.testing.assert_array_equal(envs.clone_state(), state)


@table(
    ("make", "options", "message"),
    (Game2048Env, {"board": np.full((4, 4), 18)}, "rank 18; expected .* 0 to 17"),
    (Game2048Env, {"board": np.zeros((4, 4), int)}, "terminal"),
    (Game2048Env, {"board": "2 2 . 3/. . . ./. . . ./. . . ."}, "'3'"),
    (TetrisEnv, {"board": "/".join(["#" * 10, *["." * 10] * 19])}, "row 0 of board is full"),
    (TetrisEnv, {"board": np.zeros((4, 5), int)}, r"board has shape \(4, 5\); expected \(20, 10\)"),
    (lambda: TetrisKeysEnv(4, 4), {"board": "/".join(["#..."] * 8)}, "board has filled cells where pieces appear"),
    (lambda: TetrisKeysEnv(4, 4), {"board": np.zeros((5, 4), int)}, r"\(5, 4\); expected \(8, 4\) or \(4, 4\)"),
    (TetrisEnv, {"piece": "plus"}, "piece is 'plus'; expected one of 'I'"),
    (TetrisEnv, {"queue": [1, 2]}, r"queue is \[1, 2\]; expected a list of 1 pieces"),
    (TetrisEnv, {"hold": "I", 3: "O"}, "reset options hold 'hold'"),
    (lambda: TetrisEnv(pieces="sz"), {"piece": "I"}, "expected one of 3 S, 4 Z"),
)
def test_starts(make, options, message):
    env = make()
    env.reset(seed=0)
    state = env.clone_state()
    for call in (lambda: env.reset(seed=3, options=options), lambda: env.set_starts([{}, options])):
        with pytest.raises(ValueError, match=message):
            call()
    np.testing.assert_array_equal(env.clone_state(), state)


@table(
    ("board", "message"),
    ([[1, 2], [3]], "different lengths"),
    ([[0.0, 1.0], [1.0, 0.0]], "dtype float64"),
    ([[8, 0], [0, 0]], "rank 8; expected .* 0 to 7"),  # four of the highest rank of a start, 5, merge to 7
    ("2 3/. .", "'3'"),
)
def test_boards_of_2048(board, message):
    for function in (game2048.legal_actions, game2048.outcomes, game2048.to_text, lambda b: game2048.move(b, 0)):
        with pytest.raises(ValueError, match=message):
            function(board)


@table(
    ("call", "message"),
    (lambda: game2048.move([[1, 1], [0, 0]], 4), "action is 4; expected one of 0 up, 1 right"),
    (lambda: tetris.place([[0, 1], [0, 0]], "T", 0, 0), r"board has shape \(2, 2\)"),
    (lambda: tetris.place("..../..../..../#x..", "T", 0, 0), "'x'"),
    (lambda: tetris.place(EMPTY, "K", 0, 0), "piece is 'K'"),
    (lambda: tetris.place(EMPTY, "T", 4, 0), "rotation is 4"),
    (lambda: tetris.place(EMPTY, "O", 0, 0, 0, "loose"), "overflow is 'loose'"),
    (lambda: tetris.place(EMPTY, "T", 0, 2), "T at rotation 0, column 2, slide 0; expected a legal"),
    (lambda: tetris.place(EMPTY, "O", 0, 0, 1), "slide 1; expected a legal"),
    (lambda: tetris.identify([(0, 0)]), "no known piece"),
    (lambda: TextGame(gym.make(G2048), penalty=-1), "penalty is -1"),
    (lambda: TextGame(gym.make("CartPole-v1")), "expected an environment of mergefall"),
    (lambda: planes(flat(gym.make(G2048))), "env observes .*; 'planes' needs the environment's own .*, Box"),
    (lambda: Game2048VectorEnv(0), "num_envs is 0"),
    (lambda: Game2048VectorEnv(10**30), "num_envs is 10+; expected an integer from 1 to"),
    (lambda: Game2048VectorEnv(render_mode="human"), "render_mode is 'human'"),
    (lambda: Game2048Env(render_mode="tv"), "render_mode is 'tv'"),
    (lambda: game2048.clusters(np.zeros((2, 2))), "type float64"),
    (lambda: game2048.compare_move([[1, 1], [0, 0]], 4), "action 4; expected 0 up"),
)
def test_functions(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("wrap", [planes, flat, replace_illegal, observe_mask])
def test_what_cannot_be_wrapped(wrap):
    for env in (gym.make("CartPole-v1"), SyncVectorEnv([lambda: gym.make(G2048)])):
        with pytest.raises(ValueError, match="expected one of mergefall's or a native batch"):
            wrap(env)


@pytest.mark.parametrize("env_id", [G2048, TETRIS])
def test_illegal_actions_have_no_outcomes(env_id):
    env = gym.make(env_id).unwrapped
    env.reset(seed=0, options={"board": "2 4 8 16/. . . ./. . . ./. . . ."} if env_id == G2048 else {"piece": "O"})
    with pytest.raises(ValueError, match="action 3 is illegal here; legal are" if env_id == G2048 else "action 39"):
        env.chance_outcomes(3 if env_id == G2048 else 39)


of_2048, of_tetris = game2048.heuristic, tetris.heuristic
WEIGHED = [
    (make, name) for make, known in ((of_2048, game2048.HEURISTICS), (of_tetris, tetris.HEURISTICS)) for name in known
]


@pytest.mark.parametrize(("make", "name"), WEIGHED)
def test_every_weight_is_refused_by_name(make, name):
    with pytest.raises(ValueError, match=f"{name} has no 'typo'; it has ") as error:
        make({"name": name, "typo": 1})
    for weight in str(error.value).partition("it has ")[2].split(", "):
        for value in ("x", float("nan"), float("inf"), 1e300, -1e101, 10**400, {"x": 1}, object()):
            assert refused(lambda: make({"name": name, weight: value}), weight), (weight, value)  # noqa: B023


@table(
    ("make", "spec", "message"),
    (of_2048, "snake", "no heuristic 'snake'; there are tile-order, monotone-smooth"),
    (of_2048, {"reward": 1}, "no heuristic None"),
    (of_2048, {"name": "nneonneo", "sum": True}, "expected a finite number"),
    (
        of_2048,
        {"name": "nneonneo", "empty": np.float32(-2e20)},
        r"'empty' of nneonneo is np\.float32\(-2e\+20\); .*from -1e\+20 up to 1e\+20",
    ),
    (of_2048, {"name": "prairie-fire", "stages": [[11, {"penalty": 1e101}]]}, "'penalty' of prairie-fire"),
    (of_2048, {"name": "tile-order", "strict": 1}, "strict of tile-order is 1"),
    (
        of_2048,
        {"name": "prairie-fire", "stages": [[11, {"rewards": 1}]]},
        "a stage of prairie-fire has no 'rewards'",
    ),
    (of_2048, {"name": "prairie-fire", "stages": [[11, {}], [9, {}]]}, "is 9; expected an integer from 12"),
    (of_2048, {"name": "prairie-fire", "stages": [11]}, "expected .rank of the largest tile, weights"),
    (of_2048, {"name": "prairie-fire", "stages": [[True, {}]]}, "is True; expected an integer from 1"),
    (of_2048, 3, "heuristic 3; expected a name, a mapping of its name and weights, a function"),
    (of_2048, "json:nothing", "there is no 'nothing' in json"),
    (of_2048, "no.such.module:h", r"names the module 'no.such.module'; there is none"),
    (of_2048, "json:decoder", "heuristic <module"),
    (of_2048, {"name": "json:dumps", "depth": 1}, "json:dumps has no 'depth'; it has none"),
    (of_2048, {"name": ["nneonneo"]}, r"no heuristic \['nneonneo'\]"),
    (of_tetris, {"name": "bcts", "weights": "start"}, "has no 'weights'"),
    (
        of_tetris,
        {"name": "two-tetrad", "weights": "final"},
        "weights of two-tetrad is 'final'; expected one of 'start', 'first-run', 'tuned'",
    ),
)
def test_heuristics(make, spec, message):
    with pytest.raises(ValueError, match=message):
        make(spec)


NNEONNEO = game2048.HEURISTICS["nneonneo"], game2048.HEURISTICS["nneonneo"].terms
CONTROLLERS = tetris.HEURISTICS["bcts"].board, tetris.HEURISTICS["two-tetrad"].board_terms


@table(
    ("functions", "boards", "message"),
    (NNEONNEO, np.zeros((7, 4), int), r"shape \(7, 4\)"),
    (NNEONNEO, np.zeros((4, 4)), "dtype float64; expected integer ranks"),
    (NNEONNEO, np.full((4, 4), 2048), "rank 2048; expected .* 0 to 62"),
    (CONTROLLERS, [0, 1], r"shape \(2,\); expected \(rows, cols\) or"),
    (CONTROLLERS, np.zeros((3, 4), int), r"shape \(3, 4\); expected 4 to 40 rows of 4 to 16 columns"),
    (CONTROLLERS, np.zeros((4, 4)), "float64"),
    (CONTROLLERS, np.full((4, 4), 2), r"int64 \[2\]; expected cells of 0 and 1"),
)
def test_boards_of_heuristics(functions, boards, message):
    for function in functions:
        with pytest.raises(ValueError, match=message):
            function(boards)
