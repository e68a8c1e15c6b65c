"""The single 2048 environment: a thin shell over the rules in `board.py` and `batch.py`."""

import numpy as np

from mergefall.env import ARROWS, GameEnv
from mergefall.game2048 import batch, packed
from mergefall.game2048 import board as core
from mergefall.game2048.board import ILLEGAL, SCORE
from mergefall.game2048.render import Canvas
from mergefall.game2048.rules import Rules
from mergefall.kernels import direct
from mergefall.typing import Bytes, Info

# By action mask a function that makes a fresh array of it, and by rank the tile: look-ups are faster than arithmetic.
_MASKS = tuple(np.array([mask >> action & 1 for action in range(4)], np.int8).copy for mask in range(16))
_TILES = (0, *(1 << rank for rank in range(1, 256)))
_KEYS = {(code,): action for action, code in enumerate(ARROWS)} | {(ord(key),): i for i, key in enumerate("wdsa")}


class Game2048Env(GameEnv):
    """
    ## Description

    2048, by G. Cirulli (2014), exactly. A move slides all tiles of a rows × cols board in one direction. Equal
    neighbours merge: each tile at most once per move, those nearest the wall first. After a move that changed the
    board, a new tile appears on a uniformly drawn empty cell: a 2 with probability 0.9, else a 4. Merges are never
    capped.

    ## Action Space

    `Discrete(4)`:

    - 0: slide up
    - 1: slide right
    - 2: slide down
    - 3: slide left

    An action that would change nothing is *illegal*: it leaves the board and the random stream untouched and pays 0.
    Any other action raises `ValueError`.

    ## Observation Space

    `Box(0, rows·cols + 1, (rows, cols), uint8)` of ranks: log2 of the tile, 0 for an empty cell. No game that begins
    with two tiles exceeds the highest rank. (One that begins from a board whose tiles sum to 2^(rows·cols + 2) or more
    can.)

    ## Starting State

    Two tiles, drawn like new ones. `reset(options={"board": …})` starts from a given board, on which the game is not
    over. An array or nested lists hold ranks within the space (1 for the tile 2). A text holds tiles, with `.` for an
    empty cell and `/` or a line break between rows: `"2 . . 4/…"`.

    `set_starts(pool)` draws each new episode's start from a list of such options.

    ## Rewards

    - `reward="score"`: the sum of the tiles that the move made by merging.
    - `reward="log2"`: log2(1 + that sum).
    - `reward="goal"`: 1 for the move that makes the tile `goal`, else 0.
    - `reward="survival"`: −1 when no move is left, else 0.

    With `shaping`, each step also pays F = γΦ(s′) − Φ(s), where Φ is 0 in a terminal state.

    ## Episode End

    - Terminated when no move is legal, or when a tile reaches `goal`.
    - Truncated after `illegal_limit` illegal actions in a row, or by Gymnasium's `max_episode_steps`.

    ## Information

    `reset` and `step` return:

    - `action_mask`: int8[4], 1 for each action that is legal after the new tile; all ones in a terminal state, because
      samplers need an entry.
    - `score`: int, the score of the game so far, whatever the reward.
    - `max_tile`: int, the largest tile.
    - `legal`: bool, whether the action was legal; True after `reset`.
    - `shaping`: float, F, 0 after `reset`; only with the argument `shaping`.

    ## Arguments

    - `rows`, `cols`: int from 2 to 6, the size of the board; default: 4.
    - `goal`: int, the tile that ends the game, a power of two from 8; default: None, play until no move is legal.
    - `reward`: `"score"` (default), `"log2"`, `"survival"`, or `"goal"`, which needs a `goal`; see Rewards.
    - `illegal_limit`: int ≥ 1, illegal actions in a row that truncate the episode; default: 100.
    - `shaping`: a mapping for potential-based shaping, such as `{"potential": "nneonneo", "gamma": 0.99}`; default:
      None. `mergefall.shaping` describes its keys.
    - `render_mode`: `"ansi"` (coloured text), `"rgb_array"` (uint8[height, width, 3]) or `"human"` (a window); default:
      None.

    All are JSON types. `gymnasium.make_vec("mergefall/Game2048-v0", num_envs=n)` makes the batched environment,
    `Game2048VectorEnv`, with a few more arguments (`mergefall.vector.GameVectorEnv`).

    To play by hand, use `mergefall play` in a shell, or `gymnasium.utils.play.play(env, wait_on_player=True)`: arrow
    keys or W, A, S, D.

    ## Example

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/Game2048-v0")
    >>> obs, info = env.reset(seed=0, options={"board": "2 2 . ./. . . ./. . . ./4 . . ."})
    >>> info["action_mask"]
    array([1, 1, 1, 1], dtype=int8)
    >>> obs, reward, terminated, truncated, info = env.step(3)
    >>> reward, info["score"], info["max_tile"]
    (4.0, 4, 4)
    >>> obs[0, 0], obs[3, 0]
    (np.uint8(2), np.uint8(2))

    ## Version History

    - v0: first version.
    """

    title = "2048 · mergefall"
    rules_type, canvas_type = Rules, Canvas
    derived = "_cells", "_numbers", "_scratch", "_advance", "_pays_score"

    def _bind(self) -> None:
        self._cells = core.cells_of(self._states[0], self.rules.rows, self.rules.cols)
        self._numbers = memoryview(self._states[0])  # pyright: ignore[reportArgumentType]
        self._scratch = packed.lines_for(self.rules.rows, self.rules.cols), np.empty(batch.SCRATCH, np.uint64)
        self._advance = direct(batch.step_one, self._states, 0, *self._scratch)
        self._pays_score = self.rules.reward == "score"

    def _look(self) -> tuple[Bytes, Info]:
        mask, _, top = core.observe(self._states[0])
        info = {"action_mask": _MASKS[mask](), "score": 0, "max_tile": _TILES[top], "legal": True}
        return self._cells.copy(), info

    def _play(self, action: int) -> tuple[Bytes, float, bool, bool, Info]:
        legal, gain, mask, over, top = self._advance(self._states, action, *self._scratch)
        info = {"action_mask": _MASKS[mask](), "score": self._numbers[SCORE], "max_tile": _TILES[top], "legal": legal}
        truncated = not legal and self._numbers[ILLEGAL] >= self._limit
        reward = float(gain)
        if not self._pays_score:
            reward = batch.payment(gain, top, self.rules.goal_rank, self.rules.reward_index, over)
        return self._cells.copy(), reward, over, truncated, info

    def get_keys_to_action(self) -> dict[tuple[int, ...], int]:
        """The keys for `gymnasium.utils.play`: the arrows, and W, A, S, D."""
        return dict(_KEYS)
