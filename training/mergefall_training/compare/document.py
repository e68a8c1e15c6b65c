"""The page of a report: one HTML file, which needs no network.

`page/` holds its parts: `rules.js` states the rules of both games a second time, so that the page can play recorded
games again; `replay.js` shows them. Plots are those of `plots.py`.
"""

from __future__ import annotations

import html
import json
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from mergefall import __version__

from mergefall_training.compare.comparison import note_of, note_of_runs, percent, player_columns, run_columns
from mergefall_training.compare.replays import replays_of
from mergefall_training.compare.results import ContestResult, Row
from mergefall_training.compare.sections import Section
from mergefall_training.files import write_whole
from mergefall_training.play.actions import RECORDED
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.playing import BY_HAND
from mergefall_training.play.statistics import CONFIDENCE, Interval
from mergefall_training.play.verify import Verdict

PAGE = Path(__file__).parent / "page"


def write_page(
    out: Path,
    title: str,
    sections: Sequence[Section],
    *,
    replays: int,
    values: int,
    progress: bool,
) -> None:
    """Write a page of sections with their replays; the arguments are those of `report`."""
    games, bodies = [], []
    for number, section in enumerate(sections):
        games.append(replays_of(section, replays, values, progress))
        bodies.append(_section_html(section, number))
    parts = {name: (PAGE / name).read_text(encoding="utf-8") for name in ("page.css", "rules.js", "replay.js")}
    page = Template((PAGE / "page.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(title),
        version=__version__,
        style=parts["page.css"],
        body="\n".join(bodies),
        data=json.dumps(games, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        script=parts["rules.js"] + parts["replay.js"],
    )
    write_whole(out, page.encode(errors="backslashreplace"))  # files may hold half a surrogate pair


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
        _commands_html(section),
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
    """The leaderboard: figures of each player, and what can be told apart from the best."""
    result, (first, *others) = section.result, section.result.rows
    columns = player_columns(result, _interval)
    for name in ("IQM", f"{result.game.turn}s", f"ratio to {result.contest.baseline}", *_lower_tiles(result)):
        columns.pop(name, None)
    pairs = max(1, len(result.rows) * (len(result.rows) - 1) // 2)  # all, because the games choose the best
    confidence = 1 - (1 - CONFIDENCE) / pairs
    labels = [row.contestant.label for row in result.rows]
    columns["beside the best"] = ["", *(_versus_html(row, first, confidence) for row in others)]
    columns["records that hold"] = [_held_html(section.verdicts[label]) for label in labels]
    note = note_of(result)
    if others:
        note += " Beside the best: on the seeds of both, "
        note += f"with intervals of {100 * confidence:.4g} %, so that those of all pairs hold together (Bonferroni); "
        note += "where both have the same, half a seed counts as more."
    return _table("player", labels, columns, note)


def _lower_tiles(result: ContestResult) -> list[str]:
    """The columns of all tiles but the three largest."""
    return [f"{tile}+" for tile in result.telling_tiles[:-3]]


def _held_html(verdicts: list[Verdict]) -> str:
    """How many records hold, and how many of these were played again in part, because they hold no more."""
    held = [verdict for verdict in verdicts if not verdict.problem]
    partial = sum(verdict.proven is not None for verdict in held)
    part = f", {partial} of them up to action {RECORDED:,}" if partial else ""
    if len(held) == len(verdicts):
        return f"all {len(held)}{part}"
    return f'<b class="bad">{len(held)} of {len(verdicts)}</b>{part}'


def _groups_html(result: ContestResult) -> str:
    """Agents that differ in their training seed only, one line for each way to train."""
    if not any(len(group.rows) > 1 for group in result.groups):
        return ""
    labels = [group.label for group in result.groups]
    return _table("trained alike", labels, run_columns(result, _interval), note_of_runs(result))


def _table(first: str, labels: Sequence[str], columns: dict[str, list[str]], note: str) -> str:
    """A table in HTML: labels and headings in plain text, cells in HTML, a note below."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in (first, *columns))
    lines = zip(map(html.escape, labels), *columns.values(), strict=True)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in line) + "</tr>" for line in lines)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div><p class="note">{html.escape(note)}</p>'


def _versus_html(row: Row, first: Row, confidence: float) -> str:
    """A player beside the best, which is the first of the table."""
    try:
        versus = row.evaluation.versus(first.evaluation, confidence=confidence)
    except ValueError as error:
        return f"not compared: {html.escape(str(error))}"
    apart = versus.ratio.high < 1
    word = "lower" if apart else "cannot be told apart"
    chance = f"more on {percent(versus.higher.value)} of {versus.games} seeds"
    ratio = f"{versus.ratio.value:.2f} times [{versus.ratio.low:.2f}, {versus.ratio.high:.2f}]"
    if np.isinf(first.summary.mean.value):
        known = np.isfinite(versus.ratio.high)  # no game of the best ended, but one of the other
        ratio = f"at most {versus.ratio.high:.2f} times" if known else "ratio unknown"
    return f'<div class="beside"><span class="{"" if apart else "tied"}">{word}</span>: {ratio}, {chance}</div>'


def _plots_html(result: ContestResult, number: int) -> str:
    try:
        from mergefall_training.compare import plots
    except ModuleNotFoundError as error:
        raise DependencyNotInstalled("the page's plots need matplotlib: pip install 'mergefall[render]'") from error
    drawn = plots.draw_svg(result, f"{number}")
    figures = (f'<figure id="plot-{number}-{name}">{svg}</figure>' for name, svg in drawn.items())
    return f'<div class="plots">{"".join(figures)}</div>'


def _commands_html(section: Section) -> str:
    """For each player, its settings and the command that plays its games again."""
    items = []
    for row in section.result.rows:
        header = row.evaluation.header
        settings = json.dumps({"player": header.player, **header.options, "version": header.package})
        lines = [] if header.player == BY_HAND else [f"<code>{html.escape(command(row.evaluation))}</code>"]
        lines.append(f"<small>{html.escape(settings)}</small>")
        items.append(f"<dt>{html.escape(row.contestant.label)}</dt><dd>{'<br>'.join(lines)}</dd>")
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
