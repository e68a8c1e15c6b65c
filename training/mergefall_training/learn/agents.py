"""Trained agents as players: what a run folder or a model file holds, behind the protocol that search players have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from mergefall.games import batch_of_one, game_of
from mergefall_baselines import Player, make
from mergefall_baselines.player import check_values
from mergefall_baselines.tetris.expectimax import Expectimax
from mergefall_baselines.tetris.greedy import Greedy
from numpy.typing import NDArray

from mergefall_training.learn import player_maker
from mergefall_training.learn.models import load_model
from mergefall_training.learn.run import model_file

SHIPPED = Path(__file__).parent / "shipped"  # those that come with the package


def agent(path: str, model: str = "best", checksum: str | None = None, **options: Any) -> Player:
    """A trained agent, from its run folder or its model file; it plays the legal move that it thinks best.

    `model` is the `best` or the `last` one of a folder. `checksum`, the beginning of a model's, makes sure that it is
    that very one: records carry it, and other processes are told it. Further `options` are the player's, where it has
    any (`depth` and so on of an n-tuple network). What is no model of ours is a ValueError.
    """
    found = load_model(model_file(path, model))
    if checksum is not None and not found.checksum.startswith(checksum):
        raise ValueError(f"{path} has the checksum {found.checksum}; expected {checksum}…: it is another model")
    make_player = player_maker(found.spec["algorithm"])
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


def player_at(path: str, model: str = "best", checksum: str | None = None, **options: Any) -> Player:
    """The trained agent in a run folder (its `best` or its `last` model) or in a model file; `options` are its own."""
    return agent(path, model, checksum, **options)


def _shipped(file: str, about: str) -> Callable[..., Player]:
    """What makes an agent that comes with the package; `about` says in a line which one it is."""

    def factory(checksum: str | None = None, **options: Any) -> Player:
        return agent(str(SHIPPED / file), checksum=checksum, **options)

    factory.__doc__ = about
    return factory


# Found by `mergefall_baselines.registry` through the entry point in pyproject.toml.
PLAYERS = {
    "2048/maskable-ppo": _shipped("2048-maskable-ppo.npz", "MaskablePPO after 3 million steps, shaped by nneonneo."),
    "tetris/afterstate": _shipped("tetris-afterstate.npz", "Afterstate learning on 10×10, 4 million pieces."),
    "tetris/dqn": _shipped("tetris-dqn.npz", "DQN over afterstates on 10×10, 200,000 pieces."),
    "tetris/cross-entropy": _shipped("tetris-cross-entropy.npz", "Weights learnt by cross-entropy on 10×10."),
    "tetris/sz-afterstate": _shipped(
        "tetris-sz-afterstate.npz", "Afterstate learning from S and Z alone, without search."
    ),
    "tetris/sz-cross-entropy": _shipped(
        "tetris-sz-cross-entropy.npz", "Expectimax 2 by weights that were learnt for it from S and Z alone."
    ),
}


def trained_in(path: str) -> tuple[str, dict[str, Any]]:
    """The environment that the agent at a path was trained in: its id, and its arguments as far as they are rules."""
    spec = load_model(model_file(path)).spec
    return spec["env_id"], game_of(spec["env_id"]).rules_of(spec["env_kwargs"])


class Agent(Player):
    """A policy that gives each action a preference; the legal one with the highest is played, the first of equal ones.

    A subclass has `preferences`. `spec` is what the model says of itself (`models.Model`).
    """

    batched = True

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        kwargs: Mapping[str, Any] = spec["env_kwargs"]
        game = game_of(spec["env_id"])
        self._rules = {name: kwargs[name] for name in game.spaces if name in kwargs}
        # Which actions are legal, the random player knows: they are worth 0 to it, the others −∞.
        self._any = make(f"{game.name}/random").with_rules(self._rules)

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
        found = self.preferences(batch_of_one(observation) if single else observation)
        values = legal + found.reshape(legal.shape)
        check_values(self.name, values)
        return values

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.int64], Any]:
        """The chosen action, as `Player.predict` says; it remembers nothing."""
        return np.asarray(self.values(observation).argmax(axis=-1)), None


class FromFile:
    """A Tetris player of a model file, mixed into the class that decides.

    It plays by any rules that the class plays by. Rules that no observation shows default to those that it was trained
    with. Its only option is the file's checksum: rules and arrays are no options.
    """

    def __init__(self, spec: Mapping[str, Any], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        game = game_of(spec["env_id"])
        self.defaults = {name: spec["env_kwargs"][name] for name in game.rules if name not in game.shown}

    def __copy__(self) -> Any:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def with_rules(self: Any, rules: Mapping[str, Any]) -> Player:
        player = super().with_rules(rules)  # pyright: ignore[reportAttributeAccessIssue]
        player.options = self.options
        return player


class GreedyFromFile(FromFile, Greedy):
    """`tetris/greedy` with a learnt heuristic."""


class ExpectimaxFromFile(FromFile, Expectimax):
    """`tetris/expectimax` with a learnt heuristic."""


def heuristic_player(spec: Mapping[str, Any], heuristic: Any, depth: int, lost: float, **size: int) -> Player:
    """A Tetris player of a learnt heuristic that looks `depth` own moves ahead.

    `lost` is the value of a lost game to a search. `size` (cols, rows) is given if the heuristic fits only one.
    """
    if depth == 1:
        return GreedyFromFile(spec, heuristic, **size)
    return ExpectimaxFromFile(spec, heuristic, depth, lost=lost, **size)
