"""Suites: players, environments and seeds to compare, read from small YAML files.

The keys of a file are `description` and `games`, a list of contests with the fields of `Contest`. An entry of `players`
holds a player with its options, ``{player: 2048/greedy, heuristic: nneonneo}``, or in `train` the fields of `Training`:
agents that are trained for the comparison. It may have a `label` and a number of `episodes`. The page of this package,
training/README.md, shows a file.

With `league: true` every player plays matches against every other one, from either side, `episodes` of each.

`presets: [small, medium]` stands for a contest with each of these presets, which trainings take that name none. With
several rates of the adversary, ``rate: [0, 0.1, 1]``, the players play once at each, and one table shows all means.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from mergefall.checks import choice, in_place, integer, known, near, number
from mergefall.games import game_of
from mergefall.typing import Dict, FilePath
from mergefall_baselines.player import title

from mergefall_training.files import in_places, made, read_yaml
from mergefall_training.learn.presets import SMALL, configure
from mergefall_training.learn.run import Config
from mergefall_training.play.match import Match
from mergefall_training.play.workers import task
from mergefall_training.wrappers.adversary import arguments

FOLDER = Path(__file__).parent / "suites"


@dataclass(frozen=True)
class Training:
    """How the agents of a contestant are trained before they play: one run for each training seed 0 to seeds − 1.

    - `episodes`: games of each point of the learning curve.
    - `env_kwargs`: added to the contest's for training only, such as a reward or `shaping`.

    The other fields are arguments of `mergefall_training.learn.presets.configure`.
    """

    algorithm: str
    seeds: int = 1
    preset: str | None = None
    timesteps: int | None = None
    interval: int | None = None
    episodes: int = 30
    max_episode_steps: int | None = None
    env_kwargs: Dict = field(default_factory=dict)
    hyperparameters: Dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        integer("seeds", self.seeds, 1)

    def config(self, contest: "Contest", seed: int) -> Config:
        """The configuration of a run."""
        rules = contest.match.env_kwargs
        board = {name: rules[name] for name in game_of(contest.env_id).arguments("spaces")}
        return configure(
            self.algorithm,
            contest.env_id,
            env_kwargs=board | contest.env_kwargs | self.env_kwargs,
            max_episode_steps=self.max_episode_steps,
            changed=self.hyperparameters,
            timesteps=self.timesteps,
            interval=self.interval,
            episodes=self.episodes,
            seed=seed,
            preset=self.preset or SMALL,
        )


@dataclass(frozen=True)
class Contestant:
    """A player, or agents to be trained (`training`), and the number of episodes that each plays."""

    label: str
    episodes: int
    player: str = ""
    options: Dict = field(default_factory=dict)
    training: Training | None = None

    def __post_init__(self) -> None:
        integer("episodes", self.episodes, 1)

    @property
    def file_name(self) -> str:
        """The label as a file name without extension: letters, digits and ``. _ = -``.

        >>> Contestant("tile-order d5 (document)", 10, "2048/random").file_name
        'tile-order_d5_document'
        """
        return re.sub(r"[^\w.=-]+", "_", self.label).strip("_.")


@dataclass(frozen=True, kw_only=True)
class Contest(Match):
    """A match and the players that play it on the same seeds, each `episodes` games if it says no other number.

    - `league`: whether the players play matches against each other; `baseline` is then the player whose rating is 0.
    - `series`: the name that contests share which differ in the adversary's rate only; otherwise "".
    """

    name: str
    episodes: int
    players: list[Contestant]
    seed: int = 0
    baseline: str | None = None
    presets: list[str] = field(default_factory=list)
    league: bool = False
    series: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"[\w.=-]*\w[\w.=-]*", self.name):
            raise ValueError(f"name {self.name!r} names a folder; expected letters, digits and . _ = -")
        integer("seed", self.seed, 0)

    @property
    def match(self) -> Match:
        """Where the players play, with all defaults."""
        return Match.read(**self.said())


@dataclass(frozen=True)
class Suite:
    """Contests to compare players in."""

    name: str
    description: str
    contests: tuple[Contest, ...]

    def only(self, games: Iterable[str]) -> tuple[Contest, ...]:
        """Some of the games; a series' name stands for all its contests. Raises ValueError for other names."""
        names = [contest.series or contest.name for contest in self.contests]
        chosen = [choice("game", name, list(dict.fromkeys(names))) for name in games]
        return tuple(contest for name, contest in zip(names, self.contests, strict=True) if name in chosen)


def suite_names() -> list[str]:
    """The names of the suites that come with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_suite(name_or_path: FilePath) -> Suite:
    """The suite of a name (`suite_names`), or in a YAML file; raises ValueError if it is none or makes no sense.

    >>> load_suite("quick").contests[0].env_id
    'mergefall/Game2048-v0'
    """
    name, names = str(name_or_path), suite_names()
    path = FOLDER / f"{name}.yaml" if name in names else Path(name)
    if not path.is_file():
        raise ValueError(f"no suite {name!r}; expected one of {', '.join(names)}, or a YAML file{near(name, names)}")
    with in_place(f"suite {path}"):
        file = made(_File, read_yaml(path))
        contests = tuple(one for contest in in_places("game", _contest, file.games) for one in _variants(contest))
        _check_different([contest.name for contest in contests], "games, presets and rates")
        for contest in contests:
            with in_place(f"game {contest.name}"):
                match = contest.match
            for one in contest.players:
                with in_place(f"game {contest.name}, {one.label}"):
                    if one.training is None:
                        task({"player": one.player, **one.options}, match)
                    else:
                        one.training.config(contest, seed=0)
        return Suite(path.stem, file.description, contests)


@dataclass(frozen=True)
class _File:
    games: list[Any]
    description: str = ""


def _contest(content: Any) -> Contest:
    if not isinstance(content, Mapping) or "env" not in content:
        raise ValueError(f"it is {content!r}; expected a mapping with 'env', the id of an environment")
    known("it", content, ("name", "env", *(one.name for one in fields(Contest) if one.name not in ("name", "env_id"))))
    given = dict(content)
    given["env_id"] = given.pop("env")
    if isinstance(adversary := given.get("adversary"), Mapping):
        with in_place("adversary"):
            given["adversary"] = arguments(adversary)
    contest = made(Contest, given)
    players = in_places("player", lambda entry: _contestant(entry, contest.episodes), contest.players)
    _check_different([player.file_name.lower() for player in players], "labels")
    if contest.baseline is not None:
        choice("baseline", contest.baseline, [player.label for player in players])
    contest = replace(contest, players=players)
    if contest.league:
        _check_league(contest)
    return contest


def _check_league(league: Contest) -> None:
    if not game_of(league.env_id).matches:
        raise ValueError(f"league: the env is {league.env_id}; expected one of matches, as mergefall/TetrisVersus-v0")
    if len(league.players) < 2:
        raise ValueError(f"league: it has {len(league.players)} player; expected two or more")
    if wrong := [one.label for one in league.players if one.training or one.episodes != league.episodes]:
        raise ValueError(f"league: {wrong[0]!r} has its own 'train' or 'episodes'; expected players alone")
    if "opponent" in league.env_kwargs or league.adversary:
        raise ValueError("league: it has an opponent or an adversary; expected none")


def _contestant(content: Any, episodes: int) -> Contestant:
    if not isinstance(content, Mapping) or ("player" in content) == ("train" in content):
        raise ValueError(f"it is {content!r}; expected a mapping with 'player' and its options, or with 'train'")
    entry = {str(name): value for name, value in content.items()}
    own = {name: entry.pop(name) for name in ("player", "train", "label", "episodes") if name in entry}
    if "train" in own:
        known("it", entry, ("train", "label", "episodes"))
        with in_place("train"):
            training = made(Training, own.pop("train"))
        return made(Contestant, {"label": training.algorithm, "episodes": episodes} | own | {"training": training})
    name = str(own["player"])
    label = title(name.partition("/")[2] or name, entry)
    return made(Contestant, {"label": label, "episodes": episodes} | own | {"options": entry})


def _variants(contest: Contest) -> Iterator[Contest]:
    """The contest with each of its presets, at each rate of its adversary."""
    for preset in contest.presets or [None]:
        name = f"{contest.name}-{preset}" if preset else contest.name
        players = [
            replace(one, training=one.training and replace(one.training, preset=one.training.preset or preset))
            for one in contest.players
        ]
        adversary, one = contest.adversary, replace(contest, name=name, players=players)
        if adversary is None or not isinstance(adversary["rate"], list):
            yield one
            continue
        with in_place(f"game {name}: adversary"):
            _check_different([f"{number('rate', rate, 0, 1):g}" for rate in adversary["rate"]], "rates")
        for rate in adversary["rate"]:
            yield replace(one, name=f"{name}-rate-{rate:g}", series=name, adversary={**adversary, "rate": rate})


def _check_different(names: list[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        raise ValueError(f"{what}: expected at least one, and all different; found {twice or names}")
