"""Comparison: every player of a suite on the same seeds, as a table in the terminal, as files and as plots."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import groupby, permutations
from pathlib import Path
from typing import Any

from gymnasium.error import DependencyNotInstalled
from mergefall import __version__
from mergefall.checks import in_place
from mergefall.imports import import_extra
from mergefall.typing import Dict, FilePath
from mergefall_baselines import make
from rich.text import Text

from mergefall_training.compare.league import LeagueResult
from mergefall_training.compare.results import ContestResult, Row, series_table
from mergefall_training.compare.suite import Contest, Contestant, load_suite
from mergefall_training.files import json_text, read_json, write_whole
from mergefall_training.learn.run import Config, Point, begun, train
from mergefall_training.play.evaluation import evaluate
from mergefall_training.play.statistics import short
from mergefall_training.play.tables import to_markdown, to_terminal
from mergefall_training.play.workers import on_processes, process_pool, workers_of
from mergefall_training.progress import console, progress_bar

FORMAT = "mergefall comparison"


def compare(
    suite: FilePath,
    out: FilePath | None = None,
    workers: int | None = None,
    *,
    games: Sequence[str] | None = None,
    executor: str = "processes",
    progress: bool = True,
) -> list[ContestResult]:
    """Play a suite and print one table per contest, or per series of contests.

    Args:
        suite: the name of a suite that comes with the package, or a YAML file.
        out: folder for the results. Each finished episode is appended to ``<contest>/<label>.jsonl``, so that the same
            call resumes a stopped run; ``results.json``, and in ``<contest>`` a table in Markdown and plots follow.
            Plots need the extra ``render``.
        games: names of the suite's games to play; default: all of them.
        workers, executor, progress: as in `evaluate`. Agents are trained one in each worker process.

    Raises ValueError for a suite that makes no sense or lacks one of `games`, for one that trains agents without `out`,
    and, before anything is trained, for a run that its learner refuses.
    """
    chosen, folder, workers = load_suite(suite), None if out is None else Path(out), workers_of(workers)
    contests = chosen.contests if games is None else chosen.only(games)
    runs = {contest.name: list(_runs(contest, folder)) for contest in contests}
    results: list[ContestResult] = []
    parallel = executor == "processes" and workers > 1
    with process_pool(workers) if parallel else nullcontext(executor) as shared:

        def play(contest: Contest, one: Contestant) -> Row:
            player = make(one.player, **one.options)
            evaluation = evaluate(
                player,
                contest.match,
                one.episodes,
                contest.seed,
                workers=workers,
                out=folder / contest.name / f"{one.file_name}.jsonl" if folder else None,
                executor=shared,
                progress=progress,
            )
            return Row(one.label, evaluation, player.batched and executor != "ray")

        def result(contest: Contest) -> ContestResult:
            if contest.league:
                matches = {}
                for one, other in permutations(contest.players, 2):
                    opponent = {"player": other.player, **other.options}
                    against = replace(contest, env_kwargs={**contest.env_kwargs, "opponent": opponent})
                    pair = replace(one, label=f"{one.label} vs {other.label}")
                    matches[one.label, other.label] = play(against, pair).evaluation
                return LeagueResult.of(contest.name, matches, contest.baseline)
            curves = _trained(contest.name, runs[contest.name], shared, progress)
            rows = [play(contest, player) for player in contest.players if player.training is None]
            for (agent, group, config), curve in zip(runs[contest.name], curves, strict=True):
                rows.append(replace(play(contest, agent), group=group, training_seed=config.seed, curve=curve))
            return ContestResult(contest.name, rows, contest.baseline, contest.adversary, contest.series)

        for _, alike in groupby(contests, lambda contest: contest.series or contest.name):
            played = [result(contest) for contest in alike]
            if played[0].series:
                to_terminal(series_table(played))
            else:
                print_result(played[0])
            results += played
    if folder is not None:
        _write(folder, chosen.name, results)
    return results


def print_result(result: ContestResult) -> None:
    """Print a contest's tables."""
    for table in (result.table(), *result.more_tables()):
        to_terminal(table)


# -- agents that are trained for a comparison -------------------------------------------------------------------------


def _runs(contest: Contest, folder: Path | None) -> Iterator[tuple[Contestant, str, Config]]:
    """The agents that are trained for a contest, as players of their run folders, with the labels of their contestants.

    Raises ValueError for a new run that its learner refuses.
    """
    for contestant in contest.players:
        training = contestant.training
        if training is None:
            continue
        if folder is None:
            raise ValueError(f"{contestant.label!r} is trained for the comparison; name a folder for its runs (out)")
        for seed in range(training.seeds):
            label = contestant.label if training.seeds == 1 else f"{contestant.label}, seed {seed}"
            agent = replace(contestant, label=label)
            path = folder / (contest.series or contest.name) / "runs" / agent.file_name
            agent = replace(agent, player=path.as_posix(), options={"model": "last"})
            config = training.config(contest, seed)
            if seed == 0 and not (path / "config.json").exists():  # the others differ in their seed only
                with in_place(f"{contest.name}: {contestant.label}"):
                    begun(config)
            yield agent, contestant.label, config


def _trained(name: str, runs: list[tuple[Contestant, str, Config]], executor: Any, progress: bool) -> list[list[Point]]:
    """Train agents, or go on where that stopped: several in worker processes, one here. Returns their curves."""
    if len(runs) < 2 or not isinstance(executor, ProcessPoolExecutor):
        return [_train(agent.player, config, progress) for agent, _, config in runs]
    curves = []
    jobs = [(agent.player, config, False) for agent, _, config in runs]
    with progress_bar(f"{name}: training runs", len(jobs), enabled=progress) as show:
        for points in on_processes(executor, _train, jobs, in_order=True):
            curves.append(points)
            show(len(curves), f"mean {short(points[-1].mean)}")
    return curves


def _train(path: str, config: Config, progress: bool) -> list[Point]:
    return train(path, config, resume=True, progress=progress).points


# -- files ------------------------------------------------------------------------------------------------------------


def _write(folder: Path, suite: str, results: list[ContestResult]) -> None:
    """Write the results; those of the suite's games that were played before, and not now, stay."""
    about = {"format": FORMAT, "version": 1, "package": __version__, "suite": suite}
    there, names = read_results(folder / "results.json"), {result.name for result in results}
    games = [result.content() for result in results]
    if about.items() <= there.items():
        games += [game for game in there.get("games", []) if game["name"] not in names]
    files = {"results.json": json_text(about | {"games": games}, indent=2).encode()}
    for result in results:
        files[f"{result.name}/table.md"] = f"{result.conditions}\n\n{to_markdown(result.table())}\n".encode()
    screen = console()
    try:
        plots = import_extra("mergefall_training.compare.plots")
    except DependencyNotInstalled as error:
        screen.print(f"No plots: {error}")
    else:
        drawn = {result.name: plots.draw(result) for result in results if not result.series}
        files |= {f"{place}/{name}.png": png for place, pictures in drawn.items() for name, png in pictures.items()}
    for name, data in files.items():
        write_whole(folder / name, data)
    screen.print(Text(f"written to {folder}: {', '.join(files)}"), soft_wrap=True)


def read_results(path: Path) -> Dict:
    """What `results.json` holds; empty if there is none, or if another program wrote it."""
    if not path.is_file():
        return {}
    content = read_json(path, but=["games"])  # of which nothing is made
    return content if isinstance(content, dict) and content.get("format") == FORMAT else {}
