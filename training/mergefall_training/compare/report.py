"""A report: recorded games as one HTML page with tables, plots and replays, which opens from a file.

The page needs no network. `page/` holds its parts: `rules.js` states the rules of both games a second time, so that the
page can play recorded games again; `replay.js` shows them. Plots are those of `plots.py`.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shlex
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall import __version__
from mergefall.draw import Colour
from mergefall.game2048 import board
from mergefall.game2048.render import TILES, tile_colours
from mergefall.game2048.rules import Rules as Rules2048
from mergefall.games import game_of, stack
from mergefall.tetris import game
from mergefall.tetris.pieces import NAMES, rotations
from mergefall.tetris.placements import ROTATIONS, SLIDES, STEPS
from mergefall.tetris.render import PALETTE
from mergefall.typing import Observation
from mergefall.words import stream_from_seed
from mergefall_baselines import Player, make
from mergefall_baselines.player import check_values
from numpy.typing import NDArray

from mergefall_training.compare.comparison import note_of, percent, player_columns, run_columns
from mergefall_training.compare.results import ContestResult, Row
from mergefall_training.compare.suite import Contest, Contestant
from mergefall_training.files import write_whole
from mergefall_training.learn.run import Point, read_curve
from mergefall_training.play.actions import RECORDED, actions_of
from mergefall_training.play.advice import action_names
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.records import Episode, Header
from mergefall_training.play.statistics import CONFIDENCE, Interval
from mergefall_training.play.verify import Verdict, verify
from mergefall_training.play.workers import task
from mergefall_training.progress import progress_bar

PAGE = Path(__file__).parent / "page"
SEED_LABEL = re.compile(r"(.*), seed (\d+)")


@dataclass(frozen=True)
class Section:
    """One environment and the players that were recorded in it.

    - `result`: their figures, as a comparison has them.
    - `verdicts`: by label, what verification said of each record.
    - `problems`: what is missing or does not hold, a sentence each.
    """

    result: ContestResult
    verdicts: dict[str, list[Verdict]]
    problems: list[str]


@dataclass
class _Found:
    """Record files of one environment, while they are collected."""

    name: str
    baseline: str | None = None
    files: list[tuple[str, Path, Evaluation]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def report(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    replays: int = 2,
    values: int = 400,
    progress: bool = True,
) -> list[Section]:
    """Write a page about recorded games.

    Args:
        paths: folders that `compare` wrote into, and files that `evaluate` wrote.
        out: the page to write.
        replays: games of each player that can be watched: those of the first seeds that all players share. The best and
            the worst game of each player follow.
        values: positions of such a game at which the page shows what the player thinks of each action: the first and
            the last ones, half each.
        progress: whether to show progress bars.

    Every record is verified. Files that cannot be read, records that do not hold and players that cannot be made are
    named in the page, and the rest is shown. Raises ValueError if no path holds a game.
    """
    sections = [_section(found, progress) for found in _collected([Path(path) for path in paths])]
    if not sections:
        raise ValueError(f"{', '.join(map(str, paths))}: there is no recorded game in it")
    games, bodies = [], []
    for number, section in enumerate(sections):
        games.append(_replays_of(section, replays, values, progress))
        bodies.append(_section_html(section, number))
    title = " · ".join(dict.fromkeys(section.result.name for section in sections))
    parts = {name: (PAGE / name).read_text() for name in ("page.css", "rules.js", "replay.js")}
    page = Template((PAGE / "page.html").read_text()).substitute(
        title=html.escape(title),
        version=__version__,
        style=parts["page.css"],
        body="\n".join(bodies),
        data=json.dumps(games, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        script=parts["rules.js"] + parts["replay.js"],
    )
    write_whole(Path(out), page.encode())
    return sections


# -- what was recorded ------------------------------------------------------------------------------------------------


def _collected(paths: Sequence[Path]) -> list[_Found]:
    """The record files in some paths, by folder and environment."""
    found: dict[str, _Found] = {}
    for path in paths:
        if not path.exists():
            raise ValueError(f"there is no {path}; expected a folder of `mergefall compare` or a file of records")
        files = list(_record_files(path))
        suites = {folder: _suite_entry(folder) for folder in {file.parent for file in files}}
        for file in files:
            suite = suites[file.parent]
            try:
                evaluation = Evaluation.read(file)
                game_of(evaluation.header.env_id)
            except ValueError as error:
                name = json.dumps([str(file.parent)])
                found.setdefault(name, _Found(file.parent.name)).problems.append(str(error))
                continue
            header = evaluation.header
            key = [str(file.parent), header.env_id, header.env_kwargs, header.max_episode_steps, header.adversary]
            entry = found.setdefault(json.dumps(key), _Found(file.parent.name or "games", suite.get("baseline")))
            entry.files.append((_label(header, suite, file), file, evaluation))
    whole = [entry for entry in found.values() if entry.files]
    for entry in found.values():
        if not entry.files:  # told of beside the others of the folder, if there are any
            beside = [other for other in whole if other.name == entry.name] or whole
            if not beside:
                raise ValueError("; ".join(entry.problems))
            beside[0].problems.extend(entry.problems)
    return whole


def _record_files(path: Path) -> Iterator[Path]:
    """The files of records in a folder, without those of training runs; a file itself."""
    if path.is_file():
        yield path
        return
    for file in sorted(path.rglob("*.jsonl")):
        if "runs" not in file.relative_to(path).parts and file.name != "curve.jsonl":
            yield file


def _suite_entry(folder: Path) -> dict[str, Any]:
    """What the results beside a contest's folder say about the contest; empty without such results."""
    results = folder.parent / "results.json"
    if not results.is_file():
        return {}
    games = json.loads(results.read_text()).get("games", [])
    return next((game for game in games if game["name"] == folder.name), {})


def _label(header: Header, suite: dict[str, Any], file: Path) -> str:
    """The player's label in its suite; of a suite that has not ended, the name of its file; else player and options."""
    for player in suite.get("players", ()):
        if (player["player"], player["options"]) == (header.player, header.options):
            return str(player["label"])
    if (file.parent / "runs" / file.stem).is_dir():
        return file.stem.replace("_seed_", ", seed ").replace("_", " ")
    return header.title


def _section(found: _Found, progress: bool) -> Section:
    """The figures of some files, each record verified."""
    rows, verdicts, problems = [], {}, list(found.problems)
    for label, file, evaluation in found.files:
        label = f"{label} ({file.name})" if label in verdicts else label
        verdicts[label] = verify(file, progress)
        kinds = Counter(verdict.problem for verdict in verdicts[label] if verdict.problem).most_common(3)
        if kinds:
            told = "; ".join(f"{problem} ({count} of {len(verdicts[label])})" for problem, count in kinds)
            problems.append(f"{label}: records that do not hold: {told}")
        header = evaluation.header
        who = Contestant(header.player, header.options, label, len(evaluation.episodes))
        alike = SEED_LABEL.fullmatch(label)
        curve = _curve(file) if alike else []
        group, seed = (alike[1], int(alike[2])) if alike and curve else ("", 0)
        rows.append(Row(who, evaluation, evaluation.summary(), group=group, training_seed=seed, curve=curve))
    header = rows[0].evaluation.header
    contest = Contest(
        name=found.name,
        env=header.env_id,
        env_kwargs=header.env_kwargs,
        max_episode_steps=header.max_episode_steps,
        seed=min(row.summary.first_seed for row in rows),
        players=tuple(row.contestant for row in rows),
        baseline=found.baseline,
        adversary=header.adversary,
    )
    rows.sort(key=lambda row: -row.summary.mean.value)
    return Section(ContestResult(contest, rows), verdicts, problems)


def _curve(file: Path) -> list[Point]:
    """The learning curve of the agent whose games a file holds; empty if its run folder is not there."""
    run = file.parent / "runs" / file.stem
    return read_curve(run) if (run / "curve.jsonl").is_file() else []


# -- games to watch ---------------------------------------------------------------------------------------------------


def _replays_of(section: Section, count: int, values: int, progress: bool) -> dict[str, Any]:
    """The section's games as the page plays them."""
    result = section.result
    header = result.rows[0].evaluation.header
    shared = set.intersection(*({e.seed for e in row.evaluation.episodes} for row in result.rows))
    first, env = sorted(shared)[:count], _environment(header.env_id, header.env_kwargs)
    players = []
    with progress_bar(f"{result.name}: replays", len(result.rows), enabled=progress) as show:
        for done, row in enumerate(result.rows, start=1):
            players.append(_player_replays(section, row, first, values))
            show(done, row.contestant.label)
    return {
        "game": result.game.name,
        "colours": _colours(result.game.name),
        "actions": action_names(env.rules),
        "headline": result.headline,
        "rules": page_rules(env.rules),
        "players": players,
    }


def _environment(env_id: str, env_kwargs: dict[str, Any]) -> Any:
    env = gym.make(env_id, **env_kwargs)
    env.close()
    return env.unwrapped


def _colours(name: str) -> list[list[str]]:
    """For 2048 the colours (tile, digits) by rank from 1 on, for Tetris that of each piece."""
    if name == "2048":
        return [[_hex(colour) for colour in tile_colours(rank)] for rank in range(1, len(TILES) + 1)]
    return [[_hex(colour)] for colour in PALETTE]


def _hex(colour: Colour) -> str:
    return "#" + bytes(colour).hex()


def page_rules(rules: Any) -> dict[str, Any]:
    """An environment's rules (`env.unwrapped.rules`) as `rules.js` takes them."""
    if isinstance(rules, Rules2048):
        return {"rows": rules.rows, "cols": rules.cols, "goal": rules.goal_rank, "four": int(board.FOUR_IN_2_32)}
    pieces = rules.piece_set
    return {
        "cols": rules.cols,
        "rows": rules.rows,
        "preview": rules.preview,
        "slides": STEPS[: SLIDES if rules.placements == "slide" else 1].tolist(),
        "turns": ROTATIONS,
        "clearFirst": rules.overflow == "clear_first",
        "randomizer": rules.randomizer,
        "copies": game.MOST_COPIES,
        "lineScores": game.LINE_SCORES.tolist(),
        "storage": pieces.storage,
        "first": NAMES.index(pieces.names[0]),
        "drawn": list(pieces.drawn),
        "pieces": [{"name": name, "rotations": rotations(name)} for name in pieces.names],
    }


def _player_replays(section: Section, row: Row, first: list[int], values: int) -> dict[str, Any]:
    """The games of a player that can be watched."""
    evaluation = row.evaluation
    wrong = {verdict.seed for verdict in section.verdicts[row.contestant.label] if verdict.problem}
    recorded = [episode for episode in evaluation.episodes if episode.seed not in wrong]
    player = None
    if evaluation.header.adversary is not None:
        recorded = []
        section.problems.append(f"{row.contestant.label}: games against an adversary cannot be watched in the page")
    elif recorded and values:
        header = evaluation.header
        try:
            header.check_no_import()
            player = make(header.player, **header.options)
            player = task(player, header.env_id, header.env_kwargs, header.max_episode_steps, None).player
        except ValueError as error:
            section.problems.append(f"{row.contestant.label}: its values are missing, because {error}")
        if not isinstance(player, Player) or getattr(player, "remembers", False):
            player = None
    chosen: dict[int, str] = {}
    if recorded:
        ordered = sorted(recorded, key=lambda episode: episode.result)
        best, worst = ordered[-1].seed, ordered[0].seed
        chosen = dict.fromkeys(first, "") | {best: "best"} | {worst: "worst"}
    by_seed = {episode.seed: episode for episode in recorded}
    games = [
        _replay(evaluation.header, by_seed[seed], note, player, values)
        for seed, note in chosen.items()
        if seed in by_seed
    ]
    return {"label": row.contestant.label, "replays": games}


def _replay(header: Header, episode: Episode, note: str, player: Player | None, values: int) -> dict[str, Any]:
    """One game as the page plays it, with the player's values at some positions."""
    actions = actions_of(episode.actions, episode.length)
    found: dict[str, Any] = {
        "seed": episode.seed,
        "note": note,
        "stream": str(stream_from_seed(episode.seed)),
        "actions": episode.actions,
        "wide": bool(actions.max(initial=0) > 255),
        "length": episode.length,
        "result": episode.result,
        "score": episode.score,
        "terminated": episode.terminated,
    }
    if player is None:
        return found
    half, n = values // 2, len(actions)
    wanted = [*range(min(half, n)), *range(max(half, n - half), n)]
    observations, terms = _positions(header, episode.seed, actions, wanted, player)
    valued = np.asarray(player.values(stack(observations)), dtype=np.float64)
    check_values(player.name, valued)
    likely = getattr(player, "log_probabilities", False)
    if likely:  # of the legal actions alone
        valued -= np.log(np.exp(valued).sum(axis=1, keepdims=True))
    found["values"] = {
        "ranges": [[0, min(half, n)], [max(half, n - half), n]],
        "kind": "probability" if likely else "value",
        "data": _packed(valued),
    }
    if terms:
        found["terms"] = {"names": list(terms[0]), "data": _packed(np.array([list(part.values()) for part in terms]))}
    return found


def _positions(
    header: Header, seed: int, actions: NDArray[np.uint16], wanted: list[int], player: Player
) -> tuple[list[Observation], list[dict[str, float]]]:
    """The observations before some actions; with a heuristic its weighted terms of the afterstates they lead to."""
    heuristic = getattr(player, "heuristic", None)
    env: Any = gym.make(header.env_id, **header.env_kwargs)
    seen, terms, steps = [], [], set(wanted)
    observation, _ = env.reset(seed=seed)
    for step, action in enumerate(actions.tolist()):
        if step in steps:
            seen.append(np.copy(observation) if isinstance(observation, np.ndarray) else dict(observation))
            if getattr(heuristic, "term_names", ()):
                terms.append(_weighted_terms(env, heuristic, action))
        observation, *_ = env.step(action)
    env.close()
    return seen, terms


def _weighted_terms(env: Any, heuristic: Any, action: int) -> dict[str, float]:
    """weight · term of the afterstate of an action, by the term's name."""
    base = env.unwrapped
    if game_of(env.spec.id).name == "2048":
        parts = heuristic.terms(base.afterstates()[0][action])
    else:
        found, _, _ = base.afterstate_terms(heuristic)
        parts = dict(zip(heuristic.term_names, found[action].tolist(), strict=True))
    return {name: getattr(heuristic, name) * part for name, part in parts.items() if name != "base"}  # always the same


def _packed(table: NDArray[np.float64]) -> str:
    """Numbers as float32, compressed by zlib, as base64."""
    return base64.b64encode(zlib.compress(table.astype("<f4").tobytes(), 9)).decode()


# -- the page ---------------------------------------------------------------------------------------------------------


def _section_html(section: Section, number: int) -> str:
    """A section of the page: table, plots, replays, and how to get the figures again."""
    result = section.result
    problems = "".join(f"<li>{html.escape(problem)}</li>" for problem in section.problems)
    parts = [
        f'<section id="game-{number}">',
        f"<h2>{html.escape(result.name)}</h2>",
        f'<p class="conditions">{html.escape(result.conditions)}</p>',
        f'<div class="problems"><p>Missing or wrong:</p><ul>{problems}</ul></div>' if problems else "",
        _players_html(section),
        _groups_html(result),
        f'<div class="replay" data-section="{number}"></div>',
        _plots_html(result, number),
        _commands_html(result),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _interval(interval: Interval | None, number: Callable[[float], str]) -> str:
    """An estimate above its interval."""
    if interval is None or not np.isfinite(interval.low):
        return "–"
    value = number(interval.value) if np.isfinite(interval.value) else "–"
    return f'<b>{value}</b><span class="ends">{number(interval.low)} to {number(interval.high)}</span>'


def _players_html(section: Section) -> str:
    """The leaderboard: figures of each player, and what can be told apart from the first."""
    result, (first, *others) = section.result, section.result.rows
    columns = player_columns(result, _interval)
    for name in ("IQM", f"{result.game.turn}s", f"ratio to {result.contest.baseline}", *_lower_tiles(result)):
        columns.pop(name, None)
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(others))
    columns["beside the first"] = ["", *(_versus_html(row, first, confidence) for row in others)]
    labels = [row.contestant.label for row in result.rows]
    columns["records that hold"] = [_held_html(section.verdicts[label]) for label in labels]
    note = note_of(result)
    if others:
        note += " Beside the first: on the seeds of both, "
        note += f"with intervals of {100 * confidence:.4g} %, so that all hold together (Bonferroni)."
    return _table("player", labels, columns, note)


def _lower_tiles(result: ContestResult) -> list[str]:
    """The columns of all tiles but the three largest."""
    return [f"{tile}+" for tile in result.telling_tiles[:-3]]


def _held_html(verdicts: list[Verdict]) -> str:
    """How many records hold, and how many of these were played again in part, because they hold no more."""
    held = [verdict for verdict in verdicts if not verdict.problem]
    partial = sum(verdict.partial for verdict in held)
    part = f", {partial} of them up to action {RECORDED:,}" if partial else ""
    if len(held) == len(verdicts):
        return f"all {len(held)}{part}"
    return f'<b class="bad">{len(held)} of {len(verdicts)}</b>{part}'


def _groups_html(result: ContestResult) -> str:
    """Agents that differ in their training seed only, one line for each way to train."""
    if not any(len(group.rows) > 1 for group in result.groups):
        return ""
    labels, note = [group.label for group in result.groups], "Over training seeds, with Student's 95 % intervals."
    return _table("trained alike", labels, run_columns(result, _interval), note)


def _table(first: str, labels: Sequence[str], columns: dict[str, list[str]], note: str) -> str:
    """A table in HTML: labels and headings in plain text, cells in HTML, a note below."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in (first, *columns))
    lines = zip(map(html.escape, labels), *columns.values(), strict=True)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in line) + "</tr>" for line in lines)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div><p class="note">{html.escape(note)}</p>'


def _versus_html(row: Row, first: Row, confidence: float) -> str:
    """A player beside the first of the table."""
    try:
        versus = row.evaluation.versus(first.evaluation, confidence=confidence)
    except ValueError:
        return "no seed in common"
    apart = versus.ratio.high < 1
    word = "lower" if apart else "cannot be told apart"
    chance = f"more on {percent(versus.higher.value)} of {versus.games} seeds"
    ratio = f"{versus.ratio.value:.2f} times [{versus.ratio.low:.2f}, {versus.ratio.high:.2f}]"
    return f'<div class="beside"><span class="{"" if apart else "tied"}">{word}</span>: {ratio}, {chance}</div>'


def _plots_html(result: ContestResult, number: int) -> str:
    from mergefall_training.compare import plots  # matplotlib is an extra

    drawn = plots.draw_svg(result, f"{number}")
    figures = (f'<figure id="plot-{number}-{name}">{svg}</figure>' for name, svg in drawn.items())
    return f'<div class="plots">{"".join(figures)}</div>'


def _commands_html(result: ContestResult) -> str:
    """For each player, its settings and the command that plays its games again."""
    items = []
    for row in result.rows:
        header = row.evaluation.header
        settings = json.dumps({"player": header.player, **header.options, "version": header.package})
        items.append(
            f"<dt>{html.escape(row.contestant.label)}</dt>"
            f"<dd><code>{html.escape(command(row.evaluation))}</code><br><small>{html.escape(settings)}</small></dd>"
        )
    return f"<details><summary>Settings, and the command for each player</summary><dl>{''.join(items)}</dl></details>"


def command(evaluation: Evaluation) -> str:
    """The command line that plays the same games.

    >>> from mergefall_training import evaluate
    >>> played = evaluate("2048/greedy", "mergefall/Game2048-v0", 2, env_kwargs={"rows": 3}, workers=1, progress=False)
    >>> for part in command(played).split(" --"):
    ...     print(part)
    mergefall evaluate 2048/greedy
    env mergefall/Game2048-v0
    env-option rows=3
    env-option cols=4
    env-option reward=score
    env-option illegal_limit=100
    episodes 2
    """
    header, episodes = evaluation.header, evaluation.episodes
    words = ["mergefall", "evaluate", header.player, *_pairs("--option", header.options), "--env", header.env_id]
    words += _pairs("--env-option", header.env_kwargs)
    if header.max_episode_steps is not None:
        words += ["--max-episode-steps", str(header.max_episode_steps)]
    words += _pairs("--adversary", header.adversary or {})
    words += ["--episodes", str(episodes[-1].seed - episodes[0].seed + 1)]
    words += ["--seed", str(episodes[0].seed)] if episodes[0].seed else []
    return shlex.join(words)


def _pairs(option: str, values: dict[str, Any]) -> list[str]:
    """The words of an option that is repeated for each value; those that are None are left out."""
    return [
        word
        for name, value in values.items()
        if value is not None
        for word in (option, f"{name}={value if isinstance(value, str) else json.dumps(value)}")
    ]
