"""The Tetris environment of matches: one side plays by keys, any player is its opponent."""

from importlib.metadata import entry_points
from typing import Any

from mergefall.env import Games
from mergefall.tetris.game import OPPONENTS_KEY
from mergefall.tetris.keys.env import TetrisKeysEnv
from mergefall.tetris.versus.render import Canvas
from mergefall.tetris.versus.rules import Rules
from mergefall.typing import Dict, Info


class Matches(Games):
    """What the single environment of matches and the batch have in common: opponents, played by any player."""

    def __init__(self, *values: Any, **arguments: Any) -> None:
        super().__init__(*values, **arguments)
        (maker,) = entry_points(group="mergefall.opponents", name="player")
        self._rival = maker.load()(self.rules.opponent, self.rules.side)

    def _answer(self) -> None:
        """Write the opponents' next keys into the states."""
        turned = self.rules.turned(self._states)
        self._states[:, turned.shape[1] // 2 + OPPONENTS_KEY] = self._rival.keys(
            turned, self.rules.observations(turned)
        )


class TetrisVersusEnv(Matches, TetrisKeysEnv):
    """
    ## Description

    A match of Tetris by keys against any player. Both sides press one key a step. What a side's clears are worth rises
    as garbage on the other side, less what cancels the garbage that waits there. Who tops out first loses.

    `TetrisKeysEnv` describes the game of a side: keys, gravity, lock delay, attack.

    ## Action Space

    That of `mergefall/TetrisKeys-v0`.

    ## Observation Space

    That of `mergefall/TetrisKeys-v0`, and `opponent`: uint8[rows + 4, cols], the opponent's locked cells. The number of
    rows that will rise stands in `status`.

    ## Starting State

    Two empty boards. Both sides draw the same pieces; the holes in their garbage differ. The options of `reset` hold
    for the own side.

    ## Rewards

    - `reward="win"` (default): 1 if the opponent tops out, −1 if the own side does, 0 if both do at once, and before.
    - `"lines"`, `"score"`, `"attack"`: as in `mergefall/TetrisKeys-v0`, of the own side.

    ## Episode End

    Terminated when a side tops out. Two strong players may play on for ever: pass `max_episode_steps`.

    ## Information

    That of `mergefall/TetrisKeys-v0`, and `won`: int, 1, −1 or 0 as the reward "win".

    ## Arguments

    Those of `mergefall/TetrisKeys-v0`, for both sides. `garbage` also says how the rows that are sent look; None stands
    for `{"rows": 0}`. And:

    - `opponent`: a player's name, or a mapping of `player` and options, as `mergefall_baselines.make` takes them; or an
      object with Stable-Baselines3's `predict`. It sees what `mergefall/TetrisKeys-v0` shows, and `opponent`. Default:
      `"tetris/keys"`, which needs the package `mergefall_baselines`.

    `clone_state` holds both games, but not what an opponent remembers apart from them. `afterstates` are those in which
    the opponent waits.

    `gymnasium.make_vec("mergefall/TetrisVersus-v0", num_envs=n)` makes the batched environment.
    `mergefall.tetris.versus.parallel.parallel_env` is the match for two agents, as PettingZoo's `ParallelEnv`.

    ## Example

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/TetrisVersus-v0", opponent={"player": "tetris/keys", "of": "tetris/bcts"})
    >>> obs, info = env.reset(seed=0)
    >>> for _ in range(20):
    ...     obs, reward, terminated, truncated, info = env.step(0)  # wait
    >>> obs["opponent"].sum(), info["won"]
    (np.uint64(10), 0)

    ## Version History

    - v0: first version.
    """

    title = "Tetris versus · mergefall"
    rules_type, canvas_type = Rules, Canvas

    def step(self, action: int) -> tuple[Dict, float, bool, bool, Info]:
        """Play one key, and let the opponent play one: (observation, reward, terminated, truncated, info)."""
        action = self.rules.action_index(action)
        self._answer()
        return super().step(action)
