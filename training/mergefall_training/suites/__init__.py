"""Suites: which players play which games from which seeds, read from small YAML files.

A suite holds one or more games; a game is an environment (id, kwargs, cap), the number of episodes, the first seed, and
the players that all play from the same seeds::

    description: What the suite is for.
    games:
      - name: 2048-2x3
        env: mergefall/Game2048-v0
        env_kwargs: {rows: 2, cols: 3}      # may be left out, as may the next three
        max_episode_steps: 10000            # no cap
        seed: 0                             # 0
        baseline: random                    # the label of the player that the others are compared with
        episodes: 100
        players:
          - player: 2048/greedy
            options: {heuristic: nneonneo}  # may be left out, as may the next two
            label: greedy by nneonneo       # player and options
            episodes: 30                    # the game's: for players that take long
          - train: {algorithm: maskable-ppo, timesteps: 200000, seeds: 3}
            label: MaskablePPO              # the algorithm

In place of a player, ``train`` says how agents are trained for the comparison, one for each training seed from 0 on.
What it leaves out is the preset's: ``timesteps``, ``interval``, ``hyperparameters``, ``max_episode_steps``, and
``env_kwargs`` beside the game's, such as a reward or ``shaping``; what they play afterwards is the game itself. Its
``episodes`` (30) are those of each point of the learning curve.

``env`` may not name a module to import (``module:name``): a suite may come from somebody else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from mergefall.checks import id_of_file

from mergefall_training.yaml_numbers import load_yaml

FOLDER = Path(__file__).parent
_REQUIRED: Any = object()


@dataclass(frozen=True)
class Training:
    """How the agents of an entry are trained before they play: one run for each of the training seeds 0 to seeds − 1.

    The rest is what `learning.presets.configure` takes.
    """

    algorithm: str
    seeds: int
    env_kwargs: dict[str, Any]
    max_episode_steps: int | None
    hyperparameters: dict[str, Any]
    timesteps: int | None
    interval: int | None
    episodes: int

    def config(self, game: Game, seed: int) -> Any:
        """The configuration of a run (`learning.runs.Config`)."""
        # Imported late: it brings compiled code, which listing the suites does not need.
        from mergefall_training.learning.presets import configure

        return configure(
            self.algorithm,
            game.env,
            env_kwargs=game.env_kwargs | self.env_kwargs,
            max_episode_steps=self.max_episode_steps,
            changed=self.hyperparameters,
            timesteps=self.timesteps,
            interval=self.interval,
            episodes=self.episodes,
            seed=seed,
        )


@dataclass(frozen=True)
class Entry:
    """What plays: a player, or agents to be trained (`player` is "" then), and how many episodes each."""

    player: str
    options: dict[str, Any]
    label: str
    episodes: int
    training: Training | None = None

    @property
    def file_name(self) -> str:
        """The label as a file's stem: letters, digits and ``. _ = -``.

        >>> Entry("2048/random", {}, "tile-order d5 (document)", 10).file_name
        'tile-order_d5_document'
        """
        return re.sub(r"[^\w.=-]+", "_", self.label).strip("_.")


@dataclass(frozen=True)
class Game:
    """One environment and the players that play it from the same seeds."""

    name: str
    env: str
    env_kwargs: dict[str, Any]
    max_episode_steps: int | None
    seed: int
    players: tuple[Entry, ...]
    baseline: str | None = None


@dataclass(frozen=True)
class Suite:
    """Games to compare players in."""

    name: str
    description: str
    games: tuple[Game, ...]


def suite_names() -> list[str]:
    """The suites that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_suite(name_or_path: str | os.PathLike[str]) -> Suite:
    """A suite by the name of one that comes with the package, or from a YAML file; a ValueError says what is wrong.

    >>> load_suite("quick").games[0].env
    'mergefall/Game2048-v0'
    """
    path = FOLDER / f"{name_or_path}.yaml" if str(name_or_path) in suite_names() else Path(name_or_path)
    if not path.is_file():
        raise ValueError(f"no suite {str(name_or_path)!r}; expected one of {suite_names()} or a YAML file")
    try:
        content = load_yaml(path.read_text(encoding="utf-8"))
        return _suite(path.stem, content)
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"suite {path}: {' '.join(str(error).split())}") from error


def _suite(name: str, content: Any) -> Suite:
    given = _fields(content, "the suite", description=(str, ""), games=(list, _REQUIRED))
    games = tuple(_game(game, f"game {number}") for number, game in enumerate(given["games"], start=1))
    _all_different([game.name for game in games], "games")
    return Suite(name, given["description"], games)


def _game(content: Any, where: str) -> Game:
    given = _fields(
        content,
        where,
        name=(str, _REQUIRED),
        env=(str, _REQUIRED),
        env_kwargs=(dict, {}),
        max_episode_steps=(int, None),
        seed=(int, 0),
        baseline=(str, None),
        episodes=(int, _REQUIRED),
        players=(list, _REQUIRED),
    )
    if not re.fullmatch(r"[\w.=-]*\w[\w.=-]*", given["name"]):
        raise ValueError(f"{where}: name {given['name']!r} names a folder; expected letters, digits and . _ = -")
    with _named(where):
        id_of_file(given["env"])
    episodes = given.pop("episodes")
    entries = [
        _entry(entry, f"game {given['name']}, player {number}", episodes)
        for number, entry in enumerate(given.pop("players"), start=1)
    ]
    _all_different([entry.file_name.lower() for entry in entries], f"labels of {where}")
    labels = [entry.label for entry in entries]
    if given["baseline"] not in (None, *labels):
        raise ValueError(f"{where}: baseline {given['baseline']!r} is no player's label; expected one of {labels}")
    game = Game(**given, players=tuple(entries))
    for entry in entries:
        if entry.training is not None:
            with _named(f"game {game.name}, {entry.label}"):
                entry.training.config(game, seed=0)
    return game


def _entry(content: Any, where: str, episodes: int) -> Entry:
    # Imported late: the players bring compiled code, which listing the suites does not need.
    from mergefall_baselines import make

    given = _fields(
        content,
        where,
        player=(str, ""),
        options=(dict, {}),
        label=(str, None),
        episodes=(int, episodes),
        train=(dict, None),
    )
    training = given.pop("train")
    if bool(given["player"]) != (training is None) or (training is not None and given["options"]):
        raise ValueError(f"{where} is {content!r}; expected a 'player', perhaps with 'options', or 'train'")
    given["options"] = {str(name): value for name, value in given["options"].items()}
    if training is not None:
        given["training"] = _training(training, f"{where}: train")
    else:
        with _named(where):
            make(given["player"], **given["options"])
    if given["label"] is None:
        options = [f"{name}={value}" for name, value in given["options"].items()]
        given["label"] = training["algorithm"] if training else " ".join([given["player"].partition("/")[2], *options])
    if given["episodes"] < 1:
        raise ValueError(f"{where}: episodes is {given['episodes']}; expected at least 1")
    return Entry(**given)


def _training(content: Any, where: str) -> Training:
    given = _fields(
        content,
        where,
        algorithm=(str, _REQUIRED),
        seeds=(int, 1),
        env_kwargs=(dict, {}),
        max_episode_steps=(int, None),
        hyperparameters=(dict, {}),
        timesteps=(int, None),
        interval=(int, None),
        episodes=(int, 30),
    )
    if given["seeds"] < 1:
        raise ValueError(f"{where}: seeds is {given['seeds']}; expected at least 1, how many runs there are")
    return Training(**given)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """A ValueError that is raised in here says where in the suite."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _fields(content: Any, where: str, **fields: tuple[type, Any]) -> dict[str, Any]:
    """The mapping's entries, each of its (type, default); unknown, missing and mistyped ones are a ValueError."""
    if not isinstance(content, Mapping):
        raise ValueError(f"{where} is {content!r}; expected a mapping with {', '.join(fields)}")
    unknown = content.keys() - fields.keys()
    if unknown:
        raise ValueError(f"{where} has the unknown key {min(map(str, unknown))!r}; expected {', '.join(fields)}")
    values = {}
    for name, (kind, default) in fields.items():
        value = content.get(name, default)
        if value is _REQUIRED:
            raise ValueError(f"{where} lacks {name!r}")
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ValueError(f"{where}: {name} is {value!r}; expected {kind.__name__}")
        values[name] = value
    return values


def _all_different(names: list[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        raise ValueError(f"{what}: expected at least one, and all different; found {twice or names}")
