"""Whole games as text: prompts in, answers out, as a Gymnasium wrapper.

>>> import gymnasium as gym, mergefall
>>> from mergefall.text_game import TextGame
>>> env = TextGame(gym.make("mergefall/Game2048-v0", rows=2, cols=2))
>>> observation, info = env.reset(options={"board": "2 ./2 ."})
>>> print(observation.splitlines()[-1])
Answer with one move in <answer></answer>.
>>> observation, reward, terminated, truncated, info = env.step("Both merge. <answer>down</answer>")
>>> reward, info["verdict"]
(4.0, Verdict(kind='legal', action=2))
>>> print(env.step("left or right?")[0].splitlines()[0])
No move could be read in this answer. Try again.
"""

import string
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Text
from gymnasium.utils import RecordConstructorArgs

from mergefall.checks import integer, number
from mergefall.text import in_words, position, prompt, read_answer, rules_text
from mergefall.typing import Dict

CHARACTERS = frozenset(string.printable + "°×")
LONGEST_PROMPT, LONGEST_ANSWER = 1 << 18, 4_000  # with hold 5,632 placements of up to 43 characters can be reachable
FAULTS = {
    "illegal": "This is not a legal move. Try again.",
    "unreadable": "No move could be read in this answer. Try again.",
}


class TextGame(gym.Wrapper[str, str, Any, Any], RecordConstructorArgs):
    """An environment of mergefall whose observations are prompts and whose actions are answers.

    - Observation space: `Text`. `mergefall.text.prompt` of the position; after the end of the game, the position in one
      line and "The game is over."
    - Action space: `Text`. `mergefall.text.read_answer` reads the answer, which may be longer than the space says and
      have any character.
    - An illegal or unreadable answer leaves the game as it is and earns `-penalty`; the next prompt begins with a line
      that says so. After `patience` such answers in a row the episode is truncated.
    - `info`: the environment's, and `verdict`. After a fault `legal` is False, and `shaping`, if there is any, 0.

    Args:
        env: made by `gym.make` with an id of mergefall.
        rules: whether each prompt begins with the rules (`mergefall.text.rules_text`).
        penalty: from 0 up.
        patience: from 1 up.

    Raises ValueError for wrong arguments, and for another environment, as one of Tetris by keys.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        *,
        rules: bool = False,
        penalty: float = 0.0,
        patience: int = 3,
    ) -> None:
        inner: Any = env.unwrapped
        if not hasattr(inner, "rules") or not hasattr(inner, "afterstates"):
            raise ValueError(f"env is {env}; expected an environment of mergefall")
        RecordConstructorArgs.__init__(self, rules=rules, penalty=penalty, patience=patience)
        gym.Wrapper.__init__(self, env)
        self.penalty, self.patience = number("penalty", penalty, 0, float("inf")), integer("patience", patience, 1)
        self._rules = in_words(inner.rules)
        self._info: Dict = {}
        self._head = f"{rules_text(inner.rules)}\n\n" if rules else ""
        self.observation_space = Text(LONGEST_PROMPT, charset=CHARACTERS)
        self.action_space = Text(LONGEST_ANSWER, min_length=0, charset=CHARACTERS)

    def reset(self, *, seed: int | None = None, options: Dict | None = None) -> tuple[str, Dict]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._faults, self._seen, self._info = 0, self._prompt(observation, info), info
        return self._seen, self._told()

    def step(self, action: str) -> tuple[str, float, bool, bool, Dict]:
        if not self._info:
            raise gym.error.ResetNeeded("call reset before the first step")
        verdict = read_answer(action, self._rules, self._info["action_mask"])
        if verdict.kind != "legal" or verdict.action is None:
            self._faults += 1
            unpaid = {"shaping": 0.0} if "shaping" in self._info else {}
            info = self._told() | {"legal": False, "verdict": verdict} | unpaid
            return f"{FAULTS[verdict.kind]}\n{self._seen}", -self.penalty, False, self._faults >= self.patience, info
        game: Any = self.env
        observation, reward, terminated, truncated, info = game.step(np.int64(verdict.action))
        if terminated:
            self._seen = f"{position(observation, self._rules)}\nThe game is over."
        else:
            self._seen = self._prompt(observation, info)
        self._faults, self._info = 0, info
        return self._seen, float(reward), terminated, truncated, self._told() | {"verdict": verdict}

    def _told(self) -> Dict:
        """The environment's info; who changes its mask does not change ours."""
        return self._info | {"action_mask": self._info["action_mask"].copy()}

    def _prompt(self, observation: Any, info: Dict) -> str:
        return self._head + prompt(observation, self._rules, info["action_mask"])
