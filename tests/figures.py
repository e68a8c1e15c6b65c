"""The tables of README.md, training/RESULTS.md and tests/benchmarks/README.md, rendered from training/figures.jsonl.

    python tests/figures.py            print the pages whose tables differ from the file
    python tests/figures.py --write    rewrite their tables

A table stands between `<!-- figures: NAME -->` and `<!-- end -->`. `TABLES` says which records and columns it has.
A record is one measured figure. Its fields:

    id, question, label    its name, the question (table) that it answers, and what the reader calls it
    player, options        what played, as `make` takes it; a path stands for a training run's folder
    env, env_kwargs, cap   where; `cap` is `max_episode_steps`
    episodes, seed         number of games, and the first game's seed (null, "?" in tables: not recorded)
    training_seed          of the agent that played, where it was trained
    figure                 the quantity: score, lines, or what a game lost against perfect play
    mean, low, high        value and 95 % interval (`interval`; default: bootstrap), or `error` for mean ± error
    unit, decimals         how they are printed: "k", "M" or ""; default three significant digits
    rates                  tile -> [per cent, low, high], with Wilson's interval
    against                rate of the adversary above 0 -> [mean, low, high], null where no game ended; the record's
                           mean is that at rate 0
    command, date          what prints it again, and the day on which it was first written down
    version                of the package that it needs, if today's no longer has the command or the player

Records of kind "speed" hold texts instead: `ours`, `beside`, `ratio`. Records of kind "exact" hold an exact value,
those of kind "coverage" how often an interval covers the truth.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "training" / "figures.jsonl"
PAGES = [ROOT / "README.md", ROOT / "training" / "RESULTS.md", ROOT / "tests" / "benchmarks" / "README.md"]
MARKED = re.compile(r"(<!-- figures: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
UNITS = {"": 1, "k": 1_000, "M": 1_000_000}
Record = dict[str, Any]


def number(value: float, record: Record) -> str:
    """One of a record's values in its unit: three significant digits, or `decimals`."""
    value /= UNITS[record["unit"]]
    return f"{value:.{record.get('decimals', max(0, 3 - len(str(int(value)))))}f}"


def value(record: Record, what: str = "") -> str:
    """The record's mean with its interval, such as `64.8k [63.0, 66.6]`, and what it is a mean of."""
    if record["mean"] is None:
        return ""
    text = number(record["mean"], record) + record["unit"]
    if "error" in record:
        text += f" ± {number(record['error'], record)}"
    if "low" in record:
        text += f" [{number(record['low'], record)}, {number(record['high'], record)}]"
    return text + what + (f" ({record['interval']})" if "interval" in record else "")


def rate(tile: str) -> Callable[[Record], str]:
    """The column of a tile's rate."""

    def shown(record: Record) -> str:
        percent, *ends = record.get("rates", {}).get(tile, [None])
        return "" if percent is None else f"{percent} %" + (f" [{ends[0]}, {ends[1]}]" if ends else "")

    return shown


def against(rate: str) -> Callable[[Record], str]:
    """The column of one rate of the adversary."""
    return lambda record: value(record | dict(zip(("mean", "low", "high"), record["against"][rate], strict=True)))


def games(record: Record) -> str:
    return "?" if record["episodes"] is None else f"{record['episodes']:,}"


def seeds(record: Record) -> str:
    first, count = record["seed"], record["episodes"]
    return "?" if None in (first, count) else f"{first:,}–{first + count - 1:,}"


def milliseconds(record: Record) -> str:
    return str(record.get("ms") or (f"{1000 / record['moves_per_second']:.2f}" if "moves_per_second" in record else ""))


def size(record: Record) -> str:
    return f"{record['env_kwargs'].get('cols', 10)}×{record['env_kwargs']['rows']}"


def field(name: str) -> Callable[[Record], str]:
    """The column of a field; the parts of a list are joined."""
    return lambda record: ", ".join(parts) if isinstance(parts := record.get(name, ""), list) else str(parts)


def difference(name: str) -> Callable[[Record], str]:
    return lambda record: "{} [{}, {}]".format(*record[name]) if name in record else ""


def label(record: Record) -> str:
    about = [record["note"]] if "note" in record else []
    about += [f"version {record['version']}"] if "version" in record else []
    return record["label"] + (f" ({'; '.join(about)})" if about else "")


WHO = {"player": label, "N": games, "seeds": seeds}
SCORE, LINES = WHO | {"mean score": value}, WHO | {"mean lines": value}
TILES = {tile: rate(tile) for tile in ("1024", "2048", "4096", "8192", "16384", "32768")}
LEARNT, PUBLISHED, MS = {"training": field("training")}, {"published": field("published")}, {"ms a move": milliseconds}
GOAL = {"tile": lambda record: str(record["env_kwargs"]["goal"])}
RUNS = {"training seeds": field("training_seed")}
ADVERSARY = WHO | {"rate 0": value} | {f"rate {rate}": against(rate) for rate in ("0.1", "0.3", "1")}
SPEED = {"what": label, "ours": field("ours"), "beside it": field("beside"), "ratio": field("ratio")}
COVERAGE = {
    "interval": label,
    "of": field("of"),
    "N": field("samples"),
    "covers the truth in": field("covered"),
    "too high": field("above"),
    "too low": field("below"),
}
MAIN = (
    "ntuple-2h-6 league-strong-1 nneonneo-fast distill ways-2048-5min-distill league-small-1 "
    "tile-order-expectimax-3 ways-2048-5min-maskableppo two-tetrad-bcts-10x8 tetris-distill dt-10-10x10 "
    "cross-entropy sz-evolved"
)
# By a table's name: its columns, the ids of its records (None: all that answer the question of this name).
TABLES: dict[str, tuple[dict[str, Callable[[Record], str]], str | None]] = {
    "main": (WHO | {"mean [95 %]": lambda record: value(record, f" {record['figure']}")} | MS, MAIN),
    "documented-2048": (SCORE | TILES | PUBLISHED, None),
    "league-2048": (SCORE | TILES | MS, None),
    "ntuple": (SCORE | TILES | MS | LEARNT | PUBLISHED, None),
    "gpu-2048": (SCORE | TILES | LEARNT, None),
    "ntuple-curve": (SCORE | RUNS | LEARNT | PUBLISHED, None),
    "ntuple-packed": (SCORE | {"file": field("size")}, None),
    "exact": ({"board": label, "expected score of perfect play": lambda record: f"{record['mean']:.6f}"}, None),
    "small-boards": (SCORE | {"optimum": field("optimum")} | LEARNT, None),
    "regret-3x3": (WHO | {"lost a game": value} | LEARNT, None),
    "maskable-ppo": (SCORE | TILES, None),
    "agents-2048": (SCORE, None),
    "tetris-controllers": ({"size": size} | LINES | PUBLISHED, None),
    "tetris-preview": ({"size": size} | LINES | {"ratio": field("ratio")} | PUBLISHED, None),
    "two-tetrad-weights": ({"size": size} | LINES, None),
    "tetris-learners": ({"size": size} | LINES | LEARNT, None),
    "sz": (LINES | RUNS | MS | LEARNT | PUBLISHED, None),
    "quintris": (LINES, None),
    "shaping-goal": (GOAL | WHO | {"share of games won": value, "more than without": difference("more")} | RUNS, None),
    "shaping-dqn": (WHO | {"mean score or lines": value, "more than without": difference("more")} | RUNS, None),
    "shaping": (WHO | {"mean score or lines": value, "more than without": difference("more")} | RUNS, None),
    "ways-2048": (SCORE | {"of each run": field("runs")}, None),
    "ways-tetris": (LINES | {"of each run": field("runs")}, None),
    "past-teachers": (SCORE | RUNS | MS, None),
    "distill-teachers": (WHO | {"mean score or lines": value, "of each run": field("runs")}, None),
    "trees": (SCORE | MS, None),
    "trees-sz": (LINES | MS, None),
    "trees-tetris": (LINES | MS, None),
    "robustness-2048": (ADVERSARY, None),
    "robustness-trained": (ADVERSARY | RUNS, None),
    "robustness-tetris": (ADVERSARY, None),
    "robustness-others": (ADVERSARY, None),
    "coverage": (COVERAGE, None),
    "speed": (SPEED, None),
    "learning-speed": (SPEED, None),
}


def records() -> list[Record]:
    """All records, in the file's order."""
    lines = FIGURES.read_text(encoding="utf-8").splitlines()
    return [{"options": {}, "env_kwargs": {}} | json.loads(line) for line in lines]


def table(name: str, known: list[Record]) -> str:
    """A table in Markdown; below it the commands, under the numbers that its rows bear in the column "how"."""
    columns, ids = TABLES[name]
    if ids is None:
        rows = [record for record in known if record["question"] == name]
    else:
        named = {record["id"]: record for record in known}
        rows = [named[id] | {"label": named[id]["short"]} for id in ids.split()]
        rows = [row | {"command": row.get("again", row["command"])} for row in rows]
    commands = list(dict.fromkeys(row["command"] for row in rows))
    cells = {header: [column(row) for row in rows] for header, column in columns.items()}
    cells = {header: column for header, column in cells.items() if any(column)}
    if len(commands) > 1:
        cells["how"] = [str(commands.index(row["command"]) + 1) for row in rows]
    lines = [list(cells), ["---"] * len(cells), *zip(*cells.values(), strict=True)]
    notes = []
    for i, command in enumerate(commands, start=1):
        dates = sorted({row["date"] for row in rows if row["command"] == command})
        notes.append((f"{i}. " if len(commands) > 1 else "Command: ") + f"`{command}` ({', '.join(dates)})")
    return "\n".join(["| " + " | ".join(line) + " |" for line in lines] + ["", *notes, ""])


def rendered(text: str, known: list[Record]) -> str:
    """A page's text with its tables as the records have them."""
    return MARKED.sub(lambda match: f"{match[1]}{table(match[2], known)}{match[3]}", text)


def main() -> None:
    known = records()
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = rendered(old, known)
        if new != old:
            print(page.relative_to(ROOT))
            if "--write" in sys.argv:
                page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
