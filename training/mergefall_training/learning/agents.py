"""Trained agents as players: what a run folder or a model file holds, behind the protocol that search players have."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mergefall_baselines import Player, make
from mergefall_baselines.player import check_values
from numpy.typing import NDArray

from mergefall_training.learning import learner
from mergefall_training.learning.models import load_model
from mergefall_training.learning.runs import model_file

SHIPPED = Path(__file__).parents[1] / "agents"  # those that come with the package
SHAPES = ("rows", "cols", "pieces", "preview", "placements")  # rules that an agent's network is made for

NO_RULES = ("reward", "shaping", "illegal_limit", "render_mode")


def agent(path: str, model: str = "best", checksum: str | None = None, **options: Any) -> Player:
    """A trained agent, from its run folder or its model file; it plays the legal move that it thinks best.

    `model` is the `best` or the `last` one of a folder. `checksum`, the beginning of a model's, makes sure that it is
    that very one: records carry it, and other processes are told it. Further `options` are the player's, where it has
    any (`depth` and so on of an n-tuple network). What is no model of ours is a ValueError.
    """
    found = load_model(model_file(path, model))
    if checksum is not None and not found.checksum.startswith(checksum):
        raise ValueError(f"{path} has the checksum {found.checksum}; expected {checksum}…: it is another model")
    make_player = learner(found.spec["algorithm"]).player
    known = list(inspect.signature(make_player).parameters)[2:]
    for option in options:
        if option not in known:
            others = ", ".join(["model", "checksum", *known])
            raise ValueError(f"{path} has no option {option!r}; it has {others}")
    try:
        player = make_player(found.spec, found.arrays, **options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    player.options = {"checksum": found.checksum[:16]}
    return player


def trained_in(path: str) -> tuple[str, dict[str, Any]]:
    """The environment that the agent at a path was trained in: its id, and its arguments as far as they are rules."""
    spec = load_model(model_file(path)).spec
    return spec["env_id"], {name: value for name, value in spec["env_kwargs"].items() if name not in NO_RULES}


class Agent(Player):
    """A policy that gives each action a preference; the legal one with the highest is played, the first of equal ones.

    A subclass has `preferences`. `spec` is what the model says of itself (`models.Model`).
    """

    batched = True

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        kwargs: Mapping[str, Any] = spec["env_kwargs"]
        self._rules = {name: kwargs[name] for name in SHAPES if name in kwargs}
        # Which actions are legal, the random player knows: they are worth 0 to it, the others −∞.
        self._any = make("2048/random" if "Game2048" in spec["env_id"] else "tetris/random").with_rules(self._rules)

    def preferences(self, observation: Any) -> NDArray[np.floating[Any]]:
        """How much each action is preferred, float[n, actions] for a batch of observations, legal or not."""
        raise NotImplementedError

    def with_rules(self, rules: Mapping[str, Any]) -> Player:
        for name, ours in self._rules.items():
            if name in rules and rules[name] != ours:
                raise ValueError(
                    f"{self.name} was trained with {name}={ours!r}, but the environment has {rules[name]!r}"
                )
        return self

    def values(self, observation: Any, state: Any = None) -> NDArray[np.float64]:
        """The preferences, float64[n_actions] (batched: [n, n_actions]); -inf where illegal."""
        legal = self._any.values(observation)  # its shape tells a batch, too
        single = legal.ndim == 1
        found = self.preferences(_batch_of_one(observation) if single else observation)
        values = legal + found.reshape(legal.shape)
        check_values(self.name, values)
        return values

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.int64], Any]:
        """The chosen action, as `Player.predict` says; it remembers nothing."""
        return np.asarray(self.values(observation).argmax(axis=-1)), None


def _batch_of_one(observation: Any) -> Any:
    if isinstance(observation, Mapping):
        return {name: np.asarray(part)[None] for name, part in observation.items()}
    return np.asarray(observation)[None]
