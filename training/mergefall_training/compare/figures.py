"""Records of measured figures, for the tables of results in a clone of the repository.

A record is a line of `training/figures.jsonl`; `tests/figures.py` there describes its fields and renders the tables.
"""

import math
import re
from collections.abc import Sequence
from datetime import date
from itertools import groupby
from pathlib import Path

from mergefall.typing import Dict

from mergefall_training.compare.results import ContestResult, Line
from mergefall_training.files import json_text, read_lines, write_whole
from mergefall_training.play.statistics import short

FILE = Path("training", "figures.jsonl")
# What stays when a record is measured again.
BY_HAND = ("label", "short", "front", "note", "published", "training", "again")
SAID = ("player", "options", "env", "env_kwargs", "command", *BY_HAND)  # nothing is made of it


def figure_file(key: str) -> Path:
    """The file of records of the clone that the current folder belongs to.

    Raises ValueError if there is none, and for a `key` that is not QUESTION/ID.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", key):
        raise ValueError(f"--figure {key}: expected QUESTION/ID")
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            return folder / FILE
    raise ValueError(f"there is no {FILE.as_posix()} in {here} or above; --figure is for a clone of the repository")


def write_figures(file: Path, key: str, results: Sequence[ContestResult], command: str) -> list[str]:
    """Write a record for each player, or for all agents that were trained alike, and return the records' ids.

    Of several players each has the id ID-LABEL, of several contests ID-CONTEST-LABEL. A record of the same id is
    replaced; what was written by hand (`BY_HAND`) stays.

    Args:
        file: the file of records.
        key: QUESTION/ID.
        results: contests; those of a series, which differ in the adversary's rate, make one record for each player.
        command: what prints the figures again.

    Raises ValueError if another question has a record of such an id.
    """
    question, _, id = key.partition("/")
    about = {"question": question, "command": command, "date": date.today().isoformat()}
    series = [list(alike) for _, alike in groupby(results, lambda result: result.series or result.name)]
    written: list[Dict] = []
    for contests in series:
        first = contests[0]
        for line in first.lines:
            names = [id, *[first.series or first.name] * (len(series) > 1), *[line.label] * (len(first.lines) > 1)]
            name = re.sub(r"[^\w./]+", "-", "-".join(names).lower()).strip("-")
            written.append({"id": name} | _record(contests, line) | about)
    records = {record["id"]: record for record in read_lines(file, "figures", but=SAID)[0]}
    for record in written:
        old = records.get(record["id"], record)
        if old["question"] != question:
            raise ValueError(f"the record {record['id']!r} answers the question {old['question']!r}; choose another ID")
        records[record["id"]] = record | {field: old[field] for field in BY_HAND if field in old}
    write_whole(file, "".join(f"{json_text(one, ensure_ascii=False)}\n" for one in records.values()).encode())
    return [record["id"] for record in written]


def _record(contests: Sequence[ContestResult], line: Line) -> Dict:
    row, runs, header = line.rows[0], len(line.rows), line.rows[0].evaluation.header
    turns = [getattr(e, e.game.turns if header.max_pieces else "length") for e in row.evaluation.episodes]
    ms = 1000 * sum(episode.seconds for episode in row.evaluation.episodes) / sum(turns)
    figure, _, interval = contests[0].figure(line)
    against = {}
    for contest in contests:
        _, estimate, _ = contest.figure(next(other for other in contest.lines if other.label == line.label))
        numbers = estimate.value, estimate.low, estimate.high  # infinite where no game ended, NaN for ends of one game
        known = [float(f"{number:.6g}") if math.isfinite(number) else None for number in numbers]
        against[f"{(contest.adversary or {}).get('rate', 0):g}"] = known
    record = {
        "label": line.label,
        "player": header.player,
        "options": {name: value for name, value in header.options.items() if name != "checksum"},
        "env": header.env_id,
        "env_kwargs": header.env_kwargs,
        "cap": f"{header.max_pieces} pieces" if header.max_pieces else header.max_episode_steps,
        "episodes": contests[0].games_of(row),
        "seed": row.summary.first_seed,
        "figure": figure,
        "mean": None,
        **dict(zip(("mean", "low", "high"), against.pop("0", ()), strict=False)),
        "against": against,
        "ms": None if against else float(f"{ms:.2g}"),
        "interval": interval,
    }
    if runs > 1:
        record["training_seed"] = f"{row.training_seed}–{line.rows[-1].training_seed}"
        record["runs"] = list(map(short, line.means))
    else:
        shares = {str(tile): share for tile, share in row.summary.tiles.items() if tile >= 1024}
        record["rates"] = {tile: [round(100 * at, 1) for at in (s.value, s.low, s.high)] for tile, s in shares.items()}
    return {name: value for name, value in record.items() if value not in (None, {}) or name == "mean"}
