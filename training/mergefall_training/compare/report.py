"""A report: games and training runs as one HTML page with tables, plots and replays, which opens from a file.

`page/` holds parts of the page: `rules.js` states the rules of all games a second time, so that the page can play
recorded games again; `replay.js` shows them. Plots are those of `plots.py`.
"""

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from string import Template

from mergefall import __version__
from mergefall.checks import integer
from mergefall.imports import import_extra
from mergefall.typing import FilePath

from mergefall_training.compare.replays import replays_of
from mergefall_training.compare.results import ContestResult, Row
from mergefall_training.compare.sections import Section, sections_of
from mergefall_training.files import check_folder, write_whole
from mergefall_training.play.evaluation import Evaluation
from mergefall_training.play.records import RECORDED
from mergefall_training.play.statistics import CONFIDENCE, percent
from mergefall_training.play.tables import Table, to_html
from mergefall_training.play.verify import Verdict
from mergefall_training.play.watching import BY_HAND

PAGE = Path(__file__).parent / "page"


def report(
    paths: Sequence[FilePath],
    out: FilePath,
    *,
    replays: int = 2,
    values: int = 400,
    progress: bool = True,
) -> list[Section]:
    """Write a page about games and runs. Players of the same environment share a table, the best first.

    Args:
        paths: folders that `compare` wrote into, files that `evaluate` wrote, run folders, and folders of runs. Of a
            run the page shows the curve, the configuration and its last evaluation, whose games are played again.
        out: the page to write.
        replays: games of each player that can be watched, from the first seeds that all players share. Its best and its
            worst game follow.
        values: positions of such a game at which the page shows what the player thinks of each action: the first and
            the last ones, half each.
        progress: whether to show progress bars.

    Every record is verified. What cannot be read, records that do not hold and players that cannot be made are named in
    the page, and the rest counts. Raises ValueError if no path holds a game, or for a negative number.
    """
    replays, values = integer("replays", replays, 0), integer("values", values, 0)
    if not paths:
        raise ValueError("there is nothing to report on; expected files or folders of recorded games, or runs")
    check_folder(Path(out))  # before all the work
    sections = sections_of([Path(os.path.abspath(path)) for path in paths], progress)
    games = [replays_of(section, replays, values, progress) for section in sections]
    bodies = [_section_html(section, number) for number, section in enumerate(sections)]
    names = "page.html", "page.css", "rules.js", "replay.js"
    page, style, *scripts = ((PAGE / name).read_text(encoding="utf-8") for name in names)
    page = Template(page).substitute(
        title=escape(" · ".join(dict.fromkeys(section.name for section in sections))),
        version=__version__,
        style=style,
        body="\n".join(bodies),
        data=json.dumps(games, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        script="".join(scripts),
    )
    write_whole(Path(out), page.encode(errors="backslashreplace"))  # files may hold half a surrogate pair
    return sections


def _section_html(section: Section, number: int) -> str:
    """A section of the page: tables, replays, plots, configurations, and how to get the figures again."""
    result = section.result
    commands = [
        (row.label, command(row.evaluation), row.evaluation.header.package)
        for row in result.rows
        if row.evaluation.header.player != BY_HAND
    ]
    to_repeat = Table("", "", dict(zip(("player", "command", "version"), zip(*commands, strict=True), strict=False)))
    problems = "".join(f"<li>{escape(problem)}</li>" for problem in section.problems)
    parts = [
        f'<section id="game-{number}">',
        f"<h2>{escape(result.name)}</h2>",
        f'<p class="conditions">{escape(result.conditions)}</p>',
        f'<div class="problems"><p>Left out:</p><ul>{problems}</ul></div>' if problems else "",
        to_html(_players_table(section)),
        *map(to_html, result.more_tables()),
        f'<div class="replay" data-section="{number}"></div>',
        _plots_html(result, number),
        *(
            f"<details><summary>Configuration of {escape(label)}</summary>"
            f"<pre>{escape(json.dumps(asdict(config), indent=2))}</pre></details>"
            for label, config in section.configs.items()
        ),
        f"<details><summary>The command for each player</summary>{to_html(to_repeat)}</details>",
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _players_table(section: Section) -> Table:
    """The leaderboard: figures of each player, and what can be told apart from the best; of a league the ratings."""
    result, (first, *others) = section.result, section.result.rows
    table = result.table()
    columns, note = dict(table.columns), table.note
    if not section.matches:
        pairs = max(1, len(result.rows) * (len(result.rows) - 1) // 2)  # all, because the games choose the best
        confidence = 1 - (1 - CONFIDENCE) / pairs
        figures = [*columns.items()]
        beside = ["", *(_versus_text(row, first, confidence) for row in others)]
        columns = dict([*figures[:3], ("beside the best", beside), *figures[3:]])
        note += (
            f" Beside the best: on the seeds of both, with intervals of {100 * confidence:.4g} %, so that those"
            " of all pairs hold together (Bonferroni); where both have the same, half a seed counts as more."
        )
    held = [_held_text(section.verdicts.get(row.label)) for row in result.rows]
    if set(held) == {"all"}:
        note += " All records hold."
    else:
        columns["records that hold"] = held
    return Table("", "", columns, note)


def _held_text(verdicts: list[Verdict] | None) -> str:
    """How many records hold, and how many of these were played again in part, because they hold no more."""
    if verdicts is None:
        return "played for this page"
    held = [verdict for verdict in verdicts if not verdict.problem]
    partial = sum(verdict.proven is not None for verdict in held)
    count = "all" if len(held) == len(verdicts) else f"{len(held)} of {len(verdicts)}"
    return count + (f", {partial} of them up to action {RECORDED:,}" if partial else "")


def _versus_text(row: Row, first: Row, confidence: float) -> str:
    """A player beside the best, which is the first of the table."""
    try:
        versus = row.evaluation.versus(first.evaluation, confidence=confidence)
    except ValueError as error:
        return f"not compared: {error}"
    word = ("cannot be told apart", "higher", "lower")[versus.verdict]
    ratio = f"{versus.ratio} times".replace(" ", "\u00a0")  # keeps the column wide enough
    return f"{word}: {ratio}, more on {percent(versus.higher.value)} of {versus.games} seeds"


def _plots_html(result: ContestResult, number: int) -> str:
    plots = import_extra("mergefall_training.compare.plots")
    figures = ""
    for name, content in plots.draw(result, "svg").items():
        svg = content[content.index(b"<svg") :].decode()
        for written, ink in (("#000000", "currentColor"), ("#dddddd", "var(--line)"), (plots.GREY, "var(--soft)")):
            svg = svg.replace(written, ink)
        figures += f'<figure id="plot-{number}-{name}">{svg}</figure>'
    return f'<div class="plots">{figures}</div>'


def command(evaluation: Evaluation) -> str:
    """The command line that plays the same games."""
    header, first, last = evaluation.header, evaluation.episodes[0].seed, evaluation.episodes[-1].seed
    words = ["mergefall", "evaluate", header.player, "--env", header.env_id]
    words += ["--seed", str(first), "--episodes", str(last - first + 1)]
    words += ["--max-episode-steps", str(header.max_episode_steps)] if header.max_episode_steps else []
    pairs = {"--option": header.options, "--env-option": header.env_kwargs, "--adversary": header.adversary or {}}
    for option, values in pairs.items():
        for name, value in values.items():
            if value is not None:
                words += [option, f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)
