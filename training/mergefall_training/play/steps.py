"""Games step by step: one generator, under everything that plays a game in its environment or plays it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from mergefall_baselines import Player
from mergefall_baselines.player import checked, takes_masks


@dataclass(frozen=True)
class Step:
    """A position of a game, or of each game of a batch, and the action that led to it.

    - `observation`, `info`, `reward`, `terminated`, `truncated`: as the environment returned them.
    - `action`: None at the start.
    """

    observation: Any
    info: dict[str, Any]
    action: Any = None
    reward: Any = 0.0
    terminated: Any = False
    truncated: Any = False


Choose = Callable[[Step], Any]  # the action at a step; None: the game is not played on


def steps(env: Any, seed: Any, choose: Choose) -> Iterator[Step]:
    """The steps of a game from ``reset(seed=seed)`` to its end, or until `choose` returns None.

    `env` may be a batch of environments; `seed` is then a list, and actions are arrays.

    >>> import gymnasium as gym, mergefall
    >>> env = gym.make("mergefall/Game2048-v0", rows=2, cols=2)
    >>> [step.action for step in steps(env, 0, recorded([0, 1]))]
    [None, 0, 1]
    """
    observation, info = env.reset(seed=seed)
    step = Step(observation, info)
    yield step
    while not np.all(np.logical_or(step.terminated, step.truncated)):
        action = choose(step)
        if action is None:
            return
        observation, reward, terminated, truncated, info = env.step(action)
        step = Step(observation, info, action, reward, terminated, truncated)
        yield step


def recorded(actions: Iterable[Any]) -> Choose:
    """The actions in their order, then None."""
    left = iter(actions)
    return lambda step: next(left, None)


def chosen_by(player: Player, seed: int) -> Choose:
    """The actions of a player in a game from a seed."""
    state, masked = player.start(seed), takes_masks(player)

    def choose(step: Step) -> int:
        nonlocal state
        masks = {"action_masks": step.info["action_mask"].astype(np.bool_)} if masked else {}
        action, state = player.predict(step.observation, state, **masks)
        return checked(player, action)

    return choose
