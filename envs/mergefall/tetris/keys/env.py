"""The Tetris environment by keys: a thin shell over the rules of `game.py`."""

from typing import ClassVar

from mergefall.env import ARROWS, GameEnv
from mergefall.tetris.env import PieceGame
from mergefall.tetris.keys.render import Canvas
from mergefall.tetris.keys.rules import KEYS, Rules
from mergefall.typing import Dict

_PRESSED = dict(zip(ARROWS, ("clockwise", "right", "soft drop", "left"), strict=True))
_PRESSED |= {ord("x"): "clockwise", ord("z"): "counterclockwise", ord("a"): "half turn"}
_PRESSED |= {ord(" "): "hard drop", ord("c"): "hold", ord("e"): "hold"}


class TetrisKeysEnv(PieceGame, GameEnv):
    """
    ## Description

    Tetris as people play it: pieces fall, and each step is one key. Pieces turn by SRS with its kicks, a lock delay
    lets them slide and tuck, one piece can be held, and T-spins, back-to-back chains, combos and perfect clears count.
    Rules: the Tetris Guideline; attack: the table of Jstris. `keys/reference.py` states the rules in plain Python.

    Where they are not the Guideline's: time passes in steps, and a soft drop is one row; a piece appears just above the
    field and does not fall at once; four rows above the field are kept, not twenty; a piece that has not moved since it
    landed, and every piece with `lock_resets=0`, locks by the delay alone; every level takes ten lines; half turns,
    `preview` and garbage are options.

    ## Action Space

    `Discrete(8)`, with `rotate_180=True` `Discrete(9)`: 0 wait, 1 left, 2 right, 3 rotate clockwise, 4 rotate
    counterclockwise, 5 soft drop, 6 hard drop, 7 hold, 8 rotate by 180° (in place: SRS has no kicks for it).

    A step is one key, then one tick of the clock: the piece falls by `gravity`, and a piece that has rested for more
    than `lock_delay` steps locks. No key is illegal: one that changes nothing, as left beside the wall, is a wait. Its
    entry of `info["action_mask"]` is 0; those of wait and hard drop are always 1. An action outside the space raises
    `ValueError`.

    ## Observation Space

    `Dict` of:

    - `board`: uint8[rows + 4, cols], `Box(0, 1)`: 1 for a locked cell, row 0 on top. The first four rows lie above the
      visible field;
    - `piece`: `Discrete(7)`, the id of the falling piece: I O T S Z J L = 0 … 6;
    - `place`: int64[3], where it is: rotation from 0 to 3, its leftmost column, and the rows between the floor and its
      lowest cell;
    - `hold`: `Discrete(8)`, the id of the held piece, 7 for none; absent with `hold=False`;
    - `queue`: int64[preview], `MultiDiscrete([7] · preview)`, the ids of the following pieces; absent for `preview=0`;
    - `status`: int64[10], what else a player of the game knows: whether this piece was held (0 or 1); whether its last
      move was a turn (1) by the fifth test (2); the fraction of a row that it has fallen, in 1/65536; steps at rest;
      resets of the lock delay; the lowest row that it has reached; locks in a row that cleared lines; whether a
      back-to-back chain is on; rows of garbage that will rise; the level.

    ## Starting State

    An empty board, the first piece just above the field. A seed fixes the order of the pieces, whatever is played.
    `reset(options=…)` starts elsewhere; each option may be left out: `board`, the visible rows or all, without full
    rows, as an array of 0 and 1 or as text; `piece`, `queue` and `hold`, ids or names. `set_starts(pool)`
    draws each new episode's start from a list of such options.

    ## Rewards

    - `reward="lines"`: the number of rows cleared.
    - `reward="score"`: the guideline's points, times the level: 100, 300, 500, 800 for one to four rows; T-spins 400,
      800, 1200, 1600 for none to three; mini T-spins 100, 200, 400; half as much again for back-to-back; 50 for each
      further clear of a combo; 800, 1200, 1800, 2000 more for a perfect clear, 3200 by a back-to-back tetris. A soft
      drop pays 1 a row, a hard drop 2.
    - `reward="attack"`: rows of garbage by Jstris's table: 0, 1, 2, 4 for one to four rows; T-spins 2, 4, 6, mini 0 and
      4; 1 more for back-to-back; 10 instead for a perfect clear; and 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5 more for the
      combo.

    ## Episode End

    Terminated when a piece appears on filled cells (block out), locks wholly above the field (lock out), or garbage
    pushes cells out of the four rows above the field (top out). Never truncated by itself: with `gravity=0` nothing
    falls by itself, so pass `max_episode_steps`.

    ## Information

    - `action_mask`: int8[keys], 1 for keys that change something; all 1 once the game is over.
    - `lines`, `score`, `pieces`, `attack`: int, totals of the episode.
    - `clear`: int, what this step's lock was; `mergefall.tetris.keys.CLEARS[clear]` is its name, such as
      `"T-spin double"`, and `""` for nothing.
    - `legal`: bool, whether the key's mask was 1.
    - `shaping`, with `shaping` only: F; 0 after `reset`.

    ## Arguments

    - `cols`: int from 4 to 16; default: 10. `rows`: int from 4 to 36, the visible rows; default: 20.
    - `pieces`: `"tetromino"` (default) or `"sz"` (S and Z only).
    - `randomizer`: `"bag7"` (default): each piece once before any repeats; or `"uniform"`.
    - `preview`: int from 0 to 6, the number of pieces shown after the current one; default: 5.
    - `hold`: bool, whether a piece can be held; default: True.
    - `gravity`: float from 0 to 64, rows a step; fractions add up, to within 1/65536. Default: 0.02. With 0 no time
      passes: nothing falls or locks by itself.
    - `lock_delay`: int from 0 to 1022, steps that a piece may rest before it locks; default: 30.
    - `lock_resets`: int from 0 to 255, how many moves and turns of a piece that has landed begin the delay anew; after
      the last one it locks as soon as it rests. Only falling below the lowest row that it has reached gives them back.
      With 0 the delay counts all steps at rest. Default: 15.
    - `rotate_180`: bool, whether there is a key for half turns; default: False.
    - `levels`: bool, whether every ten lines raise the level, from 1 to 20. Then `gravity` is ignored, and a row takes
      the guideline's (0.8 − 0.007 · (level − 1))^(level − 1) seconds of 60 steps. Default: False.
    - `garbage`: a mapping of `rows` (float from 0 to 15, rows for each piece that locks), `holes` (int from 1 to
      cols − 1, default: 1) and `moves` (the probability that the hole of a row is elsewhere than that below; default:
      0.3); default: None. Garbage waits
      until a piece locks that clears nothing; attack cancels it.
    - `reward`: `"lines"` (default), `"score"` or `"attack"`.
    - `shaping`: a mapping for potential-based shaping, such as `{"potential": "bcts", "gamma": 0.99}`; default: None.
      The potential is of the settled board. See `mergefall.shaping`.
    - `render_mode`: `"ansi"` (coloured text), `"rgb_array"` (uint8[height, width, 3]) or `"human"` (a window); default:
      None. Outlines show where the piece would land. Two rows above the field are shown. A red bar is as high as the
      garbage that will rise. Cells have their pieces' colours; garbage, and cells that were given or restored, are
      grey.

    All are JSON types. `gymnasium.make_vec("mergefall/TetrisKeys-v0", num_envs=n)` makes the batched environment,
    `TetrisKeysVectorEnv`, with a few more arguments (`mergefall.vector.GameVectorEnv`).

    To play by hand, use `mergefall play mergefall/TetrisKeys-v0` in a shell, or `gymnasium.utils.play.play(env,
    fps=12)`, which repeats a key in every step in which it is held. Arrow keys: up turns clockwise, down is a soft
    drop. Space: hard drop; Z and X: turn counterclockwise and clockwise; A: turn by 180°; C or E: hold.

    ## Example

    >>> import gymnasium as gym, mergefall
    >>> from mergefall.tetris.keys import CLEARS
    >>> env = gym.make("mergefall/TetrisKeys-v0", cols=4, rows=4, reward="attack")
    >>> start = {"board": "..../..../..../###.", "piece": "I", "queue": ["L", "O", "T", "S", "Z"]}
    >>> obs, info = env.reset(seed=0, options=start)
    >>> obs["piece"], obs["place"], info["action_mask"]
    (np.int64(0), array([0, 0, 4]), array([1, 0, 0, 1, 1, 1, 1, 1], dtype=int8))
    >>> for key in (3, 2, 6):  # clockwise, right, hard drop
    ...     obs, reward, terminated, truncated, info = env.step(key)
    >>> reward, CLEARS[info["clear"]], info["lines"]
    (0.0, 'single', 1)

    ## Version History

    - v0: first version.
    """

    metadata: ClassVar[Dict] = GameEnv.metadata | {"render_fps": 60}
    title = "Tetris by keys · mergefall"
    rules_type, canvas_type = Rules, Canvas

    def get_keys_to_action(self) -> dict[tuple[int, ...], int]:
        """The keys for `gymnasium.utils.play`: arrows, space, Z and X to turn, A for half a turn, C or E to hold."""
        return {(key,): KEYS.index(name) for key, name in _PRESSED.items() if KEYS.index(name) < self._actions}
