"""Verification: play recorded games again through the rules, and say which records hold.

A record holds if its checksum is that of its content and the file's header, and if its actions, played from its seed,
lead to its score, its length and its end. The player is not asked: its moves need not be explained, only its games.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall.games import game_of
from numpy.typing import NDArray

from mergefall_training.files import on_line
from mergefall_training.play.actions import RECORDED, actions_of
from mergefall_training.play.records import Episode, Header, checksum, episode_from, read_header
from mergefall_training.play.workers import environment
from mergefall_training.progress import progress_bar
from mergefall_training.wrappers.adversary import adversary

AT_ONCE = 512


@dataclass(frozen=True)
class Verdict:
    """What replaying said about one record.

    - `line`: its line in the file.
    - `seed`: of the game; None if the record cannot be read.
    - `problem`: why the record does not hold; empty if it holds.
    - `proven`: the game up to action `RECORDED`, if it holds no more actions; else None.
    """

    line: int
    seed: int | None
    problem: str
    proven: Episode | None = None


def verify(path: str | os.PathLike[str], progress: bool = True) -> list[Verdict]:
    """Verify a file of episodes: one verdict for each record, in the file's order, a torn last line among them.

    Raises ValueError if the file is none, or if its header or its lines cannot be read.

    Example:
        >>> import tempfile
        >>> from mergefall_training import evaluate
        >>> path = Path(tempfile.mkdtemp(), "greedy.jsonl")
        >>> _ = evaluate("2048/greedy", "mergefall/Game2048-v0", 3, out=path, workers=1, progress=False)
        >>> [verdict.problem for verdict in verify(path, progress=False)]
        ['', '', '']
    """
    path = Path(path)
    header, records = read_header(path)
    with on_line(path, 1):
        game_of(header.env_id)
        environment(header.env_id, header.game_kwargs).close()
    verdicts: dict[int, Verdict] = {}
    games: list[tuple[int, Episode]] = []
    seeds: set[int] = set()
    for line, record in enumerate(records, start=2):
        try:
            games.append((line, _read(header, record, seeds)))
        except ValueError as error:
            seed = record.get("seed")
            verdicts[line] = Verdict(line, seed if isinstance(seed, int) else None, str(error))
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            torn = "the line is torn: its end is missing"
            verdicts[len(records) + 2] = Verdict(len(records) + 2, None, torn)
    games.sort(key=lambda game: game[1].length)
    with progress_bar(f"{path.name}: games", len(games), enabled=progress) as show:
        for first in range(0, len(games), AT_ONCE):
            part: list[_Game] = []
            for line, episode in games[first : first + AT_ONCE]:  # a small record may hold many actions
                try:
                    part.append(_Game(line, episode, actions_of(episode.actions, episode.length)))
                except ValueError as error:
                    verdicts[line] = Verdict(line, episode.seed, str(error))
            for game, found in zip(part, _played_again(header, part), strict=True):
                verdicts[game.line] = Verdict(game.line, game.episode.seed, *found)
            show(min(first + AT_ONCE, len(games)), "")
    return [verdicts[line] for line in sorted(verdicts)]


@dataclass(frozen=True)
class _Game:
    line: int
    episode: Episode
    actions: NDArray[np.uint16]


def _read(header: Header, record: dict[str, Any], seeds: set[int]) -> Episode:
    """The episode of a record. Raises ValueError for a record that cannot hold."""
    if "actions" not in record:
        raise ValueError("it holds no actions; an earlier version wrote it")
    content = dict(record)
    found = content.pop("checksum", None)
    if found != checksum(header, content):
        raise ValueError(f"its checksum is {found!r}, and not that of its content under this header")
    episode = episode_from(content)
    if episode.seed in seeds:
        raise ValueError(f"seed {episode.seed} is there twice")
    seeds.add(episode.seed)
    if episode.length < 1 or episode.seed < 0 or episode.game is not game_of(header.env_id):
        raise ValueError(f"it is no record of {header.env_id}: {asdict(episode)}")
    return episode


_Found = tuple[str, Episode | None]  # the problem of a verdict, and what is proven


def _played_again(header: Header, games: list[_Game]) -> list[_Found]:
    """Play games side by side, and compare each with its record."""
    n = len(games)
    if not n:
        return []
    kwargs: Any = {"max_episode_steps": header.max_episode_steps, **header.game_kwargs}
    envs: Any = gym.make_vec(header.env_id, num_envs=n, **kwargs)
    if header.adversary is not None:
        envs = adversary(envs, header.adversary["player"], header.adversary["rate"])
    counts = np.array([len(game.actions) for game in games])
    table = np.zeros((counts.max(), n), np.uint16)
    for i, game in enumerate(games):
        table[: counts[i], i] = game.actions
    found: list[_Found | None] = [None] * n
    for i in np.flatnonzero(table.max(axis=0) >= envs.single_action_space.n):
        found[i] = f"it holds the action {table[:, i].max()}; the highest is {envs.single_action_space.n - 1}", None
        table[:, i] = 0
    envs.reset(seed=[game.episode.seed for game in games])
    for step, actions in enumerate(table, start=1):
        _, _, terminated, truncated, infos = envs.step(actions.astype(np.int64))
        over = terminated | truncated
        for i in np.flatnonzero((over & (step < counts)) | (step == counts)):
            if found[i] is None:
                found[i] = _compared(games[i].episode, step, bool(terminated[i]), bool(over[i]), infos, int(i))
    return [one or ("", None) for one in found]


def _compared(episode: Episode, step: int, terminated: bool, over: bool, infos: Any, i: int) -> _Found:
    """What is found when game i has come to an end, or to its last recorded action."""
    again = {name: int(infos[name][i]) for name in episode.game.figures} | {"length": step, "terminated": terminated}
    if not over:
        if step == RECORDED < episode.length:
            return "", replace(episode, rest=None, **again)
        return f"its game goes on after its {step} actions", None
    wrong = {name: value for name, value in again.items() if value != getattr(episode, name)}
    told = (f"{name} is {getattr(episode, name)}, played again {value}" for name, value in wrong.items())
    return "; ".join(told), None
