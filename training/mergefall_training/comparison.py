"""Comparison: every player of a suite on the same seeds, side by side, in the terminal, in files and in pictures."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from mergefall import __version__
from mergefall.checks import integer
from mergefall.threads import cores
from mergefall_baselines import make
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mergefall_training.console import console
from mergefall_training.evaluation import evaluate
from mergefall_training.learning.runs import train
from mergefall_training.records import write_whole
from mergefall_training.results import GameResult, Row
from mergefall_training.statistics import Interval
from mergefall_training.suites import Entry, Game, Suite, load_suite
from mergefall_training.workers import process_pool

FORMAT = "mergefall comparison"
VERSION = 1


def compare(
    suite: str | os.PathLike[str] | Suite,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    *,
    executor: str = "processes",
    progress: bool = True,
    screen: Console | None = None,
) -> list[GameResult]:
    """Play a suite and print one table per game; ``suite`` is a name, a YAML file or a `Suite`.

    With ``out``, a folder, episodes go to ``<game>/<label>.jsonl`` as they end (the same call resumes a stopped run),
    and ``results.csv``, ``results.json`` and plots follow. Plots need the extra ``render``; without it that is said.
    """
    if not isinstance(suite, Suite):
        suite = load_suite(suite)
    screen = screen or console()
    folder = None if out is None else Path(out)
    trained = [entry.label for game in suite.games for entry in game.players if entry.training is not None]
    if trained and folder is None:
        raise ValueError(f"{trained[0]!r} is trained for the comparison; name a folder for its runs (out)")
    results = []
    workers = cores() if workers is None else integer("workers", workers, 1)
    parallel = executor == "processes" and workers > 1
    with process_pool(workers) if parallel else nullcontext(executor) as shared:
        for game in suite.games:
            rows = [row for entry in game.players for row in _rows(game, entry, folder, workers, shared, progress)]
            result = GameResult(game, sorted(_with_ratios(rows, game), key=lambda row: -row.summary.mean.value))
            print_result(result, screen)
            results.append(result)
    if folder is not None:
        _write(folder, suite, results, screen)
    return results


def _rows(game: Game, entry: Entry, folder: Path | None, workers: int, executor: Any, progress: bool) -> list[Row]:
    """The rows of an entry: one, or one for each agent that is trained for it."""
    if entry.training is None:
        return [_play(game, entry, folder, workers, executor, progress)]
    assert folder is not None
    rows = []
    for seed in range(entry.training.seeds):
        label = entry.label if entry.training.seeds == 1 else f"{entry.label}, seed {seed}"
        path = folder / game.name / "runs" / replace(entry, label=label).file_name
        run = train(path, entry.training.config(game, seed), resume="auto", progress=progress)
        trained = replace(entry, player=path.as_posix(), options={"model": "last"}, label=label)
        row = _play(game, trained, folder, workers, executor, progress)
        rows.append(replace(row, group=entry.label, training_seed=seed, curve=run.points))
    return rows


def _play(game: Game, entry: Entry, folder: Path | None, workers: int, executor: Any, progress: bool) -> Row:
    player = make(entry.player, **entry.options)
    evaluation = evaluate(
        player,
        game.env,
        entry.episodes,
        game.seed,
        game.env_kwargs,
        workers,
        folder / game.name / f"{entry.file_name}.jsonl" if folder else None,
        max_episode_steps=game.max_episode_steps,
        executor=executor,
        progress=progress,
    )
    return Row(entry, evaluation, evaluation.summary(), player.batched and executor != "ray")


def _with_ratios(rows: list[Row], game: Game) -> list[Row]:
    base = next((row for row in rows if row.entry.label == game.baseline), None)
    if base is None:
        return rows
    return [row if row is base else replace(row, ratio=row.evaluation.ratio(base.evaluation)) for row in rows]


# -- the table --------------------------------------------------------------------------------------------------------


def print_result(result: GameResult, screen: Console) -> None:
    """Print a game's table with what its figures rest on."""
    screen.print(Text.assemble((result.game.name, "bold"), ": ", result.conditions), soft_wrap=True)
    screen.print(_table(result))
    screen.print(f"[dim]{_note(result)}[/dim]", highlight=False, soft_wrap=True)
    if any(len(group.rows) > 1 for group in result.groups):
        screen.print(_runs_table(result))
        screen.print("[dim]Over training seeds, with Student's 95% intervals.[/dim]", highlight=False, soft_wrap=True)


def _runs_table(result: GameResult) -> Table:
    """One line per group of agents trained alike, each estimate above its interval."""
    view = Table(padding=(0, 1, 0, 0), box=None)
    base = next((group.label for group in result.groups if group.label == result.game.baseline), None)
    view.add_column("trained alike", overflow="fold", min_width=16)
    for name in ("runs", f"mean {result.kind.headline}", "of each", *([f"more than {base}"] if base else [])):
        view.add_column(Text(name), justify="right", overflow="fold")
    for group in result.groups:
        means = " ".join(short(row.summary.mean.value) for row in group.rows)
        cells = [Text(group.label), str(len(group.rows)), _cell(group.mean, short), means]
        view.add_row(*cells, *([_cell(group.gain, short)] if base else []))
    return view


def _note(result: GameResult) -> str:
    """Where the table's intervals come from."""
    headline = result.kind.headline
    note = "Below each estimate its 95% interval: bootstrap"
    if result.all_tiles:
        note += ", Wilson's for shares of games that reached a tile"
    if any(row.evaluation.censored for row in result.rows):
        note += (
            f"; where games were capped, the mean is all {headline} / deaths (maximum likelihood for exponential games)"
            " with the exact Poisson interval, and a ratio has the exact binomial one"
        )
    if batched := [row.entry.label for row in result.rows if row.batched]:
        note += f"; ms/{result.kind.turn} of many games side by side: {', '.join(batched)}"
    return f"{note}."


def _table(result: GameResult) -> Table:
    """One line per player, each estimate above its interval."""
    view = Table(padding=(0, 1, 0, 0), box=None)
    view.add_column("player", overflow="fold", min_width=16)
    kind, capped = result.kind, any(row.summary.capped for row in result.rows)
    names = ["N", f"mean {kind.headline}", "median", "IQM", *(f"{tile}+" for tile in result.telling_tiles)]
    names += [f"{kind.turn}s", f"ms/{kind.turn}", *(["capped"] if capped else [])]
    names += ["deaths"] if capped and kind.memoryless else []
    for name in names:
        view.add_column(name, justify="right", no_wrap=True)
    ratios = any(row.ratio for row in result.rows)
    if ratios:
        view.add_column(Text(f"over {result.game.baseline}"), justify="right", overflow="fold")
    for row in result.rows:
        summary = row.summary
        cells: list[str | Text] = [Text(row.entry.label), str(summary.episodes)]
        cells += [_cell(estimate, short) for estimate in (summary.mean, summary.median, summary.iqm)]
        cells += [_cell(row.evaluation.tile_rate(tile), percent) for tile in result.telling_tiles]
        cells += [short(summary.moves_per_game), np.format_float_positional(summary.ms_per_move, 2, fractional=False)]
        cells += [str(summary.capped)] if capped else []
        cells += [str(summary.deaths)] if capped and kind.memoryless else []
        cells += [_cell(row.ratio, short)] if ratios else []
        view.add_row(*cells)
    return view


def _cell(interval: Interval | None, number: Callable[[float], str]) -> str:
    """An estimate above its interval; a dash for what the games cannot tell."""
    if interval is None:
        return "-"
    value = number(interval.value) if math.isfinite(interval.value) else "-"
    ends = f"{number(interval.low)}-{number(interval.high)}" if math.isfinite(interval.low) else "-"
    return f"{value}\n[dim]{ends}[/dim]"


def short(number: float) -> str:
    """A number to three digits.

    >>> [short(x) for x in (7, 66.96, 387.2, 27345, 387222, 12345678, float("inf"))]
    ['7.00', '67.0', '387', '27.3k', '387k', '12.3M', 'inf']
    """
    if math.isinf(number):
        return "inf"
    for unit, size in (("M", 1e6), ("k", 1e3), ("", 1.0)):
        if abs(number) >= 0.9995 * size or not unit:
            scaled = number / size
            digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
            return f"{scaled:.{digits}f}{unit}"
    raise AssertionError("the last unit takes every number")


def percent(share: float) -> str:
    """A share in whole per cent.

    >>> percent(0.126)
    '13%'
    """
    return f"{share:.0%}"


# -- files ------------------------------------------------------------------------------------------------------------


def _write(folder: Path, suite: Suite, results: list[GameResult], screen: Console) -> None:
    write_whole(folder / "results.csv", _csv(results).encode())
    write_whole(folder / "results.json", json.dumps(_json(suite, results), indent=2, allow_nan=False).encode())
    written = ["results.csv", "results.json"]
    try:
        from mergefall_training import plots
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        screen.print("No plots: matplotlib is missing. pip install 'mergefall\\[render]' brings it.", highlight=False)
    else:
        for result in results:
            for name, png in plots.draw(result).items():
                write_whole(folder / result.game.name / f"{name}.png", png)
                written.append(f"{result.game.name}/{name}.png")
    screen.print(Text(f"written to {folder}: {', '.join(written)}"), soft_wrap=True)


def _csv(results: list[GameResult]) -> str:
    rows = [_flat(result, row) for result in results for row in result.rows]
    # Games differ in their tiles: a column that a game does not have stays empty there.
    columns = list(dict.fromkeys(name for cells in rows for name in cells))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(result: GameResult, row: Row) -> dict[str, Any]:
    """A row as one level of names and values; an interval becomes three of them."""
    header, summary = row.evaluation.header, row.summary
    cells = {
        "game": result.game.name,
        "label": row.entry.label,
        "player": header.player,
        "options": json.dumps(header.options),
        "env": header.env_id,
        "env_kwargs": json.dumps(header.env_kwargs),
        "max_episode_steps": header.max_episode_steps,
    }
    figures = {name: value for name, value in vars(summary).items() if name != "tiles"}
    figures |= {f"tile_{tile}": row.evaluation.tile_rate(tile) for tile in result.all_tiles}
    figures |= {} if row.ratio is None else {"ratio": row.ratio}
    for name, value in figures.items():
        if isinstance(value, Interval):
            cells |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        else:
            cells[name] = value
    return cells


def _json(suite: Suite, results: list[GameResult]) -> dict[str, Any]:
    games = []
    for result in results:
        header = result.rows[0].evaluation.header
        players = [
            {
                "label": row.entry.label,
                "player": row.evaluation.header.player,
                "options": row.evaluation.header.options,
                **_finite(asdict(row.summary)),
                **({} if row.ratio is None else {"ratio": _finite(asdict(row.ratio))}),
            }
            for row in result.rows
        ]
        games.append(
            {
                "name": result.game.name,
                "env": header.env_id,
                "env_kwargs": header.env_kwargs,
                "max_episode_steps": header.max_episode_steps,
                "baseline": result.game.baseline,
                "players": players,
                "trained": [
                    {
                        "label": group.label,
                        "runs": [row.evaluation.header.player for row in group.rows],
                        "mean": _finite(asdict(group.mean)),
                        "gain": None if group.gain is None else _finite(asdict(group.gain)),
                    }
                    for group in result.groups
                ],
            }
        )
    return {"format": FORMAT, "version": VERSION, "package": __version__, "suite": suite.name, "games": games}


def _finite(value: Any) -> Any:
    """The value with None for NaN and infinity, which JSON does not know."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
