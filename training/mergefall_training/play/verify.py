"""Verification: play recorded games again through the rules, and say which records hold.

A record holds if its checksum is that of its content and the file's header, and if its actions, played from its seed,
lead to its score, its length and its end. The player is not asked: its moves need not be explained, only its games.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from mergefall.checks import in_place
from mergefall.games import game_of
from mergefall.typing import Dict, FilePath
from mergefall_baselines.player import recorded, steps

from mergefall_training.files import within
from mergefall_training.play.match import Match
from mergefall_training.play.records import RECORDED, Episode, Header, actions_of, add_episode, checksum, read_header
from mergefall_training.progress import progress_bar

AT_ONCE = 512
MOST_SECONDS, SECONDS_OF_ACTION = 60, 0.05  # for the games that are played at once, and more for each of their actions


@dataclass(frozen=True)
class Verdict:
    """What replaying said about the record on a line of a file; `seed` and `episode` are None if it cannot be read.

    - `problem`: why the record does not hold; empty if it holds.
    - `proven`: the game up to action `RECORDED`, if it holds no more actions; else None.
    """

    line: int
    seed: int | None
    problem: str
    episode: Episode | None = None
    proven: Episode | None = None


def verify(path: FilePath, progress: bool = True) -> list[Verdict]:
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
    return verify_file(path, progress)[1]


def verify_file(path: FilePath, progress: bool = True) -> tuple[Header, list[Verdict]]:
    """The header of a file of episodes, and the verdicts of `verify`, from one reading."""
    path = Path(path)
    header, records = read_header(path)
    with in_place(f"{path}, line 1"):
        game_of(header.env_id)
        Match.read(**{**header.said(), "env_kwargs": header.game_kwargs})
    highest = int(header.make().action_space.n) - 1
    verdicts: list[Verdict] = []
    games: list[tuple[int, Episode]] = []
    episodes: dict[int, Episode] = {}
    for line, record in enumerate(records, start=2):
        try:
            games.append((line, _read(header, record, episodes, highest)))
        except ValueError as error:
            seed = record.get("seed")
            verdicts.append(Verdict(line, seed if isinstance(seed, int) else None, str(error)))
    if not path.read_bytes().endswith(b"\n"):
        verdicts.append(Verdict(len(records) + 2, None, "the line is torn: its end is missing"))
    games.sort(key=lambda game: game[1].length)
    with progress_bar(f"{path.name}: games", len(games), enabled=progress) as show:
        for first in range(0, len(games), AT_ONCE):
            part = games[first : first + AT_ONCE]
            longest = MOST_SECONDS + SECONDS_OF_ACTION * sum(episode.length for _, episode in part)
            with within(longest, f"{path}: to play its games again, against {header.adversary},"):
                verdicts += _verdicts(header, part)
            show(min(first + AT_ONCE, len(games)), "")
    return header, sorted(verdicts, key=lambda verdict: verdict.line)


def _read(header: Header, record: Dict, episodes: dict[int, Episode], highest: int) -> Episode:
    """The episode of a record, which is added to `episodes`. Raises ValueError for a record that cannot hold.

    `highest`: the highest action there is.
    """
    content = {name: value for name, value in record.items() if name != "checksum"}
    if record.get("checksum") != checksum(header, content):
        raise ValueError(f"its checksum is {record.get('checksum')!r}, and not that of its content under this header")
    episode = add_episode(episodes, record)
    if min(episode.length - 1, episode.seed, episode.seconds) < 0 or episode.game is not game_of(header.env_id):
        raise ValueError(f"it is no record of {header.env_id}: {asdict(episode)}")
    if (action := actions_of(episode.actions, episode.length).max()) > highest:
        raise ValueError(f"it holds the action {action}; the highest is {highest}")
    return episode


def _verdicts(header: Header, games: list[tuple[int, Episode]]) -> Iterator[Verdict]:
    """Play the games of some lines side by side, and compare each with its record."""
    actions = [actions_of(episode.actions, episode.length) for _, episode in games]
    envs, counts = header.make(len(games)), np.array(list(map(len, actions)))
    table = np.zeros((counts.max(), len(games)), np.int64)
    for i, count in enumerate(counts):
        table[:count, i] = actions[i]
    going = np.ones(len(games), np.bool_)
    for length, step in enumerate(steps(envs, [episode.seed for _, episode in games], recorded(table))):
        over = step.terminated | step.truncated
        ending = going & (over | (length == counts))
        going &= ~ending
        for i in np.flatnonzero(ending):
            line, episode = games[i]
            figures = {name: int(step.info[name][i]) for name in episode.game.figures}
            again = replace(episode, length=length, terminated=bool(step.terminated[i]), **figures)
            pairs = ((name, value, getattr(episode, name)) for name, value in vars(again).items())
            problem = "; ".join(
                f"{name} is {theirs}, played again {ours}" for name, ours, theirs in pairs if ours != theirs
            )
            proven = again if length == RECORDED < episode.length and not over[i] else None
            if not over[i]:
                problem = "" if proven else f"its game goes on after its {length} actions"
            yield Verdict(line, episode.seed, problem, episode, proven)
