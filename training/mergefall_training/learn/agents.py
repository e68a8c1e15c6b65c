"""Trained agents as players: from run folders, from model files, and those that come with the package."""

import inspect
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mergefall.checks import in_place, known
from mergefall.games import game_of
from mergefall.typing import Dict, Options
from mergefall_baselines import Player
from mergefall_baselines.kernel_player import KernelPlayer

from mergefall_training.files import model_file
from mergefall_training.learn import player_maker
from mergefall_training.learn.models import load_model

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
    loaded = load_model(_model_file(path, model), options)
    if checksum is not None and not loaded.checksum.startswith(str(checksum)):
        raise ValueError(f"{path} has the checksum {loaded.checksum}; expected {checksum}…: it is another model")
    make_player = player_maker(loaded.spec["algorithm"])
    known(path, options, ["model", "checksum", *list(inspect.signature(make_player).parameters)[2:]])
    with in_place(path):
        player = make_player(loaded.spec, loaded.arrays, **options)
    player.options = {"checksum": loaded.checksum[:16]}
    return player


def trained_in(path: str, model: str = "best", **options: Any) -> Dict:
    """`env_id` and the rules of the environment in which the agent at a path was trained."""
    spec = load_model(_model_file(path, model)).spec
    return {"env_id": spec["env_id"]} | game_of(spec["env_id"]).rules_of(spec["env_kwargs"])


def _shipped(file: str, about: str, options: str = "") -> Callable[..., Player]:
    """A factory of an agent that comes with the package; its docstring begins with `about` and has its own options."""
    path = str(SHIPPED / file)
    factory: Any = partial(player_at, path)
    factory.plays = partial(trained_in, path)
    factory.__doc__ = f"""{about}

    Args:{options}
        model: ignored, because the agent is a single file.
        checksum: beginning of the expected checksum of the file, so that records and worker processes get the very same
            agent. Raises ValueError for another one.
    """
    return factory


DEPTH = """
        depth: int ≥ 1, own moves of its search. Default: {}."""
DEVICE = """
        device: of PyTorch, such as ``cuda``. Default: the processor."""


# `mergefall_baselines.registry` finds these through the entry point in pyproject.toml.
PLAYERS = {
    "2048/distill": _shipped(
        "2048-distill.npz",
        """A policy network distilled from an n-tuple network, for 4×4. No search; needs the extra `train`.

    It learned 40 million steps, half of them from the strong n-tuple network and half from its search of two own moves.
    `values` are log-probabilities.""",
        DEVICE,
    ),
    "tetris/afterstate": _shipped(
        "tetris-afterstate.npz",
        """Afterstate learning on 10×10: the placement with the highest r + γV(afterstate). No search.

    It learned from 4 million pieces, without preview.""",
    ),
    "tetris/dqn": _shipped(
        "tetris-dqn.npz",
        """DQN over afterstates, for 10×10 alone. No search; needs the extra `train`.

    It learned from 200,000 pieces.""",
        DEVICE,
    ),
    "tetris/distill": _shipped(
        "tetris-distill.npz",
        """A policy distilled from expectimax, for 10×10 without preview. No search; needs the extra `train`.

    It learned from 4 million pieces. `values` are log-probabilities.""",
        DEVICE,
    ),
    "tetris/cross-entropy": _shipped(
        "tetris-cross-entropy.npz",
        """Weights of the features of dt-10, learned by cross-entropy on 10×10: a one-piece controller.""",
        DEPTH.format(1),
    ),
    "tetris/sz-afterstate": _shipped(
        "tetris-sz-afterstate.npz",
        """Afterstate learning on S and Z alone, then CMA-ES for the last layer. No search.

    It was trained on 10×20 without preview.""",
    ),
    "tetris/sz-cross-entropy": _shipped(
        "tetris-sz-cross-entropy.npz",
        """Weights of the features of dt-10, learned by cross-entropy on S and Z alone, for a search of two moves.

    It was trained on 10×20.""",
        DEPTH.format(2),
    ),
}


def _model_file(path: str, model: str) -> Path:
    """`files.model_file`; raises ValueError for what is no model of ours."""
    try:
        with zipfile.ZipFile(path) as file:
            names = file.namelist()
    except (OSError, zipfile.BadZipFile):
        names = []  # `load_model` says what is wrong
    if "policy.pth" in names:
        raise ValueError(
            f"{path} is a model of Stable-Baselines3. Such a file runs code as it is loaded, so load it yourself if "
            f"you trust it. In Python, evaluate the model: `evaluate(PPO.load({path!r}), …)`. In a shell, write a "
            "function that returns it, and name that as module:function in place of the path"
        )
    return model_file(path, model)


# The option `rewards` of searches by the environment's `reward`.
COUNTED: dict[str, dict[str, bool | str]] = {"2048": {"score": True, "log2": "log2"}, "tetris": {"lines": True}}


def counted_by(spec: Options) -> bool | str | None:
    """The option `rewards` of a search that counts the rewards that a model learned from; None if no search can.

    None can where rewards were shaped, or where a `goal` ends the game, because searches play on.
    """
    kwargs: Options = spec["env_kwargs"]
    if spec.get("shaped") or kwargs.get("shaping") or kwargs.get("goal"):
        return None
    return COUNTED.get(game_of(spec["env_id"]).name, {}).get(kwargs["reward"])


def of_file(player: KernelPlayer, spec: Options) -> Player:
    """A player that a model file has made: its only option is the file's checksum, whatever rules it meets.

    Rules that no observation shows default to those that the model was trained with.
    """
    game = game_of(spec["env_id"])
    player.rules_are_options = False
    hidden = set(game.arguments("game")) - set(game.arguments("observations"))
    player.defaults = {name: spec["env_kwargs"][name] for name in hidden}
    return player
