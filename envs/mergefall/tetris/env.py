"""The Tetris environment: a thin shell over the rules of `game.py`."""

from itertools import repeat
from typing import Any

import numpy as np

from mergefall.env import GameEnv, Games
from mergefall.kernels import direct
from mergefall.tetris import game
from mergefall.tetris.render import Canvas
from mergefall.tetris.rules import Rules
from mergefall.tetris.seen import LOOK
from mergefall.typing import Bools, Dict, Info

BLOCK = 1 << 15  # bytes; an array that is kept keeps its block
_IDS = tuple(map(np.int64, range(game.KINDS + 1)))  # an array's element takes longer


class TetrisGames(Games):
    """What the single Tetris environment and the batch have in common, besides `Games`."""

    def fatal_actions(self) -> Bools:
        """Whether each action is legal and ends the game: bool[actions].

        >>> import gymnasium as gym, mergefall
        >>> env = gym.make("mergefall/Tetris-v0", cols=4, rows=4).unwrapped
        >>> _ = env.reset(options={"board": "##../##../##../##..", "piece": "O"})
        >>> env.action_masks().nonzero()[0].tolist(), env.fatal_actions().nonzero()[0].tolist()
        ([0, 1, 2], [0, 1])
        """
        return self._own(self.rules.afterstates(self._states)[3])


class PieceGame(Games):
    """What the single environments of both ways to play have in common: a step, and what it shows.

    A step writes into the next row of a block and returns views of it, because making five arrays takes longer than
    playing.
    """

    rules: Any
    derived = "_plan", "_plan_at", "_row", "_rows", "_advance"

    def _bind(self) -> None:
        rules, state, seen = self.rules, self._states[0], self.rules.seen(1)
        self._reach, self._holds, self._matches = rules.reach, rules.hold, rules.matches
        sizes = [part.shape[1] for part in (seen.numbers, seen.boards, seen.masks)]
        self._plan = np.array([state.ctypes.data, state.size, *sizes, rules.reward_index, rules.illegal_limit])
        self._plan_at = self._plan.ctypes.data
        boards = *(2,) * rules.matches, rules.height, rules.cols
        parts = [("numbers", np.int64, sizes[0]), ("boards", np.uint8, boards), ("masks", np.int8, sizes[2])]
        self._row = np.dtype(parts, align=True)
        self._cuts = [
            (rules.numbers | rules.info_numbers).get(name) for name in ("queue", "place", "status", "multiset")
        ]
        self._begin_block()
        self._advance = direct(rules.kernels.step_one, 0, 0, 0, self._reach)

    def _begin_block(self) -> None:
        block = np.empty(1 + BLOCK // self._row.itemsize, self._row)
        first, numbers = block.ctypes.data, block["numbers"]
        parts = (repeat(None) if cut is None else numbers[:, cut] for cut in self._cuts)
        places = range(first, first + block.nbytes, block.itemsize)
        self._rows = zip(places, block["masks"], block["boards"], *parts)  # noqa: B905

    def _look(self) -> tuple[Dict, Info]:
        observation, _, _, _, info = self._play(LOOK)
        return observation, info

    def _play(self, action: int) -> tuple[Dict, float, bool, bool, Info]:
        """See `GameEnv`. All stands here by name, because calls, and adding to a dict, take longer than playing."""
        row = next(self._rows, None)
        if row is None:
            self._begin_block()
            row = next(self._rows)
        at, mask, board, queue, place, status, multiset = row
        found = self._advance(self._plan_at, at, action, self._reach)
        legal, over, truncated, reward, lines, score, pieces, piece, hold, attack, clear, won = found
        if place is None:
            observation = {"board": board, "piece": _IDS[piece], "queue": queue, "hold": _IDS[hold]}
            info = {
                "action_mask": mask,
                "lines": lines,
                "score": score,
                "pieces": pieces,
                "legal": legal,
            }
        else:
            observation = {
                "board": board,
                "piece": _IDS[piece],
                "place": place,
                "status": status,
                "queue": queue,
                "hold": _IDS[hold],
            }
            info = {
                "action_mask": mask,
                "lines": lines,
                "score": score,
                "pieces": pieces,
                "attack": attack,
                "clear": clear,
                "legal": legal,
            }
        if not self._holds:
            del observation["hold"]
        if queue is None:
            del observation["queue"]
        if self._matches:
            (observation["board"], observation["opponent"]), info["won"] = board, won
        if multiset is not None:
            info["multiset"] = multiset
        return observation, reward, over, truncated, info


class TetrisEnv(TetrisGames, PieceGame, GameEnv):
    """
    ## Description

    Tetris as the literature on controllers plays it: one action places one piece. The piece drops straight down from
    above the field in a rotation and column that the player chooses. Full rows are removed, the rows above them move
    down, and the next piece is drawn. There is no gravity, no steering and no clock. Rules: C. Thiery & B. Scherrer
    (`mdptetris`); `mergefall.tetris.place` plays one placement, and `reference.py` states the rules in plain Python.

    - `mergefall/Tetris-v0`: the seven tetrominoes on 10 columns × 20 rows.
    - `mergefall/SZTetris-v0`: S and Z only.
    - `mergefall/Quintris-v0`: six five-cell pieces on 15 × 25; each game draws their proportions and keeps them secret.

    ## Action Space

    - `placements="drop"`: `Discrete(4 · cols)`, action = rotation · cols + column. Drop the piece.
    - `placements="slide"`: `Discrete(12 · cols)`, action = slide · 4 · cols + rotation · cols + column. Drop the piece;
      then slide 0 leaves it, 1 moves it one column left and 2 one column right, if the cells there are free, and it
      falls to rest.
    - `placements="reachable"`: `Discrete(4 · cols · (rows + 4))`, action = (rotation · cols + column) · (rows + 4) + y.
      Bring the piece to rest with its lowest cell y rows above the floor. Every place is legal that moves to the side,
      turns with the kicks of SRS (the Tetris guideline's rotation system) and soft drops lead to from the middle above
      the field, without gravity. `keys_to(action)` is a shortest sequence of keys. action // (rows + 4) is the action
      of "drop".
    - `hold=True`: twice as many actions. With n of the above, action + n places the held piece in the same way, and the
      current piece goes into the hold. While nothing is held, action + n places the first piece of the queue.

    Rotation 0 is the spawn orientation, +1 a quarter turn clockwise. `column` is the piece's leftmost column; of a drop
    and a slide, when it is dropped.

    An action is *illegal* if it lies beyond the wall, uses a rotation that looks like a lower one (O has one rotation,
    and I, S and Z have two), slides where the piece cannot move, ends in the cells of a lower legal action, or is no
    place where the piece can come to rest. An
    illegal action changes neither the game nor the random stream and pays 0. An action outside the space raises
    `ValueError`.

    ## Observation Space

    `Dict` of:

    - `board`: uint8[rows, cols], `Box(0, 1)`: 1 for a filled cell, row 0 on top;
    - `piece`: `Discrete(n)`, the id of the piece to place;
    - `queue`: int64[preview], `MultiDiscrete([n] · preview)`, the ids of the following pieces; absent for `preview=0`;
    - `hold`: `Discrete(n + 1)`, the id of the held piece, n for none; absent with `hold=False`.

    Ids: I O T S Z J L = 0 … 6. `pieces="sz"` keeps them and uses 3 and 4. `pieces="five"`: plus, I5, L5, Y5, U, N =
    0 … 5.

    ## Starting State

    An empty board. `reset(options=…)` starts elsewhere; each option may be left out:

    - `board`: a board without full rows, as an array of 0 and 1 or as text such as `"..../.#../####"`, row 0 on top;
    - `piece`: an id or a name;
    - `queue`: a list of ids or names, one for each previewed piece;
    - `hold`: with `hold=True`, the held piece, an id or a name.

    `set_starts(pool)` draws each new episode's start from a list of such options.

    ## Rewards

    - `reward="lines"`: the number of rows cleared.
    - `reward="score"`: 40, 100, 300, 1200 for one to four rows, as in Nintendo's Tetris (NES, 1989) at level 0; 1240
      for five.
    - With `shaping`, each step also pays F = γΦ(s′) − Φ(s), where Φ is 0 in a terminal state.

    ## Episode End

    Above the field lie as many storage rows as the tallest piece needs.

    - Terminated with `overflow="strict"`: when a piece rests with a cell above the field; nothing is cleared then.
    - Terminated with `overflow="clear_first"`: when a cell is left above the field after full rows are cleared.
    - Truncated: after `illegal_limit` illegal actions in a row. For other caps use Gymnasium's `max_episode_steps`.

    A placement that ends the game is legal.

    ## Information

    `reset` and `step` return:

    - `action_mask`: int8[actions], 1 for each legal action of the new piece; all ones in a terminal state, because
      samplers need an entry;
    - `lines`, `score`, `pieces`: int, rows cleared, their score as above, and pieces placed, whatever the reward;
    - `legal`: bool, whether the action was legal (True after `reset`);
    - `multiset`: int64[n], with `randomizer="hidden"` only: the copies of each piece in the game's secret multiset. It
      is for evaluators; observations never show it;
    - `shaping`: float, with the argument `shaping` only: F; 0 after `reset`.

    ## Arguments

    - `cols`: int from 4 to 16, columns of the field; default: 10.
    - `rows`: int from 4 to 40, rows of the field; default: 20.
    - `pieces`: `"tetromino"` (default), `"sz"` (S and Z only) or `"five"` (the six five-cell pieces).
    - `randomizer`: `"uniform"` (default): independent, all pieces equally likely. `"bag7"`: each piece once before any
      repeats. `"hidden"`: independent, with weights 0 to 10 that each game draws for each piece.
    - `preview`: int from 0 to 8, the number of pieces shown after the current one; default: 1.
    - `placements`: `"drop"` (default), `"slide"` or `"reachable"`; see Action Space. Five-cell pieces have no kicks and
      so no reachable placements.
    - `hold`: bool, whether a piece can be held; default: False. It needs a `preview` of at least 1.
    - `overflow`: `"strict"` (default) or `"clear_first"`; see Episode End.
    - `reward`: `"lines"` (default) or `"score"`; see Rewards.
    - `illegal_limit`: int ≥ 1, illegal actions in a row after which the episode is truncated; default: 100.
    - `shaping`: a mapping for potential-based shaping, such as `{"potential": "bcts", "gamma": 0.99}`; default: None.
      `mergefall.shaping` describes its keys; the terms of the board count.
    - `render_mode`: `"ansi"` (coloured text), `"rgb_array"` (uint8[height, width, 3]) or `"human"` (a window); default:
      None. Cells have their pieces' colours; cells that were given or restored are grey.

    All are JSON types. `gymnasium.make_vec("mergefall/Tetris-v0", num_envs=n)` makes the batched environment,
    `TetrisVectorEnv`, with a few more arguments (`mergefall.vector.GameVectorEnv`).

    ## Example

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/Tetris-v0", cols=4, rows=4)
    >>> start = {"board": "..../..../..../##..", "piece": "O", "queue": ["T"]}
    >>> obs, info = env.reset(seed=0, options=start)
    >>> obs["piece"], obs["queue"], info["action_mask"].sum()
    (np.int64(1), array([2]), np.int64(3))
    >>> obs, reward, terminated, truncated, info = env.step(2)
    >>> obs["board"].tolist(), obs["piece"]
    ([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]], np.int64(2))
    >>> reward, info["lines"], info["score"], info["pieces"]
    (1.0, 1, 40, 1)

    ## Version History

    - v0: first version.
    """

    title = "Tetris · mergefall"
    rules_type, canvas_type = Rules, Canvas

    def keys_to(self, action: int) -> list[int]:
        """Keys that bring the piece of a legal action to rest in its place, without gravity; the last one drops it.

        They are the actions of `mergefall/TetrisKeys-v0`: with soft drops only where they are needed, and then as few
        keys as possible. Raises ValueError for an illegal action, and for a place that keys do not reach.

        >>> import gymnasium as gym, mergefall
        >>> env = gym.make("mergefall/Tetris-v0", cols=6, rows=6, placements="reachable", hold=True).unwrapped
        >>> _ = env.reset(options={"board": "....../....../....../##...#/#....#/##.###", "piece": "O", "queue": ["T"]})
        >>> action = 240 + (2 * 6 + 1) * 10 + 0  # T-spin: stub down, its lowest cell on the floor
        >>> env.action_masks()[action], env.keys_to(action)
        (np.True_, [7, 3, 5, 5, 5, 5, 5, 3, 6])
        """
        from mergefall.tetris.keys.routes import keys_to

        rules, state = self.rules, self._states[0]
        held, _, place = rules.resting(state, rules.action_index(action))
        keys = keys_to(state, held, place) if place[2] >= 0 and rules.pieces != "five" else []
        if not keys:
            raise ValueError(f"action {action} is {'out of the reach of keys' if place[2] >= 0 else 'illegal here'}")
        return keys
