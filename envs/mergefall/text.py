"""Games as text, for language models: positions to read, and answers that are read forgivingly.

>>> import gymnasium as gym, mergefall
>>> from mergefall.text import prompt, read_answer
>>> env = gym.make("mergefall/Game2048-v0", rows=2, cols=2)
>>> observation, info = env.reset(options={"board": "2 ./2 ."})
>>> print(prompt(observation, env.unwrapped.rules, info["action_mask"]))
Board:
2 .
2 .
Legal moves: up, right, down
Answer with one move in <answer></answer>.
>>> answer = "Both tiles merge if I go **down**. <answer>Down</answer>"
>>> read_answer(answer, env.unwrapped.rules, info["action_mask"])
Verdict(kind='legal', action=2)
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from mergefall import game2048, tetris
from mergefall.game2048.reference import ACTIONS
from mergefall.game2048.rules import Rules as Rules2048
from mergefall.tetris.keys.rules import KEYS
from mergefall.tetris.keys.rules import Rules as RulesOfKeys
from mergefall.tetris.pieces import mirrored, rotations
from mergefall.tetris.placements import ABOVE, ROTATIONS
from mergefall.typing import Array, Dict, Observation

SLID = ("", ", slid left", ", slid right")
LONGEST = 4_000  # characters of an answer that are read, its last ones
LONGEST_PHRASE = 100  # characters of a phrase that is not read


def action_names(rules: Any) -> list[str]:
    """The names of all actions under an environment's rules (`env.unwrapped.rules`), legal or not."""
    if isinstance(rules, Rules2048):
        return list(ACTIONS)
    if isinstance(rules, RulesOfKeys):
        return list(KEYS[: rules.n_actions])
    rows = [f", row {y}" for y in range(rules.rows + ABOVE)] if rules.reachable else [""]
    return [
        f"{held}column {column}{f', turned {90 * rotation}°' if rotation else ''}{slid}{row}"
        for held in ("", "hold, ")[: 1 + rules.hold]
        for slid in (SLID if rules.slides else SLID[:1])
        for rotation in range(ROTATIONS)
        for column in range(rules.cols)
        for row in rows
    ]


# -- positions --------------------------------------------------------------------------------------------------------


def position(observation: Observation, rules: Any) -> str:
    """An observation in one line, as `mergefall advise` reads it; with hold it ends in `hold:` and the held piece.

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/Tetris-v0", cols=5, rows=4)
    >>> observation, _ = env.reset(options={"board": "...../...../...../##.##", "piece": "T", "queue": ["I"]})
    >>> position(observation, env.unwrapped.rules)
    '...../...../...../##.## T I'
    """
    if isinstance(rules, Rules2048):
        return game2048.to_text(observation)
    board = np.asarray(observation["board"])
    above = len(board) - rules.rows  # rows that games by keys show
    pieces = [observation["piece"], *observation.get("queue", ())]
    names = [rules.piece_set.names[int(piece)] for piece in pieces]
    if rules.hold:
        names.append("hold:" + (*rules.piece_set.names, "")[int(observation["hold"])])
    return " ".join([tetris.to_text(board if board[:above].any() else board[above:]), *names])


def start_of(position: str, game: Any) -> Dict:
    """The options of `reset` that begin a game at a position which `position` wrote.

    `game`: the rules, or their class. Raises ValueError for text that is no position.

    >>> from mergefall.tetris.rules import Rules
    >>> start_of("...../...../...../##.## T I hold:S", Rules)
    {'board': '...../...../...../##.##', 'piece': 'T', 'queue': ['I'], 'hold': 'S'}
    """
    if not set(position) & set("/\n["):
        raise ValueError(f"position {position!r} is one row; expected rows with / between them, as '2 4/. .'")
    if game.name == "2048":
        return {"board": position}
    board, *pieces = position.split()
    held = {"hold": pieces.pop()[5:] or None} if pieces and pieces[-1].startswith("hold:") else {}
    if not pieces:
        raise ValueError(f"position {position!r} names no piece; expected FIELD PIECE and the next pieces")
    return {"board": board, "piece": pieces[0], "queue": pieces[1:], **held}


def canonical(observation: Observation, rules: Any) -> str:
    """A position that stands for an observation and its symmetric forms: the least of their texts.

    - 2048: turned and mirrored boards of the same size, 8 on a square and 4 on a rectangle.
    - Tetris: the mirrored field with mirrored pieces. Five-cell pieces have mirror images that are no pieces; there the
      field stands alone.

    >>> from mergefall.game2048 import Game2048Env, from_text
    >>> rules = Game2048Env(rows=2, cols=2).rules
    >>> {canonical(from_text(board), rules) for board in ("2 4/. .", ". 4/. 2", "4 2/. .")}
    {'. ./2 4'}
    """
    if isinstance(rules, Rules2048):
        return min(map(game2048.to_text, game2048.images(observation)[0]))
    seen: Any = observation
    board, *pieces = position(observation, rules).split()
    image, images = tetris.to_text(np.asarray(seen["board"])[:, ::-1]), [_mirrored(piece) for piece in pieces]
    if not all(mirrored(name) for name in rules.piece_set.names):
        return min(board, image)
    return min(" ".join([board, *pieces]), " ".join([image, *map(str, images)]))


def _mirrored(word: str) -> str | None:
    """The mirror image of a piece, or of a held one as `position` writes it."""
    hold, _, piece = word.rpartition(":")
    return f"{hold}:{mirrored(piece) if piece else ''}" if hold else mirrored(piece)


def in_words(rules: Any) -> Any:
    """The rules, or the game, itself; raises ValueError for a game by keys, which no text is for."""
    if rules.by_keys:
        raise ValueError(f"the game is {rules.name!r}, by keys; expected 2048, or Tetris by placements")
    return rules


def rules_text(rules: Any) -> str:
    """The game in a paragraph, for a system prompt.

    >>> from mergefall.game2048 import Game2048Env
    >>> rules_text(Game2048Env().rules).splitlines()[0]
    'You play 2048 on a board of 4 rows and 4 columns.'
    """
    if isinstance(rules, Rules2048):
        goal = f", or as soon as there is a {rules.goal}" if rules.goal else ""
        return _RULES_2048.format(rows=rules.rows, cols=rules.cols, goal=goal)
    how = {"drop": "", "slide": _SLIDES, "reachable": _REACHABLE}[rules.placements] + _HOLD * rules.hold
    scores = _SCORES[rules.piece_set.storage] if rules.reward == "score" else ""
    return _RULES_TETRIS.format(rows=rules.rows, cols=rules.cols, how=how, scores=scores, end=_ENDS[rules.overflow])


_RULES_2048 = """\
You play 2048 on a board of {rows} rows and {cols} columns.
A move slides all tiles up, right, down or left as far as they go. Two equal tiles that meet merge into one of twice \
their value, at most once a move, and the score grows by that value. A move that changes nothing is illegal. After \
each move a 2 (9 times in 10) or a 4 appears in a random empty cell. The game ends when no move is legal{goal}.
The board is written row by row, the top row first; a dot is an empty cell."""
_RULES_TETRIS = """\
You place pieces of Tetris on a field of {cols} columns and {rows} rows.
You choose how often the piece is turned clockwise by 90 degrees, and the column of its leftmost cell, counted from 0 \
at the left. The piece then drops straight down.{how} Full rows vanish and count one line each.{scores} {end}
The field is written row by row, the top row first; # is a filled cell."""
_SLIDES = " It may then slide one column to the left or right if the cells there are free, and falls on."
_REACHABLE = (
    " It may also be moved and turned on its way down, as with keys, with the kicks of SRS. So name the row of its "
    "lowest cell at rest, too, counted from 0 at the bottom."
)
_HOLD = " If you say hold, the held piece is placed instead, or the next one if none is held, and this one is held."
_SCORES = {  # by the height of the tallest piece
    4: " One, two, three or four rows at once score 40, 100, 300 or 1200 points.",
    5: " One, two, three, four or five rows at once score 40, 100, 300, 1200 or 1240 points.",
}
_ENDS = {
    "strict": "The game ends when a piece comes to rest with a cell above the field, even if it fills rows.",
    "clear_first": "The game ends when a cell is left above the field after full rows have vanished.",
}


def prompt(observation: Observation, rules: Any, mask: Array) -> str:
    """A position as a question to a language model.

    - `rules`: `env.unwrapped.rules`.
    - `mask`: the environment's action mask.
    """
    legal, names = np.flatnonzero(mask).tolist(), action_names(rules)
    if isinstance(rules, Rules2048):
        rows = [row.split() for row in game2048.to_text(observation).split("/")]
        width = max(len(word) for row in rows for word in row)
        lines = ["Board:", *(" ".join(word.rjust(width) for word in row) for row in rows)]
        lines.append("Legal moves: " + ", ".join(names[action] for action in legal))
        question = "Answer with one move in <answer></answer>."
    else:
        board, *pieces = position(observation, rules).split()
        lines = ["Field:", *board.split("/"), f"Piece: {pieces[0]}"]
        lines += [f"Held: {pieces.pop()[5:] or 'none'}"] if rules.hold else []
        lines += [f"Next: {' '.join(pieces[1:])}"] * bool(pieces[1:])
        if rules.reachable or rules.hold:
            lines += [f"possible: {names[action]}" for action in legal]
            question = "Answer with one of these moves in <answer></answer>."
        else:
            lines += ["The piece in its rotations, and the columns where it fits:", *_rotations(pieces[0], rules, mask)]
            question = (
                "Answer with a rotation and a column in <answer></answer>, as in <answer>rotation R column C</answer>."
            )
            if rules.slides:
                question = question[:-1] + ", and add 'slide left' or 'slide right' to slide it."
    return "\n".join([*lines, question])


def _rotations(piece: str, rules: Any, mask: Array) -> Iterator[str]:
    table = np.asarray(mask).reshape(-1, ROTATIONS, rules.cols)[0]
    for rotation, cells in enumerate(rotations(piece)):
        columns = np.flatnonzero(table[rotation])
        if len(columns):
            shape = [["."] * (1 + max(c for _, c in cells)) for _ in range(1 + max(r for r, _ in cells))]
            for r, c in cells:
                shape[r][c] = "#"
            yield f"rotation {rotation}, columns {columns[0]} to {columns[-1]}:"
            yield from map("".join, shape)


# -- answers ----------------------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """What an answer says.

    - `kind`: `legal`; `illegal`, if it names an action that is not legal or not there; `unreadable`, if it names none.
    - `action`: the action, None if it is unreadable or not there.
    """

    kind: Literal["legal", "illegal", "unreadable"]
    action: int | None


def read_answer(answer: str, rules: Any, mask: Array | Sequence[int]) -> Verdict:
    """The action that a language model's answer names, in time linear in the answer's length.

    From the most decisive kind of statement to the least:

    1. Text in ``<answer>`` tags, in ``\\boxed{}``, or a JSON object with `action`, `move` or `answer`. Of several
       such statements the last one that names an action counts.
    2. Lines after "answer", "move", "action" or "final" and a colon or "is", all of them together.
    3. The whole answer; of a long one the last 4,000 characters.

    - 2048: a direction, whatever its case, or its number, 0 up to 3 left, if the statement is nothing else.
    - Tetris: `rotation 1 column 3`, or `column 3, turned 90°`, with `slide left` or `slid left`, or with `row 2`, and
      with `hold`; without a rotation it is 0. Or the action's number, if the statement is nothing else.

    A statement is read if it names one action. These are unreadable: two directions or two columns, even if one is
    only a reason; a rotation or a slide without its amount, or counterclockwise; a move that is ruled out, "not up".
    The words of `prompt` and `rules_text` name nothing, so a prompt given back is unreadable.

    Raises ValueError for an answer that is no text.
    """
    if not isinstance(answer, str):
        raise ValueError(f"answer is {answer!r}; expected text")
    read = _read_2048 if isinstance(rules, Rules2048) else _read_tetris
    text = answer[-LONGEST - LONGEST_PHRASE :].lower()
    tagged, boxed = re.findall(r"<answer>([^<]*)", text), re.findall(r"\\boxed\{([^{}]*)\}", text)
    announced = re.findall(r"\b(?:answer|move|action|final)\b\W{0,4}(?:is\b|:|=)([^\n]*)", text)
    for statement in (*tagged[::-1], *boxed[::-1], *_json(text)[::-1], "\n".join(announced), text):
        action = read(_decisive(statement), rules)
        if action is not None:
            there = 0 <= action < len(mask)
            return Verdict("legal" if there and mask[action] else "illegal", action if there else None)
    return Verdict("unreadable", None)


def _decisive(statement: str) -> str:
    """A statement with blanks for the phrases that a prompt has, and for moves that are ruled out."""
    for phrases in (_OF_PROMPT, _RULED_OUT):
        statement = phrases.sub(lambda phrase: " " * len(phrase[0]), statement)
    return statement[-LONGEST:]  # half a phrase at the beginning is cut off


_MOVE = rf"\b(?:{'|'.join(ACTIONS)})\b"
_NUMBER = r"(?:(?<=\W)[-−])?\d{1,6}(?:\.\d{1,6})?"  # with what makes it no column: a sign, a fraction
_DEGREES = r"\s{0,3}(?:°|deg(?:rees?)?\b)"
_COLUMN = rf"\bcol(?:umn)?s?\b\W{{0,4}}?({_NUMBER})\b"
_OF_PROMPT = re.compile(
    rf"legal moves: {_MOVE}(?:, {_MOVE})*|all tiles up, right, down or left"
    r"|possible: [^\n]*"
    r"|turned clockwise by 90 degrees|moved and turned|if you say hold|slide one column to the left"
    r"|the piece in its rotations|a rotation and a column"
    r"|rotation r column c|(?:rotation \d+, )?columns \d+ to \d+|'slide left' or 'slide right' to slide it"
)
_RULED_OUT = re.compile(
    r"(?:\b(?:not|cannot|never|avoid|than|instead of)|n['’]t)\s+"
    r"(?:(?:go|going|move|moving|play|playing|choose|choosing|slide|sliding|in|to|the)\s+){0,2}"
    rf"(?:\brot(?:ation)?\W{{0,4}}\d{{1,6}}\W{{1,4}})?[\"'*_]{{0,3}}(?:{_MOVE}|{_COLUMN})"
)


def _json(text: str) -> list[str]:
    statements = []
    for piece in re.findall(r"\{[^{}]*\}", text):
        try:
            content = json.loads(piece)
        except (ValueError, RecursionError):
            continue
        statements += [str(content[name]) for name in ("answer", "move", "action") if name in content]
        if "column" in content:
            statements.append(" ".join(f"{name} {value}" for name, value in content.items()))
    return statements


def _number(statement: str) -> int | None:
    number = re.fullmatch(r"\W*(?<![-−])(\d{1,6})\W*", statement)
    return int(number[1]) if number else None


def _read_2048(statement: str, rules: Any) -> int | None:
    directions = set(re.findall(_MOVE, statement))
    if not directions:
        return _number(statement)
    return ACTIONS.index(directions.pop()) if len(directions) == 1 else None


# Another number after one, as in "column 1 or 2"; a number of degrees is none.
_ANOTHER = rf"(\s{{0,3}}(?:[,/–-]|or\b|and\b|to\b)\s{{0,3}}\d{{1,6}}\b(?!{_DEGREES}))?"
_COLUMNS = re.compile(_COLUMN + _ANOTHER)
_ROTATION = re.compile(r"\b(?:rot(?:at\w{1,8})?|turned)\b")
_AMOUNT = rf"(?:\W{{1,4}}(?:clockwise|by)\b){{0,2}}\W{{0,4}}?({_NUMBER})\b({_DEGREES})?{_ANOTHER}"
_ROTATIONS = re.compile(rf"(?<![\d.])({_NUMBER}){_DEGREES}|{_ROTATION.pattern}{_AMOUNT}")
_COUNTERCLOCKWISE = re.compile(r"\b(?:counter|anti)\W?clockwise\b|\bccw\b")
_ROWS = re.compile(rf"\brow\W{{0,4}}?({_NUMBER})\b{_ANOTHER}")
_SLIDE = re.compile(r"\b(?:slid|slid(?:es?|ed|ing))\b")
_SLIDES_NAMED = re.compile(rf"{_SLIDE.pattern}\W{{0,4}}?({_NUMBER}|left|right|none)\b")
_SLIDES_SAID = {"none": 0, "left": 1, "right": 2, "0": 0, "1": 1, "2": 2}


def _read_tetris(statement: str, rules: Any) -> int | None:
    columns = _COLUMNS.findall(statement)
    if not columns:
        return _number(statement)
    rotations, slides = _ROTATIONS.findall(statement), _SLIDES_NAMED.findall(statement)
    without_amount = (not rotations and _ROTATION.search(statement)) or (not slides and _SLIDE.search(statement))
    rows = _ROWS.findall(statement) if rules.reachable else []
    several = any(another for *_, another in columns + rotations + rows)
    if without_amount or _COUNTERCLOCKWISE.search(statement) or several:
        return None
    named = (
        {_index(number) for number, _ in columns},
        {_turns(alone or number, bool(alone or unit)) for alone, number, unit, _ in rotations} or {0},
        {_SLIDES_SAID.get(word, -1) for word in slides} or {0},
        {_index(number) for number, _ in rows} if rules.reachable else {0},
    )
    if any(len(values) != 1 for values in named):
        return None
    (column,), (rotation,), (slide,), (row,) = named
    height = rules.rows + ABOVE if rules.reachable else 1
    if not 0 <= column < rules.cols or not 0 <= rotation < ROTATIONS or slide < 0 or not 0 <= row < height:
        return -1
    held = rules.hold and re.search(r"\bhold\b", statement) is not None
    action = ((slide * ROTATIONS + rotation) * rules.cols + column) * height + row
    return action + held * (rules.n_actions // 2)


def _index(number: str) -> int:
    """A number as an index; -1 if it has a sign or a fraction."""
    number = number.removesuffix(".0")
    return int(number) if number.isdecimal() else -1


def _turns(number: str, in_degrees: bool) -> int:
    """A rotation from a number of quarter turns or of degrees; -1 if there is none. A number from 4 up is degrees."""
    turns = _index(number)
    if in_degrees or turns >= ROTATIONS:
        return turns // 90 if turns % 90 == 0 else -1
    return turns
