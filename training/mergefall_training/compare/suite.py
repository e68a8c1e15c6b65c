"""Suites: players, environments and seeds to compare, read from small YAML files.

A suite holds one or more contests. A contest is an environment (id, kwargs, cap), a number of episodes, a first seed,
and the players, which all play the same seeds::

    description: What the suite is for.
    games:
      - name: 2048-2x3
        env: mergefall/Game2048-v0
        env_kwargs: {rows: 2, cols: 3}      # optional, as are the next four
        max_episode_steps: 10000            # default: no cap
        adversary: {player: 2048/minimax, rate: 0.1}  # draws new tiles or pieces; default: chance draws alone
        seed: 0                             # default: 0
        baseline: random                    # label of the player that the others are compared with
        episodes: 100
        players:
          - player: 2048/greedy
            options: {heuristic: nneonneo}  # optional, as are the next two
            label: greedy by nneonneo       # default: player and options
            episodes: 30                    # default: the contest's
          - train: {algorithm: maskable-ppo, timesteps: 200000, seeds: 3}
            label: MaskablePPO              # default: the algorithm

`train` in place of `player` trains agents for the comparison, one for each training seed from 0. It may also hold
`preset`, `interval`, `hyperparameters`, `max_episode_steps`, `env_kwargs` (added to the contest's, such as a reward or
`shaping`, for training only), `share` of the preset's steps (default: 1), and `after`, the training of another run
whose network this one begins with. Its `episodes` (default: 30) are those of each point of the learning curve. The
preset fills in the rest, but for the board and the pieces, which are the contest's.

`presets: [2min, 5min]` stands for a contest with each of these presets, which trainings take that name none.

`adversary` holds the arguments of `mergefall_training.wrappers.adversary`. With several rates, ``rate: [0, 0.1, 1]``,
the players play once at each rate, and one table and one plot show all means. Rate 0 is the plain game.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from mergefall.checks import choice, id_of_file, integer, number
from mergefall.games import game_of

from mergefall_training.learn import FROM_NOTHING
from mergefall_training.yaml_numbers import load_yaml

if TYPE_CHECKING:
    from mergefall_training.learn.run import Config

FOLDER = Path(__file__).parent / "suites"
_REQUIRED: Any = object()


@dataclass(frozen=True)
class Training:
    """How the agents of a contestant are trained before they play: one run for each training seed 0 to seeds − 1.

    - `share`: share of the preset's steps, if `timesteps` does not say how many.
    - `after`: the training of another run of the same seed, from whose network this one begins (`warm_start`).

    The other fields are arguments of `mergefall_training.learn.presets.configure`.
    """

    algorithm: str
    seeds: int
    env_kwargs: dict[str, Any]
    max_episode_steps: int | None
    hyperparameters: dict[str, Any]
    preset: str | None
    timesteps: int | None
    interval: int | None
    episodes: int
    share: float = 1
    after: Training | None = None

    def config(self, contest: Contest, seed: int, warm_start: str | None = None) -> Config:
        """The configuration of a run; `warm_start` is the path of the model that it begins from."""
        # Imported late: it brings compiled code, which listing the suites does not need.
        from mergefall_training.learn.presets import configure, load_preset
        from mergefall_training.play.workers import all_kwargs, environment

        preset = load_preset(self.algorithm, contest.env, self.preset)
        steps = round(self.share * preset["n_timesteps"]) if self.timesteps is None else self.timesteps
        rules = all_kwargs(environment(contest.env, contest.env_kwargs), contest.env_kwargs)
        board = {name: rules[name] for name in game_of(contest.env).spaces}
        return configure(
            self.algorithm,
            contest.env,
            env_kwargs=board | contest.env_kwargs | self.env_kwargs,
            max_episode_steps=self.max_episode_steps,
            changed=self.hyperparameters | ({} if warm_start is None else {"warm_start": warm_start}),
            preset=self.preset,
            timesteps=steps,
            interval=self.interval,
            episodes=self.episodes,
            seed=seed,
        )

    def with_preset(self, preset: str) -> Training:
        """The training with a preset, and what comes before it, where they name none."""
        after = None if self.after is None else self.after.with_preset(preset)
        return replace(self, preset=self.preset or preset, after=after)


@dataclass(frozen=True)
class Contestant:
    """A player, or agents to be trained (then `player` is ""), and the number of episodes that each plays."""

    player: str
    options: dict[str, Any]
    label: str
    episodes: int
    training: Training | None = None

    @property
    def file_name(self) -> str:
        """The label as a file name without extension: letters, digits and ``. _ = -``.

        >>> Contestant("2048/random", {}, "tile-order d5 (document)", 10).file_name
        'tile-order_d5_document'
        """
        return re.sub(r"[^\w.=-]+", "_", self.label).strip("_.")


@dataclass(frozen=True)
class Contest:
    """One environment and the players that play it on the same seeds.

    - `adversary`: who draws against the players, as in `evaluate`; None if chance draws alone.
    - `series`: the name that contests share which differ in the adversary's rate only; otherwise "".
    """

    name: str
    env: str
    env_kwargs: dict[str, Any]
    max_episode_steps: int | None
    seed: int
    players: tuple[Contestant, ...]
    baseline: str | None = None
    adversary: dict[str, Any] | None = None
    series: str = ""


@dataclass(frozen=True)
class Suite:
    """Contests to compare players in."""

    name: str
    description: str
    contests: tuple[Contest, ...]

    def only(self, games: Iterable[str]) -> Suite:
        """The suite with some of its games; the name of a series stands for all its contests.

        Raises ValueError for a name that it lacks.

        >>> [contest.name for contest in load_suite("quick").only(["2048-2x3"]).contests]
        ['2048-2x3']
        """
        names = [contest.series or contest.name for contest in self.contests]
        asked = [choice("game", name, list(dict.fromkeys(names))) for name in games]
        kept = tuple(contest for name, contest in zip(names, self.contests, strict=True) if name in asked)
        return replace(self, contests=kept)


def suite_names() -> list[str]:
    """The names of the suites that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_suite(name_or_path: str | os.PathLike[str]) -> Suite:
    """The suite of a name (`suite_names`), or in a YAML file.

    Raises ValueError if there is no such suite, or if something in it makes no sense.

    >>> load_suite("quick").contests[0].env
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
    games = [
        one for place, content in enumerate(given["games"], start=1) for one in _contests(content, f"game {place}")
    ]
    _all_different([contest.name for contest in games], "games")
    contests = [one for contest in games for one in _at_each_rate(contest)]
    _all_different([contest.name for contest in contests], "games, presets and rates")
    return Suite(name, given["description"], tuple(contests))


def _contests(content: Any, where: str) -> list[Contest]:
    """The contest that an entry describes; one for each preset if it has a list of them."""
    given = _fields(
        content,
        where,
        name=(str, _REQUIRED),
        env=(str, _REQUIRED),
        env_kwargs=(dict, {}),
        max_episode_steps=(int, None),
        seed=(int, 0),
        baseline=(str, None),
        adversary=(dict, None),
        presets=(list, []),
        episodes=(int, _REQUIRED),
        players=(list, _REQUIRED),
    )
    if not re.fullmatch(r"[\w.=-]*\w[\w.=-]*", given["name"]):
        raise ValueError(f"{where}: name {given['name']!r} names a folder; expected letters, digits and . _ = -")
    with _named(where):
        id_of_file(given["env"])
        integer("seed", given["seed"], 0)
        if given["max_episode_steps"] is not None:
            integer("max_episode_steps", given["max_episode_steps"], 1)
    if given["adversary"] is not None:
        with _named(f"{where}: adversary"):
            given["adversary"] = _adversary(given["adversary"])
    episodes, presets = given.pop("episodes"), given.pop("presets")
    players = [
        _contestant(player, f"game {given['name']}, player {place}", episodes)
        for place, player in enumerate(given.pop("players"), start=1)
    ]
    _all_different([player.file_name.lower() for player in players], f"labels of {where}")
    labels = [player.label for player in players]
    if given["baseline"] not in (None, *labels):
        raise ValueError(f"{where}: baseline {given['baseline']!r} is no player's label; expected one of {labels}")
    contest = Contest(**given, players=tuple(players))
    found = [_with_preset(contest, preset) for preset in presets] or [contest]
    _check_players(contest)
    for one in found:
        _check_trainings(one)
    return found


def _with_preset(contest: Contest, preset: Any) -> Contest:
    """The contest in which agents are trained with a preset, where they name none."""
    players = [replace(one, training=one.training and one.training.with_preset(str(preset))) for one in contest.players]
    return replace(contest, name=f"{contest.name}-{preset}", players=tuple(players))


def _check_players(contest: Contest) -> None:
    """Raise ValueError for a player that does not exist, or that does not play the contest's game."""
    # Imported late: the players bring compiled code, which listing the suites does not need.
    from mergefall_baselines import make

    from mergefall_training.play.workers import task

    for player in contest.players:
        if player.training is None:
            with _named(f"game {contest.name}, {player.label}"):
                made = make(player.player, **player.options)
                task(made, contest.env, contest.env_kwargs, contest.max_episode_steps)


def _check_trainings(contest: Contest) -> None:
    """Raise ValueError for a training that cannot be configured."""
    for player in contest.players:
        training = player.training
        while training is not None:
            with _named(f"game {contest.name}, {player.label}"):
                training.config(contest, seed=0)
                if training.after is not None and training.algorithm in FROM_NOTHING:
                    raise ValueError(f"{training.algorithm} cannot begin with another run's network; expected no after")
            training = training.after


def _adversary(content: dict[str, Any]) -> dict[str, Any]:
    """The adversary of a contest, with its default rate; `rate` is a number or a list of numbers."""
    # Imported late: they bring the players' compiled code, which listing the suites does not need.
    from mergefall_baselines.registry import player_of

    from mergefall_training.wrappers.adversary import arguments

    given = arguments({str(name): value for name, value in content.items()})
    player_of(given["player"])
    rates = given["rate"] if isinstance(given["rate"], list) else [given["rate"]]
    _all_different([f"{number('rate', rate, 0, 1):g}" for rate in rates], "rates")
    return given


def _at_each_rate(contest: Contest) -> list[Contest]:
    """The contest itself; one contest for each rate if its adversary has a list of them."""
    if contest.adversary is None or not isinstance(contest.adversary["rate"], list):
        return [contest]
    return [
        replace(
            contest,
            name=f"{contest.name}-rate-{rate:g}",
            adversary=contest.adversary | {"rate": rate},
            series=contest.name,
        )
        for rate in contest.adversary["rate"]
    ]


def _contestant(content: Any, where: str, episodes: int) -> Contestant:
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
    if given["label"] is None:
        options = [f"{name}={value}" for name, value in given["options"].items()]
        given["label"] = (
            training["algorithm"]
            if training
            else " ".join([given["player"].partition("/")[2] or given["player"], *options])
        )
    if given["episodes"] < 1:
        raise ValueError(f"{where}: episodes is {given['episodes']}; expected at least 1")
    return Contestant(**given)


def _training(content: Any, where: str) -> Training:
    given = _fields(
        content,
        where,
        algorithm=(str, _REQUIRED),
        seeds=(int, 1),
        env_kwargs=(dict, {}),
        max_episode_steps=(int, None),
        hyperparameters=(dict, {}),
        preset=(str, None),
        timesteps=(int, None),
        interval=(int, None),
        episodes=(int, 30),
        share=(float, 1.0),
        after=(dict, None),
    )
    if given["seeds"] < 1:
        raise ValueError(f"{where}: seeds is {given['seeds']}; expected a number of runs, at least 1")
    with _named(where):
        number("share", given["share"], 0, 1)
    if given["after"] is not None:
        if "seeds" in given["after"]:
            raise ValueError(f"{where}: after has seeds; each run begins from one of its own training seed")
        if "warm_start" in given["hyperparameters"]:
            raise ValueError(f"{where} has both after and warm_start; expected one of them")
        given["after"] = _training(given["after"], f"{where}: after")
    return Training(**given)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """A ValueError raised in this block gets its place in the suite in front of its message."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def _fields(content: Any, where: str, **fields: tuple[type, Any]) -> dict[str, Any]:
    """The values of a mapping whose fields are given as (type, default).

    Raises ValueError for an unknown, a missing or a mistyped field.
    """
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
        kinds = (int, float) if kind is float else kind
        if value is not default and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise ValueError(f"{where}: {name} is {value!r}; expected {kind.__name__}")
        values[name] = value
    return values


def _all_different(names: list[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        raise ValueError(f"{what}: expected at least one, and all different; found {twice or names}")
