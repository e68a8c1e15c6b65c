"""Comparison: every player of a suite on the same seeds, as a table in the terminal, as files and as plots."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from mergefall import __version__
from mergefall_baselines import make
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mergefall_training.compare.results import ContestResult, Row, Series, series_of
from mergefall_training.compare.suite import Contest, Contestant, Suite, Training, load_suite
from mergefall_training.files import write_whole
from mergefall_training.learn import trainer
from mergefall_training.learn.run import Run, read_config, train
from mergefall_training.play.evaluation import evaluate
from mergefall_training.play.statistics import Interval, plain
from mergefall_training.play.workers import on_processes, process_pool, workers_of
from mergefall_training.progress import console, progress_bar

FORMAT = "mergefall comparison"
VERSION = 1
Show = Callable[[Interval | None, Callable[[float], str]], str]  # how a table writes an estimate and its numbers
NAME = 24  # columns of the screen for a player's name, if that is as long


def compare(
    suite: str | os.PathLike[str] | Suite,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    *,
    games: Sequence[str] | None = None,
    executor: str = "processes",
    progress: bool = True,
    screen: Console | None = None,
) -> list[ContestResult]:
    """Play a suite and print one table per contest, or per series of contests.

    Args:
        suite: the name of a suite that comes with the package, a YAML file, or a `Suite`.
        out: folder for the results. Each finished episode is appended to ``<contest>/<label>.jsonl``, so that the same
            call resumes a stopped run; ``results.csv``, ``results.json`` and plots follow. Plots need the extra
            ``render``.
        games: names of the suite's games to play; default: all of them.
        workers, executor, progress: as in `evaluate`. Agents are trained one in each worker process.
        screen: where tables are printed; default: standard output.

    Raises ValueError for a suite that makes no sense or lacks one of `games`, for one that trains agents without `out`,
    and, before anything is trained, for a run that its learner refuses.
    """
    if not isinstance(suite, Suite):
        suite = load_suite(suite)
    if games is not None:
        suite = suite.only(games)
    screen = screen or console()
    folder = None if out is None else Path(out)
    trained = [entry.label for contest in suite.contests for entry in contest.players if entry.training is not None]
    if trained and folder is None:
        raise ValueError(f"{trained[0]!r} is trained for the comparison; name a folder for its runs (out)")
    workers = workers_of(workers)
    if folder is not None:
        for contest in suite.contests:
            for contestant in contest.players:
                _check_training(contest, contestant, folder)
    results: list[ContestResult] = []
    parallel = executor == "processes" and workers > 1
    with process_pool(workers) if parallel else nullcontext(executor) as shared:
        for _, alike in groupby(suite.contests, lambda contest: contest.series or contest.name):
            played = [_result(contest, folder, workers, shared, progress) for contest in alike]
            for series in series_of(played):
                print_series(series, screen)
            for result in played:
                if not result.contest.series:
                    print_result(result, screen)
            results += played
    if folder is not None:
        _write(folder, suite, results, screen)
    return results


def _result(contest: Contest, folder: Path | None, workers: int, executor: Any, progress: bool) -> ContestResult:
    if isinstance(executor, ProcessPoolExecutor) and folder is not None:
        _train_side_by_side(contest, folder, executor, progress)
    rows = [row for one in contest.players for row in _rows(contest, one, folder, workers, executor, progress)]
    return ContestResult(contest, sorted(_with_ratios(rows, contest), key=lambda row: -row.summary.mean.value))


def _rows(
    contest: Contest, contestant: Contestant, folder: Path | None, workers: int, executor: Any, progress: bool
) -> list[Row]:
    """The rows of a contestant: one, or one for each agent that is trained for it."""
    if contestant.training is None:
        return [_play(contest, contestant, folder, workers, executor, progress)]
    assert folder is not None
    rows = []
    for seed, label, path in _runs(contest, contestant, folder):
        run = _train(path, contestant.training, contest, seed, progress)
        trained = replace(contestant, player=path.as_posix(), options={"model": "last"}, label=label)
        row = _play(contest, trained, folder, workers, executor, progress)
        rows.append(replace(row, group=contestant.label, training_seed=seed, curve=run.points))
    return rows


def _runs(contest: Contest, contestant: Contestant, folder: Path) -> list[tuple[int, str, Path]]:
    """(training seed, label, run folder) of the agents that are trained for a contestant."""
    seeds = 0 if contestant.training is None else contestant.training.seeds
    found = []
    for seed in range(seeds):
        label = contestant.label if seeds == 1 else f"{contestant.label}, seed {seed}"
        name = replace(contestant, label=label).file_name
        found.append((seed, label, folder / (contest.series or contest.name) / "runs" / name))
    return found


def _check_training(contest: Contest, contestant: Contestant, folder: Path) -> None:
    """Raise ValueError if a learner refuses a contestant's first run, or the run before it, and it has not begun."""
    if (training := contestant.training) is None:
        return
    seed, _, path = _runs(contest, contestant, folder)[0]
    while training is not None:
        if not (path / "config.json").exists():
            try:
                trainer(training.algorithm).check(training.config(contest, seed))
            except ValueError as error:
                raise ValueError(f"{contest.name}: {contestant.label}: {error}") from error
        elif training.after is not None and not _warm_start(path, training, contest, seed):
            raise ValueError(f"{path} holds a run that began from nothing; expected one that went on from another run")
        training, path = training.after, _before(path)


def _warm_start(path: Path, training: Training, contest: Contest, seed: int) -> str | None:
    """The run that the run in a folder began from."""
    return read_config(path, asdict(training.config(contest, seed))).hyperparameters.get("warm_start")


def _before(path: Path) -> Path:
    """The folder of the run that the run in a folder begins from."""
    return path.with_name(f"{path.name}-first")


def _train_side_by_side(contest: Contest, folder: Path, pool: ProcessPoolExecutor, progress: bool) -> None:
    """Train a contest's agents, one in each process; a single one is left to `_train`, with all cores."""
    jobs = [
        (path, contestant.training, contest, seed, False)
        for contestant in contest.players
        for seed, _, path in _runs(contest, contestant, folder)
    ]
    if len(jobs) < 2:
        return
    with progress_bar(f"{contest.name}: training runs", len(jobs), enabled=progress) as show:
        for done, run in enumerate(on_processes(pool, _trained, jobs), start=1):
            show(done, run)


def _trained(path: Path, *job: Any) -> str:
    """Train in a worker process; returns what to show."""
    points = _train(path, *job).points
    return f"{path.name}: mean {plain(points[-1].mean)}"


def _train(path: Path, training: Training, contest: Contest, seed: int, progress: bool) -> Run:
    """Train in a folder, after the runs that this one begins from, or go on where that stopped."""
    warm_start = None
    if training.after is not None:
        first = _before(path)
        _train(first, training.after, contest, seed, progress)
        warm_start = first.as_posix()
        if (path / "checkpoint.npz").exists():  # the folder may have been moved since
            warm_start = _warm_start(path, training, contest, seed) or warm_start
    return train(path, training.config(contest, seed, warm_start), resume="auto", progress=progress)


def _play(
    contest: Contest, contestant: Contestant, folder: Path | None, workers: int, executor: Any, progress: bool
) -> Row:
    player = make(contestant.player, **contestant.options)
    evaluation = evaluate(
        player,
        contest.env,
        contestant.episodes,
        contest.seed,
        contest.env_kwargs,
        workers,
        folder / contest.name / f"{contestant.file_name}.jsonl" if folder else None,
        max_episode_steps=contest.max_episode_steps,
        adversary=contest.adversary,
        executor=executor,
        progress=progress,
    )
    return Row(contestant, evaluation, evaluation.summary(), player.batched and executor != "ray")


def _with_ratios(rows: list[Row], contest: Contest) -> list[Row]:
    base = next((row for row in rows if row.contestant.label == contest.baseline), None)
    if base is None:
        return rows
    return [row if row is base else replace(row, ratio=row.evaluation.ratio(base.evaluation)) for row in rows]


# -- the table --------------------------------------------------------------------------------------------------------


def print_result(result: ContestResult, screen: Console) -> None:
    """Print a contest's table, above it the conditions, below it where the intervals come from."""
    screen.print(Text.assemble((result.contest.name, "bold"), ": ", result.conditions), soft_wrap=True)
    view, missing = _table(result, screen)
    screen.print(view)
    print_note(note_of(result), screen)
    if missing:
        print_note(f"Left out, as there is no room: {', '.join(missing)}.", screen)
    if any(len(group.rows) > 1 for group in result.groups):
        screen.print(_runs_table(result))
        print_note(note_of_runs(result), screen)


def print_note(note: str, screen: Console) -> None:
    """Print a note below a table; labels in it may hold brackets."""
    screen.print(Text(note, "dim"), soft_wrap=True)


def _runs_table(result: ContestResult) -> Table:
    """One line per group of agents that differ in their training seed only."""
    view = Table(padding=(0, 1, 0, 0), box=None)
    view.add_column("trained alike", overflow="fold", min_width=16)
    columns = run_columns(result, cell)
    for name in columns:
        view.add_column(Text(name), justify="right", overflow="fold")
    for group, *cells in zip(result.groups, *columns.values(), strict=True):
        view.add_row(Text(group.label), *cells)
    return view


def run_columns(result: ContestResult, show: Show) -> dict[str, list[str]]:
    """The cells of the groups' table by column, without the groups' labels."""
    groups = result.groups
    columns = {"runs": [str(len(group.rows)) for group in groups]}
    columns[f"mean {result.headline}"] = [show(group.mean, short) for group in groups]
    columns["of each"] = [" ".join(short(row.summary.mean.value) for row in group.rows) for group in groups]
    if any(group.label == result.contest.baseline for group in groups):
        columns[f"more than {result.contest.baseline}"] = [show(group.gain, short) for group in groups]
        columns["chance of more"] = [show(group.better, percent) for group in groups]
    return columns


def print_series(series: Series, screen: Console) -> None:
    """Print the table of a series: one column per rate, each mean above its interval.

    Agents that differ in their training seed only share a line.
    """
    screen.print(Text.assemble((series.name, "bold"), ": ", series.conditions), soft_wrap=True)
    view = Table(padding=(0, 1, 0, 0), box=None)
    view.add_column("player", overflow="fold", min_width=16)
    for name in ("N", *(f"rate {rate:g}" for rate in series.rates)):
        view.add_column(name, justify="right", no_wrap=True)
    for line in series.lines:
        n = str(line.episodes) if line.runs == 1 else f"{line.runs}×{line.episodes}"
        view.add_row(Text(line.label), n, *(cell(mean, short) for mean in line.means))
    screen.print(view)
    headline = series.headline
    note = f"Mean {headline} at each rate of the adversary, below it its 95% interval: bootstrap"
    if any(line.runs > 1 for line in series.lines):
        note += ", Student's over training seeds where there are several"
    note += _censoring((row for result in series.results for row in result.rows), headline)
    print_note(f"{note}.", screen)


def _censoring(rows: Iterable[Row], headline: str) -> str:
    """How capped games count, if there are any."""
    if not any(row.evaluation.censored for row in rows):
        return ""
    return (
        f"; where games were capped, the mean is all {headline} / deaths (maximum likelihood for exponential games)"
        " with the exact Poisson interval, and a ratio has the exact binomial one"
    )


def note_of_runs(result: ContestResult) -> str:
    """Where the intervals of agents that were trained alike come from."""
    chances = "; chances of more with Newcombe's" if any(group.better for group in result.groups) else ""
    return f"Over training seeds, with Student's 95% intervals{chances}."


def note_of(result: ContestResult) -> str:
    """Where the table's intervals come from."""
    note = "Below each estimate its 95% interval: bootstrap"
    if result.all_tiles:
        note += ", Wilson's for shares of games that reached a tile"
    note += _censoring(result.rows, result.headline)
    if any(row.summary.stuck for row in result.rows):
        note += "; stuck: games that ended because the player chose illegal actions, `illegal_limit` in a row"
    if result.rows[0].evaluation.header.adversary is not None:
        note += f"; ms/{result.game.turn} include the adversary's time"
    if batched := list(dict.fromkeys(row.group or row.contestant.label for row in result.rows if row.batched)):
        note += f"; ms/{result.game.turn} of many games side by side: {', '.join(batched)}"
    return f"{note}."


def _table(result: ContestResult, screen: Console) -> tuple[Table, list[str]]:
    """One line per player, each estimate above its interval; and the columns for which the screen has no room.

    Those that say least go first. Players' names never go.
    """
    columns, missing = player_columns(result, cell), []
    endless = Console(width=10_000)  # a measure is never more than the width of its screen
    for name in ("IQM", "median", *(f"{tile}+" for tile in result.telling_tiles[:-1]), f"{result.game.turn}s"):
        if name in columns and endless.measure(_view(result, columns, NAME)).maximum > screen.width:
            del columns[name]
            missing.append(name)
    return _view(result, columns), missing


def player_columns(result: ContestResult, show: Show) -> dict[str, list[str]]:
    """The cells of the players' table by column, without the players' labels."""
    game, rows = result.game, result.rows
    summaries = [row.summary for row in rows]
    columns = {"N": [str(summary.episodes) for summary in summaries]}
    columns[f"mean {result.headline}"] = [show(summary.mean, short) for summary in summaries]
    columns["median"] = [show(summary.median, short) for summary in summaries]
    columns["IQM"] = [show(summary.iqm, short) for summary in summaries]
    for tile in result.telling_tiles:
        columns[f"{tile}+"] = [show(row.evaluation.tile_rate(tile), percent) for row in rows]
    columns[f"{game.turn}s"] = [short(summary.moves_per_game) for summary in summaries]
    times = [np.format_float_positional(summary.ms_per_move, 2, fractional=False).rstrip(".") for summary in summaries]
    columns[f"ms/{game.turn}"] = times
    if any(summary.capped for summary in summaries):
        columns["capped"] = [str(summary.capped) for summary in summaries]
        if game.memoryless:
            columns["deaths"] = [str(summary.deaths) for summary in summaries]
    if any(summary.stuck for summary in summaries):
        columns["stuck"] = [str(summary.stuck) for summary in summaries]
    if any(row.ratio for row in rows):
        columns[f"ratio to {result.contest.baseline}"] = [show(row.ratio, short) for row in rows]
    return columns


def _view(result: ContestResult, columns: dict[str, list[str]], most: int | None = None) -> Table:
    """The table of these columns; `most`: columns of the screen that a name may take."""
    labels = [row.contestant.label for row in result.rows]
    view = Table(padding=(0, 1, 0, 0), box=None)
    view.add_column("player", overflow="fold", min_width=min(max(map(len, labels)), NAME), max_width=most)
    for name in columns:
        view.add_column(Text(name), justify="right", overflow="fold", no_wrap=not name.startswith("ratio"))
    for label, *cells in zip(labels, *columns.values(), strict=True):
        view.add_row(Text(label), *cells)
    return view


def cell(interval: Interval | None, number: Callable[[float], str]) -> str:
    """An estimate above its interval; a dash where the games allow no estimate."""
    if interval is None:
        return "-"
    value = number(interval.value) if math.isfinite(interval.value) else "-"
    dash = "-" if interval.low >= 0 else " to "  # a dash beside a minus sign is hard to read
    ends = f"{number(interval.low)}{dash}{number(interval.high)}" if math.isfinite(interval.low) else "-"
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


def _write(folder: Path, suite: Suite, results: list[ContestResult], screen: Console) -> None:
    before = _not_played(folder, suite, results)
    write_whole(
        folder / "results.csv", _csv(folder / "results.csv", results, {game["name"] for game in before}).encode()
    )
    content = _about(suite) | {"games": _json(results) + before}
    write_whole(folder / "results.json", json.dumps(content, indent=2, allow_nan=False).encode())
    written = ["results.csv", "results.json"]
    try:
        from mergefall_training.compare import plots
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("matplotlib"):
            raise
        screen.print("No plots: matplotlib is missing. pip install 'mergefall\\[render]' brings it.", highlight=False)
    else:
        drawn = {result.contest.name: plots.draw(result) for result in results if not result.contest.series}
        drawn |= {series.name: plots.draw_series(series) for series in series_of(results)}
        for place, pictures in drawn.items():
            for name, png in pictures.items():
                write_whole(folder / place / f"{name}.png", png)
                written.append(f"{place}/{name}.png")
    screen.print(Text(f"written to {folder}: {', '.join(written)}"), soft_wrap=True)


def _about(suite: Suite) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "package": __version__, "suite": suite.name}


def _not_played(folder: Path, suite: Suite, results: list[ContestResult]) -> list[dict[str, Any]]:
    """What `results.json` says of the suite's games that were played before, and not now."""
    before, played = read_results(folder / "results.json"), {result.name for result in results}
    if any(before.get(name) != value for name, value in _about(suite).items()):
        return []
    return [game for game in before["games"] if game["name"] not in played]


def _csv(path: Path, results: list[ContestResult], kept: Collection[str]) -> str:
    """A line for each player; those of the games `kept` stay as they are in the file."""
    rows = [record for result in results for record in result.records()]
    if kept and path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            rows += [row for row in csv.DictReader(file) if row.get("game") in kept]
    # Contests differ in their tiles: a column that a contest lacks stays empty there.
    columns = list(dict.fromkeys(name for cells in rows for name in cells))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json(results: list[ContestResult]) -> list[dict[str, Any]]:
    games: list[dict[str, Any]] = []
    for result in results:
        header = result.rows[0].evaluation.header
        players = [
            {
                "label": row.contestant.label,
                "player": row.evaluation.header.player,
                "options": row.evaluation.header.options,
                "batched": row.batched,
                **_finite(asdict(row.summary)),
                **({} if row.ratio is None else {"ratio": _finite(asdict(row.ratio))}),
            }
            for row in result.rows
        ]
        games.append(
            {
                "name": result.contest.name,
                "env": header.env_id,
                "env_kwargs": header.env_kwargs,
                "max_episode_steps": header.max_episode_steps,
                "adversary": result.contest.adversary,
                "baseline": result.contest.baseline,
                "players": players,
                "trained": [
                    {
                        "label": group.label,
                        "runs": [row.evaluation.header.player for row in group.rows],
                        "mean": _finite(asdict(group.mean)),
                        "gain": None if group.gain is None else _finite(asdict(group.gain)),
                        "better": None if group.better is None else _finite(asdict(group.better)),
                    }
                    for group in result.groups
                ],
            }
        )
    return games


def read_results(path: Path) -> dict[str, Any]:
    """What `results.json` holds; empty if there is none, or if another program wrote it."""
    if not path.is_file():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}


def _finite(value: Any) -> Any:
    """The value with None in place of NaN and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
