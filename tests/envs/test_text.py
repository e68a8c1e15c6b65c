"""Games as text: positions that read back, answers of every style, and answers of no sense."""

from itertools import product

import gymnasium as gym
import mergefall
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mergefall.tetris.rules import Rules
from mergefall.text import action_names, canonical, position, prompt, read_answer, rules_text, start_of

GAME = gym.make("mergefall/Game2048-v0", rows=2, cols=3).unwrapped
FIELD = gym.make("mergefall/Tetris-v0", cols=5, rows=6, preview=2, placements="slide").unwrapped
ALL, NO_DOWN = np.ones(4, np.int8), np.array([1, 1, 0, 1], np.int8)


@pytest.mark.parametrize(
    ("answer", "kind", "action"),
    [
        ("up", "legal", 0),
        ("I'd move **Left**.", "legal", 3),
        ("<answer> RIGHT </answer>", "legal", 1),
        ("<answer>left</answer> no, wait: <answer>up</answer>", "legal", 0),
        ("up is bad, so right", "unreadable", None),
        ("The answer is left, which keeps the biggest tile on the right.", "unreadable", None),
        ("Move: up?\nFinal: left", "unreadable", None),
        ("**Final answer:** Left", "legal", 3),
        ("Up and right lose.\nThe move is left", "legal", 3),
        (r"Therefore \boxed{right}, not up", "legal", 1),
        ('{"action": "up"} rather than left', "legal", 0),
        ('```json\n{"reasoning": "left?", "move": "right"}\n```', "legal", 1),
        ("3", "legal", 3),
        ("right rather than **up**", "legal", 1),
        ("Don't go left! up", "legal", 0),
        ("Board:\n2 .\n2 .\nLegal moves: up, right\nMy move: right", "legal", 1),
        ("down", "illegal", 2),
        ("<answer>7</answer>", "illegal", None),
        ("", "unreadable", None),
        ("update the leftover", "unreadable", None),
        ("<answer>I cannot move left</answer>", "unreadable", None),
        ("\u4e0a \u2191 \ud83d\ude00", "unreadable", None),
    ],
)
def test_answers_for_2048(answer, kind, action):
    assert read_answer(answer, GAME.rules, NO_DOWN) == (kind, action)


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("rotation 1 column 3", 5 + 3),
        ("column 0, turned 90\u00b0, slid left", 20 + 5),
        ('{"column": 4, "rotation": 2, "slide": "right"}', 40 + 10 + 4),
        ("rotation 0 column 1? No. <answer>rotation 0, column 2</answer>", 2),
        ("7", 7),
        ("not column 1 but column 2", 2),
        ("column 2 turned clockwise by 270 degrees", 15 + 2),
        ("Answer: rotation 1 (90 degrees), column 3, because rows 2 and 3 fill", 5 + 3),
        ('{"column": 4, "slide": 1}', 20 + 4),
        ("column-3.", 3),
        ("column 3.0, turned 90.0°", 5 + 3),
    ],
)
def test_answers_for_tetris(answer, action):
    mask = np.ones(60, np.int8)
    assert read_answer(answer, FIELD.rules, mask) == ("legal", action)
    mask[action] = 0
    assert read_answer(answer, FIELD.rules, mask) == ("illegal", action)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("-1", "unreadable"),
        ("<answer>−2</answer>", "unreadable"),
        ("column 1 or 2", "unreadable"),
        ("not column 4", "unreadable"),
        ("Answer: column 1, turned 90°, because column 4 is high", "unreadable"),
        ("columns 1 to 3", "unreadable"),
        ("rotation 1 or 2, column 3", "unreadable"),
        ("column 3, turned twice", "unreadable"),
        ("column 3, rotated counterclockwise by 90°", "unreadable"),
        ("column 3, then slide it left", "unreadable"),
        ("column 5", "illegal"),
        ("column 1 slide 3", "illegal"),
        ('{"rotation": 0, "column": -1}', "illegal"),
        ("<answer>rotation -1 column 3</answer>", "illegal"),
        ("column: \u22122", "illegal"),
        ("Answer: column 3.5", "illegal"),
        ("column 3, turned 45°", "illegal"),
    ],
)
def test_what_names_no_placement_in_tetris(answer, kind):
    """It is not plain, or names columns, rotations and slides that are not there."""
    assert read_answer(answer, FIELD.rules, np.ones(60, np.int8)) == (kind, None)


WORDS = ["rotation", "column", "slide", "left", "up", "or", "not", "3", "0", "٣", "²", *'{}":/', "<answer>"]


@given(
    st.text(max_size=300)
    | st.text('<>answer{}:\\boxed 0123updown"', max_size=300)
    | st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
)
def test_no_answer_is_an_error(answer):
    for env, mask in ((GAME, NO_DOWN), (FIELD, np.ones(60, np.int8))):
        verdict = read_answer(answer, env.rules, mask)
        assert (verdict.kind == "legal") == bool(verdict.action is not None and mask[verdict.action])


GAMES = [
    gym.make("mergefall/Game2048-v0", rows=3, cols=4),
    gym.make("mergefall/Tetris-v0", cols=5, rows=6, preview=0, placements="slide"),
    gym.make("mergefall/Tetris-v0", cols=6, rows=8, preview=2, placements="reachable", hold=True),
    gym.make("mergefall/SZTetris-v0", cols=4),
    gym.make("mergefall/Quintris-v0", cols=6),
    gym.make("mergefall/TetrisKeys-v0", cols=4, rows=4, gravity=2.0, lock_delay=1),
    gym.make("mergefall/TetrisVersus-v0", cols=5, rows=5, preview=1, opponent=lambda observation: 0),
]


@given(st.sampled_from(GAMES[:-2]), st.integers(0, 999), st.integers(0, 30), st.booleans(), st.data())
def test_a_prompt_given_back_is_unreadable(env, seed, moves, with_rules, data):
    """However much of its beginning is left out, and also on one line or as a quotation."""
    observation, info = env.reset(seed=seed)
    for k in range(moves):
        legal = np.flatnonzero(info["action_mask"])
        observation, _, over, _, info = env.step(legal[(7 * k + seed) % len(legal)])
        if over:
            return
    rules, mask = env.unwrapped.rules, info["action_mask"]
    question = prompt(observation, rules, mask)
    text = f"{rules_text(rules)}\n\n{question}" if with_rules else question
    lines = text.splitlines()
    rest = "\n".join(lines[data.draw(st.integers(0, len(lines) - 1)) :])
    for echo in (text, rest, " ".join(lines), "> " + rest.replace("\n", "\n> ")):
        assert read_answer(echo, rules, mask) == ("unreadable", None)
    action = int(np.flatnonzero(mask)[-1])
    assert read_answer(f"{text}\n\n{action_names(rules)[action]}", rules, mask) == ("legal", action)


def test_a_huge_answer_is_read_from_its_end():
    text = "{" * 10**6 + "<answer>" * 10**5 + "column 1 " * 10**6
    assert read_answer(text + "left " * 1_000, GAME.rules, ALL) == ("legal", 3)


@pytest.mark.parametrize("answer", [b"left", ["left"], 3, None])
def test_an_answer_is_text(answer):
    with pytest.raises(ValueError, match="expected text"):
        read_answer(answer, GAME.rules, ALL)


@given(st.sampled_from(GAMES), st.integers(0, 999), st.integers(0, 60))
def test_positions_read_back(env, seed, steps):
    observation, info = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        after, _, over, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
        if over:
            break
        observation = after
    rules = env.unwrapped.rules
    written = position(observation, rules)
    again, _ = env.reset(options=start_of(written, rules))
    parts = set(again) & set(rules.parts) if isinstance(again, dict) else [...]
    assert all(np.array_equal(again[part], observation[part]) for part in parts)
    if isinstance(again, dict) and not again["board"][: -rules.rows].any():  # by keys, rows above the field are shown
        assert written.count("/") == rules.rows - 1


@given(st.integers(2, 4), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_symmetric_positions_of_2048_are_one(rows, cols, seed):
    rng = np.random.default_rng(seed)
    board = rng.integers(0, 3, (rows, cols), np.uint8)
    rules = gym.make("mergefall/Game2048-v0", rows=rows, cols=cols).unwrapped.rules
    turned = np.rot90(board, 1 if rows == cols else 2)
    found = {canonical(form, rules) for form in (board, board[::-1], board[:, ::-1], turned, turned[::-1])}
    assert len(found) == 1
    same = np.sort(mergefall.game2048.from_text(found.pop()), axis=None)
    assert (same == np.sort(board, axis=None)).all()
    other = board.copy()
    other.flat[rng.integers(board.size)] += 3  # a rank that the board lacks
    assert canonical(other, rules) != canonical(board, rules)


def test_mirrored_positions_of_tetris_are_one_and_play_alike():
    """The mirrored position has the mirrored afterstates, so nothing tells the two apart."""
    env = gym.make("mergefall/Tetris-v0", cols=6, rows=8).unwrapped
    images = dict(zip("IOTSZJL", "IOTZSLJ", strict=True))
    board = "....../....../....../....../....../#...../##..##/.#.###"
    image = "....../....../....../....../....../.....#/##..##/###.#."

    def written(board, piece, following):
        return canonical(env.reset(options={"board": board, "piece": piece, "queue": [following]})[0], env.rules)

    def afterstates(mirrored):
        boards, _, legal = env.afterstates()
        return {form[:, :: -1 if mirrored else 1].tobytes() for form in boards[legal.astype(bool)]}

    for piece, following in product(images, repeat=2):
        one, found = written(board, piece, following), afterstates(mirrored=False)
        assert one == written(image, images[piece], images[following])
        assert found == afterstates(mirrored=True)
    assert written(board, "S", "T") != written(board, "Z", "T")


def test_fields_of_five_cell_pieces_stand_alone():
    env = gym.make("mergefall/Quintris-v0").unwrapped
    observation, _ = env.reset(seed=0)
    observation["board"][-1, 0] = 1
    mirror = observation | {"board": observation["board"][:, ::-1], "piece": (observation["piece"] + 1) % 6}
    assert canonical(observation, env.rules) == canonical(mirror, env.rules)


def test_a_prompt_of_tetris_shows_field_pieces_and_places():
    observation, info = FIELD.reset(seed=0, options={"board": "...../...../...../...../##.../##.##", "piece": "S"})
    text = prompt(observation, FIELD.rules, info["action_mask"])
    assert "\n##...\n##.##\n" in text
    assert "rotation 0, columns 0 to 2:\n.##\n##.\n" in text
    board, piece, *following = position(observation, FIELD.rules).split()
    assert (board, piece, len(following)) == ("...../...../...../...../##.../##.##", "S", 2)


def test_rules_are_told_as_they_are():
    assert "2 rows and 3 columns" in rules_text(GAME.rules)
    goal = gym.make("mergefall/Game2048-v0", goal=64).unwrapped.rules
    assert "ends when no move is legal, or as soon as there is a 64.\n" in rules_text(goal)
    assert "slide one column" in rules_text(FIELD.rules)
    assert "40, 100, 300, 1200 or 1240 points" in rules_text(Rules(pieces="five", reward="score"))
    variants = [Rules(overflow=o, reward=r) for o in ("strict", "clear_first") for r in ("lines", "score")]
    assert len(set(map(rules_text, variants))) == 4
