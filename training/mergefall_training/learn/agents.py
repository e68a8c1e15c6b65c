"""Trained agents as players: from run folders, from model files, and those that come with the package."""

from __future__ import annotations

import inspect
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mergefall.games import game_of
from mergefall.imports import check_no_import
from mergefall.typing import Options
from mergefall_baselines import Player
from mergefall_baselines.tetris.expectimax import Expectimax
from mergefall_baselines.tetris.greedy import Greedy

from mergefall_training.files import model_file
from mergefall_training.learn import player_maker
from mergefall_training.learn.models import load_model
from mergefall_training.play.preferences import PreferringPlayer

SHIPPED = Path(__file__).parent / "shipped"  # model files that come with the package


def player_at(path: str, model: str = "best", checksum: str | None = None, **options: Any) -> Player:
    """A trained agent from its run folder or model file, as a player.

    Args:
        path: run folder or model file.
        model: which model of a run folder: `best` or `last`.
        checksum: beginning of the expected checksum, so that records and worker processes get the very same model.
        options: options of the agent, if it has any, such as `depth` of an n-tuple network.

    Raises ValueError if the path holds no model, or one with another checksum, or if the agent has no such option.
    """
    found = load_model(_model_file(path, model))
    if checksum is not None and not found.checksum.startswith(checksum):
        raise ValueError(f"{path} has the checksum {found.checksum}; expected {checksum}…: it is another model")
    make_player = player_maker(found.spec["algorithm"])
    known = list(inspect.signature(make_player).parameters)[2:]
    for option in options:
        if option not in known:
            others = ", ".join(["model", "checksum", *known])
            raise ValueError(f"{path} has no option {option!r}; it has {others}")
    if "heuristic" not in options:
        what = f"the network of {path}"
        check_no_import(what, found.spec["network"], expected="only you may name one: the option heuristic")
    try:
        player = make_player(found.spec, found.arrays, **options)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    player.options = {"checksum": found.checksum[:16]}
    return player


def trained_in(path: str, model: str = "best", **options: Any) -> dict[str, Any]:
    """`env_id` and the rules of the environment in which the agent at a path was trained."""
    spec = load_model(_model_file(path, model)).spec
    return {"env_id": spec["env_id"]} | game_of(spec["env_id"]).rules_of(spec["env_kwargs"])


def _shipped(file: str, about: str) -> Callable[..., Player]:
    """A factory of an agent that comes with the package; `mergefall players` shows `about`, its docstring."""
    factory: Any = partial(player_at, str(SHIPPED / file))
    factory.__doc__, factory.plays = about, partial(trained_in, str(SHIPPED / file))
    return factory


# `mergefall_baselines.registry` finds these through the entry point in pyproject.toml.
PLAYERS = {
    "2048/distill": _shipped("2048-distill.npz", "A policy network distilled from an n-tuple network."),
    "tetris/afterstate": _shipped("tetris-afterstate.npz", "Afterstate learning on 10×10, 4 million pieces."),
    "tetris/dqn": _shipped("tetris-dqn.npz", "DQN over afterstates on 10×10, 200,000 pieces."),
    "tetris/distill": _shipped("tetris-distill.npz", "A policy distilled from expectimax, for 10×10 without preview."),
    "tetris/cross-entropy": _shipped("tetris-cross-entropy.npz", "Weights learned by cross-entropy on 10×10."),
    "tetris/sz-afterstate": _shipped(
        "tetris-sz-afterstate.npz", "Afterstate learning on S and Z alone; then CMA-ES for the last layer. No search."
    ),
    "tetris/sz-cross-entropy": _shipped(
        "tetris-sz-cross-entropy.npz", "Expectimax, depth 2, with weights learned for it on S and Z alone."
    ),
}


def _model_file(path: str, model: str) -> Path:
    """`files.model_file`; raises ValueError for what is no model of ours."""
    if _is_of_stable_baselines(path):
        raise ValueError(
            f"{path} is a model of Stable-Baselines3. Such a file runs code as it is loaded, so load it yourself if "
            f"you trust it. In Python, evaluate the model: `evaluate(PPO.load({path!r}), …)`. In a shell, write a "
            "function that returns it, and name that as module:function in place of the path"
        )
    return model_file(path, model)


def _is_of_stable_baselines(path: str) -> bool:
    if not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as file:
            return "policy.pth" in file.namelist()
    except zipfile.BadZipFile:
        return False  # `load_model` says what is wrong


# The option `rewards` of searches by the environment's `reward`, its default first.
COUNTED: dict[str, dict[str, bool | str]] = {"2048": {"score": True, "log2": "log2"}, "tetris": {"lines": True}}


def counted(env_id: str, env_kwargs: Options) -> bool | str | None:
    """What a search counts if it counts the rewards of an environment, its option `rewards`; None if none can.

    None can where a `goal` ends the game, because searches play on.

    >>> counted("mergefall/Game2048-v0", {"reward": "log2"}), counted("mergefall/Tetris-v0", {"reward": "score"})
    ('log2', None)
    """
    if env_kwargs.get("shaping") is not None or env_kwargs.get("goal") is not None:
        return None
    known = COUNTED[game_of(env_id).name]
    return known.get(env_kwargs.get("reward", next(iter(known))))


def counted_by(spec: Options) -> bool | str | None:
    """`counted` for the environment in which a model learned; None, too, if its rewards were shaped."""
    return None if spec.get("shaped") else counted(spec["env_id"], spec["env_kwargs"])


class Agent(PreferringPlayer):
    """A trained policy; `spec` is the model's (`models.Model`)."""

    def __init__(self, spec: Options) -> None:
        self.spec = spec
        kwargs: Options = spec["env_kwargs"]
        self._rules = {name: kwargs[name] for name in game_of(spec["env_id"]).spaces if name in kwargs}
        super().__init__(spec["env_id"], self._rules)

    def with_rules(self, rules: Options) -> Player:
        for name, ours in self._rules.items():
            if name in rules and rules[name] != ours:
                raise ValueError(
                    f"{self.name} was trained with {name}={ours!r}, but the environment has {rules[name]!r}"
                )
        return self


class FromFile:
    """A Tetris player of a model file, mixed into the class that decides.

    It plays by any rules that the class plays by. Rules that no observation shows default to those that it was trained
    with. Its only option is the file's checksum: rules and arrays are no options.
    """

    def __init__(self, spec: Options, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        game = game_of(spec["env_id"])
        self.defaults = {name: spec["env_kwargs"][name] for name in game.rules if name not in game.shown}

    def with_rules(self: Any, rules: Options) -> Player:
        player = super().with_rules(rules)  # pyright: ignore[reportAttributeAccessIssue]
        player.options = self.options
        return player


class GreedyFromFile(FromFile, Greedy):
    """`tetris/greedy` with a learnt heuristic."""


class ExpectimaxFromFile(FromFile, Expectimax):
    """`tetris/expectimax` with a learnt heuristic."""


def heuristic_player(spec: Options, heuristic: Any, depth: int, lost: float, **size: int) -> Player:
    """A Tetris player of a learnt heuristic that looks `depth` own moves ahead.

    `lost` is the value of a lost game to a search. `size` (cols, rows) is given if the heuristic fits only one.
    """
    if depth == 1:
        return GreedyFromFile(spec, heuristic, **size)
    return ExpectimaxFromFile(spec, heuristic, depth, lost=lost, **size)
