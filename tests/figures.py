"""The tables of results, rendered from training/figures.jsonl: one for each question, and those of the pages.

    python tests/figures.py                  list the questions
    python tests/figures.py league-2048      print the table of a question, with the commands that print its figures
    python tests/figures.py --write          rewrite the tables of README.md, training/RESULTS.md, tests/benchmarks and
                                             the cards of trained networks

In a page, a table stands between `<!-- figures: NAME -->` and `<!-- end -->`. NAME is a question (`QUESTIONS`) or an
extract (`EXTRACTS`): the few rows of one or more questions that carry a conclusion.

A record is one measured figure. `mergefall evaluate … --figure QUESTION/ID` and `mergefall compare … --figure …` write
it. Its fields:

    id, question, label    its name, the question (table) that it answers, and what the reader calls it
    player, options        what played, as `make` takes it; a path stands for a training run's folder
    env, env_kwargs, cap   where; `cap` is `max_episode_steps`, or a number of pieces as text
    episodes, seed         number of games, and the first game's seed (null, "?" in tables: not recorded)
    training_seed          of the agent that played, where it was trained
    figure                 the quantity: score, lines, wins, or what a game lost against perfect play
    mean, low, high        value and 95 % interval (`interval`; default: bootstrap), or `error` for mean ± error;
                           where no game ended, `mean` is null and `low` all that is known
    rates                  tile -> [per cent, low, high], with Wilson's interval
    against                rate of the adversary above 0 -> [mean, low, high], null where no game ended; the record's
                           mean is that at rate 0
    ms                     wall time of a move in milliseconds
    command, date          what prints it again, and the day on which it was first written down
    commit                 that it needs, if today's package no longer has the command, the player or the preset
    note                   what a reader must know about this figure alone
    trials                 setting -> mean, of settings that were tried beside this one

Records of kind "speed" hold texts instead: `ours`, `beside`, `ratio`. Records of kind "exact" hold an exact value,
those of kind "coverage" how often an interval covers the truth, and those of kind "published" what others have
reported: `reported`, `source`. Those of kind "hint" have no command, because a script was not kept.
"""

import json
import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

from mergefall_training.play.statistics import Estimate, short
from mergefall_training.play.tables import markdown

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "training" / "figures.jsonl"
PAGES = [
    ROOT / page
    for page in (
        "README.md",
        "training/RESULTS.md",
        "tests/benchmarks/README.md",
        "baselines/mergefall_baselines/game2048/networks/README.md",
        "training/mergefall_training/learn/shipped/README.md",
    )
]
FULL = re.compile(r"^Full tables?: .*$", re.MULTILINE)
MARKED = re.compile(r"(<!-- figures: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def value(record, what="", interval=True):
    """The record's mean with its interval, such as `64.8k [63.0k, 66.6k]`.

    `what`: what it is a mean of. `interval`: whether to say what the interval is.
    """
    mean, *ends = (record.get(name) for name in ("mean", "low", "high"))
    if mean is None and ends[0] is None:
        return record.get("reported", "")
    low, high = (math.nan if end is None else end for end in ends)
    text = str(Estimate(math.inf if mean is None else mean, low, high)).replace("-", "−")
    text += f" ± {short(record['error'])}" if "error" in record else ""
    return text + what + (f" ({record['interval']})" if interval and "interval" in record else "")


def plain(record):
    return value(record, interval=False)


def rate(tile):
    """The column of a tile's rate."""

    def shown(record):
        percent, *ends = record.get("rates", {}).get(tile, [None])
        return "" if percent is None else f"{percent} %" + (f" [{ends[0]}, {ends[1]}]" if ends else "")

    return shown


def against(rate):
    """The column of one rate of the adversary."""
    return lambda record: value(record | dict(zip(("mean", "low", "high"), record["against"][rate], strict=True)))


def games(record):
    return "" if "episodes" not in record else "?" if record["episodes"] is None else f"{record['episodes']:,}"


def seeds(record):
    first, count = record["seed"], record["episodes"]
    return "?" if None in (first, count) else f"{first:,}–{first + count - 1:,}"


def milliseconds(record):
    return str(record.get("ms") or (f"{1000 / record['moves_per_second']:.2f}" if "moves_per_second" in record else ""))


def size(record):
    return f"{record['env_kwargs'].get('cols', 10)}×{record['env_kwargs'].get('rows', 20)}"


def file(record):
    """The file of a shipped network."""
    default = "small" if record["player"] == "2048/ntuple" else record["player"].replace("/", "-")
    return f"`{record['options'].get('network', default)}.npz`"


def board(record):
    if record["player"].startswith("2048"):
        return "4×4"
    pieces = ", S and Z" if "SZ" in record["env"] else ""
    return f"{size(record)}{pieces}, preview {record['env_kwargs'].get('preview', 1)}"


def field(name):
    """The column of a field; the parts of a list are joined."""
    return lambda record: ", ".join(parts) if isinstance(parts := record.get(name, ""), list) else str(parts)


def trials(record):
    return "; ".join(f"{setting}: {mean}" for setting, mean in record.get("trials", {}).items())


def difference(name):
    return lambda record: "{} [{}, {}]".format(*record[name]) if name in record else ""


def label(record):
    about = [record["note"]] if "note" in record else []
    about += [f"commit {record['commit']}"] if "commit" in record else []
    return record["label"] + (f" ({'; '.join(about)})" if about else "")


WHO = {"player": label, "N": games, "seeds": seeds}
SCORE, LINES = WHO | {"mean score": value}, WHO | {"mean lines": value}
TILES = {tile: rate(tile) for tile in ("1024", "2048", "4096", "8192", "16384", "32768")}
LEARNT, PUBLISHED, MS = {"training": field("training")}, {"published": field("published")}, {"ms a move": milliseconds}
GOAL = {"tile": lambda record: str(record["env_kwargs"]["goal"])}
RUNS = {"training seeds": field("training_seed")}
SIZE, EACH = {"size": size}, {"of each run": field("runs")}
EITHER, GAIN = {"mean score or lines": value}, {"more than without": difference("more")}
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
MEAN = {"mean [95 %]": lambda record: value(record, f" {record['figure']}".rstrip())}
WHAT = {"what": label, "N": games, "seeds": seeds}
TRIAL = WHAT | MEAN | EACH | {"all trials": trials} | RUNS | LEARNT


class Question(NamedTuple):
    """A question that the records of its name answer; `picture`: path from the top of the clone."""

    title: str
    caption: str
    columns: dict  # header -> function (record) -> text
    picture: str = ""


QUESTIONS = {
    # Published players and perfect play.
    "documented-2048": Question(
        "Do the documented 2048 players reach what was published?",
        "Share of games with each tile, beside what the documents report. Plies count moves and new tiles.",
        SCORE | TILES | PUBLISHED,
    ),
    "exact": Question(
        "What does perfect play score in 2048?",
        "Expected scores from dynamic programming over all positions; `2048/optimal` plays so.",
        {"board": label, "expected score of perfect play": lambda record: f"{record['mean']:.6f}"},
    ),
    "small-boards": Question(
        "How near to perfect play does learning come?",
        "n-tuple networks, training seed 0, greedy.",
        SCORE | {"optimum": field("optimum")} | LEARNT,
    ),
    "regret-3x3": Question(
        "What do the moves of learned players lose on 3×3?",
        "Expected points, of 5468, that the moves of a game lose against perfect play: less noisy than scores.",
        WHO | {"lost a game": value} | LEARNT,
    ),
    "tetris-controllers": Question(
        "Do the published Tetris controllers reproduce?",
        "One piece known, strict overflow, uniform pieces. On 10×20 the mean is all lines over the number of deaths.",
        SIZE | LINES | PUBLISHED,
    ),
    "tetris-preview": Question(
        "What is a known next piece worth in Tetris?",
        "The controller bcts, which sees one piece, beside searches that see the next one.",
        SIZE | LINES | {"ratio": field("ratio")} | PUBLISHED,
    ),
    "two-tetrad-weights": Question(
        "How good are the weights of the two-tetrad document?",
        "Its final weights are lost; the tuned ones were found by its own method. Slides are allowed.",
        SIZE | LINES,
    ),
    "quintris": Question(
        "Does a deeper search help in Quintris?",
        "15×25, cap 5,000 pieces. The depth is the document's count, own moves less one.",
        LINES,
    ),
    # Strength for its time.
    "league-2048": Question(
        "How strong are 2048 players for the time they take?",
        "One worker (two in the first row) on a machine that was not quiet: the times tell the order.",
        SCORE | TILES | MS,
    ),
    "ntuple": Question(
        "What do n-tuple networks learn?",
        "TD(0) on afterstates, with temporal coherence if nothing else is said; training seed 0.",
        SCORE | TILES | MS | LEARNT | PUBLISHED,
    ),
    "ntuple-curve": Question(
        "How fast do n-tuple networks learn?",
        "The mean during training, by the runs' own evaluations.",
        SCORE | RUNS | LEARNT | PUBLISHED,
    ),
    "ntuple-packed": Question(
        "What does a smaller file of an n-tuple network cost?",
        "Entries are left out and rounded; no search.",
        SCORE | {"file": field("size")},
    ),
    "learning-speed": Question(
        "How fast does n-tuple learning run?",
        "Beside the C++ programs of the literature, on the same machine.",
        SPEED,
    ),
    "trees": Question(
        "Which search suits which leaves in 2048?",
        "The policy network is `2048/distill`, the n-tuple network `small`. The times tell the order.",
        SCORE | MS,
    ),
    "trees-sz": Question("Which search suits S and Z?", "10×20, without preview.", LINES | MS),
    "trees-tetris": Question(
        "Which search suits which leaves in Tetris?",
        "10×8, without preview, bcts at the leaves, cap 20,000 pieces.",
        LINES | MS,
    ),
    # Learned play without search.
    "gpu-2048": Question(
        "What does a GPU bring to 2048?",
        "Distillation on one NVIDIA H200 with 16 cores, one run each; the minutes are of training alone.",
        SCORE | TILES | LEARNT,
    ),
    "published-2048": Question(
        "What have others reported for 2048?",
        "Exact rules if nothing else is said. Their games were not played again here.",
        {"player": label, "mean score": field("reported"), "source": field("source")},
    ),
    "agents-2048": Question(
        "What do other networks and algorithms learn in 2048?",
        "One run each, training seed 0, without a teacher.",
        SCORE,
    ),
    "maskable-ppo": Question(
        "What helps MaskablePPO in 2048?",
        "Its preset, and the same with one thing changed: 3.6 million steps from three training seeds each.",
        SCORE | EACH,
    ),
    "tetris-learners": Question(
        "What do learners reach in Tetris without search?",
        "No preview; one run each, training seed 0.",
        SIZE | LINES | LEARNT,
    ),
    "sz": Question(
        "What do S and Z alone allow?",
        "10×20, without preview if nothing else is said. The best published hand-coded player clears 183 lines.",
        LINES | RUNS | MS | LEARNT | PUBLISHED,
    ),
    # Tetris by keys.
    "keys-gravity": Question(
        "What does gravity cost a player by keys?",
        "10×10, uniform pieces, one known piece after the current one, no hold. Gravity in rows a key. At 0 the games "
        "are those by placements, but end a little later, because a piece may rest partly above the field.",
        {"gravity": lambda record: str(record["env_kwargs"].get("gravity", ""))} | LINES,
        picture="notebooks/keys-costs.png",
    ),
    "keys-learners": Question(
        "What do learners reach in Tetris by keys?",
        "No hold, one known piece after the current one, five training seeds each. A cap of 20,000 keys ends most "
        "games, so fewer keys a piece count, too. The teacher is bcts by keys, which reached the cap in every game.",
        LINES | EACH | MS | LEARNT,
    ),
    "attack": Question(
        "How much do players of Tetris by keys attack?",
        "Attack of the first 50 placements from an empty board of 10×20, by Jstris's table, seeds from 2,000: SRS, "
        "bags, hold, a queue of five, no gravity. Combos count on top of a perfect clear's 10 rows; the rules of the "
        "reported figures may differ there. `draws` are of the pieces after the queue. The times are of one core.",
        {"player": label, "N": games, "mean attack": value} | MS | {"source": field("source")},
    ),
    "garbage": Question(
        "How long do players of Tetris by keys survive under garbage?",
        "Mean pieces until the end, at most 1,000, on 10×20 with hold and a queue of five, without gravity. A row has "
        "one hole, which moves with a probability of 0.3; attack cancels rows that wait.",
        {"rows a piece": lambda record: str(record["env_kwargs"]["garbage"]["rows"])} | WHO | {"mean pieces": value},
        picture="notebooks/keys-costs.png",
    ),
    "versus": Question(
        "Who wins matches of Tetris by keys?",
        "Elo ratings of a league, 120 matches a pair, seeds 0–59 from either side, gravity 0.02. Garbage rises on both "
        "sides also without attack, one row in five pieces. The times are of many matches side by side, per key.",
        {"player": label, "matches": games, "Elo": value} | MS,
    ),
    # Which way to train.
    "ways-2048": Question(
        "Which way to train in 2048?",
        "Without search, five training seeds each. The teacher is the n-tuple network `strong` without search.",
        SCORE | EACH,
    ),
    "ways-tetris": Question(
        "Which way to train in Tetris?",
        "10×10, one previewed piece, cap 10,000 pieces, five training seeds each; a run's mean is all its lines over "
        "the number of deaths. The teacher is the deep two-tetrad search with bcts.",
        LINES | EACH,
    ),
    "ways-differences": Question(
        "How far apart are the ways to train?",
        "Differences seed by seed, with Student's interval over five training seeds.",
        WHAT | {"difference": plain},
    ),
    "past-teachers": Question(
        "Does an agent pass its teacher?",
        "Pupils of documented players by kickstarting. The help fades until the end (prairie fire's: until half of the "
        "steps; in 20 minutes a tenth stays). Intervals are over games.",
        SCORE | RUNS | MS,
    ),
    "distill-teachers": Question(
        "Does a distilled agent pass its teacher?",
        "Distillation alone, two million boards in 2048 and 400,000 in Tetris, five training seeds each.",
        WHO | EITHER | EACH,
    ),
    # Shaping.
    "shaping-goal": Question(
        "Does shaping help with a reward for one tile?",
        "MaskablePPO, 60,000 steps (1024: 150,000), five training seeds; the reward is 1 for making the tile. Scale "
        "and offset are the best of two to nine pairs on training seed 0 for 512, which favours shaping a little; "
        "1024 takes the same.",
        GOAL | WHO | {"share of games won": value} | GAIN | RUNS,
    ),
    "shaping": Question(
        "Does shaping help where every good move is paid?",
        "MaskablePPO over afterstates, 100,000 steps, five training seeds; rewards are log2(1 + score of the move), or "
        "lines. In 2048 scale and offset are the best of three to six pairs on training seed 0.",
        WHO | EITHER | GAIN | RUNS,
    ),
    "shaping-dqn": Question(
        "Does shaping help DQN that sees the board alone?",
        "60,000 steps (Tetris 10×10: 120,000), five training seeds; illegal actions are replaced by random legal ones. "
        "Scale and offset are the best of three to nine pairs on training seed 0.",
        WHO | EITHER | GAIN | RUNS,
        picture="training/shaping.png",
    ),
    "shaping-constant": Question(
        "Does a heuristic give more than a constant potential?",
        "Differences to agents shaped by a constant, seed by seed, with Student's interval over five training seeds.",
        WHAT | {"more than a constant": plain},
    ),
    # Luck against the player.
    "robustness-2048": Question(
        "How much does a 2048 player lose when luck turns against it?",
        "An adversary picks a share of the new tiles (the rate): the minimizer of the minimax document, one own move "
        "deep. `d5` looks three own moves ahead.",
        ADVERSARY,
        picture="training/robustness.png",
    ),
    "robustness-trained": Question(
        "Does training against the adversary help?",
        "Two million steps, five training seeds, over which the intervals are.",
        ADVERSARY | RUNS,
    ),
    "robustness-tetris": Question(
        "How much does a Tetris player lose when luck turns against it?",
        "10×10, cap 10,000 pieces; the adversary picks the piece that comes into sight, by the two-tetrad search with "
        "bcts. The mean is all lines over the number of deaths; a field is empty where no game ended.",
        ADVERSARY,
        picture="training/robustness-tetris.png",
    ),
    "robustness-others": Question(
        "How much do players of S and Z and of Quintris lose?",
        "S and Z without preview; Quintris with a cap of 5,000 pieces.",
        ADVERSARY,
    ),
    # Trials: single runs, most of them, which show what was tried and are no results.
    "trials-2048": Question(
        "What was tried for learners of 2048?",
        "One run each if nothing else is said, so small differences may be chance.",
        TRIAL,
    ),
    "trials-tetris": Question(
        "What was tried for learners of Tetris?",
        "One run each if nothing else is said, so small differences may be chance.",
        TRIAL,
    ),
    "trials-search": Question(
        "What was tried for searches and expert iteration?",
        "One run each if nothing else is said, so small differences may be chance.",
        TRIAL | MS,
    ),
    "trials-shaping": Question(
        "Which scales of potentials were tried?",
        "One run each, training seed 0: the best scale's mean, and all trials as scale: mean (of a constant, Φ: mean). "
        "The command is that of the best; the others differ in the scale alone.",
        TRIAL,
    ),
    # How it was measured.
    "coverage": Question(
        "Do the intervals cover the truth?",
        "Ten thousand games of a player stand for all its games; 2,000 evaluations of N games are drawn from them. "
        "A chance error of about one point remains.",
        COVERAGE,
    ),
    "speed": Question(
        "How fast are environments, players and learners?",
        "Beside other projects, in one run on one machine: the ratio counts.",
        SPEED,
    ),
}
ROWS = {"player": label, "N": games, "mean [95 %]": lambda record: f"{plain(record)} {record['figure']}"}
CARD = {"file": file, "trained and measured on": board, "N": games, "mean [95 %]": ROWS["mean [95 %]"]}
LUCK = {header: ADVERSARY[header] for header in ADVERSARY if header != "seeds"}
# Tables of pages by name: columns, and the ids of records. In `short` a record has its label for them.
EXTRACTS = {
    "front": (
        {"player": field("front"), "N": games, "mean [95 %]": ROWS["mean [95 %]"], "beside it": field("published")},
        "league-strong-6 distill ways-2048-5min-distill attack-400-8 sz-evolved",
    ),
    "reproduced": (
        ROWS | {"games with 2048": rate("2048")} | PUBLISHED,
        "tile-order-expectimax-3 tile-order-alphabeta-2 monotone-smooth-minimax bcts-10x10 two-tetrad-bcts-10x8",
    ),
    "perfect": (
        {"board": label, "N": games, "mean score": value, "optimum": field("optimum")},
        "learnt-2x2 learnt-2x3 learnt-3x3",
    ),
    "strength": (
        {"player": label, "N": games, "mean score": value} | MS,
        "league-strong-6 league-strong-3 league-strong-2 league-nneonneo-fast",
    ),
    "learned": (
        ROWS,
        "gpu-2048-full published-value-2021 published-policy-2021 distill tetris-distill cma-es-last "
        "sz-evolved sz-afterstate",
    ),
    "shaped": (
        {"potential": label, "mean": plain} | GAIN,
        "goal-512-monotone-smooth goal-512-nneonneo goal-512-a-constant goal-512-no-shaping shaping-2048-nneonneo "
        "shaping-2048-monotone-smooth shaping-2048-no-shaping shaping-tetris-no-shaping "
        "shaping-tetris-two-tetrad",
    ),
    "fast": (
        SPEED,
        "speed-2048-single speed-2048-batched-2 speed-nneonneo speed-tetris-single speed-tetris-batched "
        "speed-keys-single speed-sb3 "
        "speed-ppo speed-greedy",
    ),
    "keys": (
        ROWS,
        "attack-400-8 attack-alphatetris attack-humans-5 garbage-beam-1.1 garbage-bcts-1.1 keys-gravity-bcts-0 "
        "keys-gravity-bcts-20 keys-learners-kickstart keys-learners-bcts-by-keys keys-learners-maskableppo",
    ),
    "card-networks": (CARD, "league-small-1 league-strong-1"),
    "card-agents": (
        CARD,
        "distill tetris-distill dqn-tetris afterstate-tetris cross-entropy sz-evolved sz-ce",
    ),
    "luck": (
        LUCK,
        "robust-2048-strong-network-expectimax-2 robust-2048-distilled-network "
        "robust-2048-tile-order-alpha-beta-d5 robust-tetris-two-tetrad-deep-bcts robust-tetris-dt-10",
    ),
}
# The table `ways`: the rows and the columns, by the parts of the records' ids.
WAYS = {
    "distillation": "distill",
    "kickstarting": "kickstart",
    "distillation, then MaskablePPO": "distill-then-maskableppo",
    "cloning": "clone",
    "MaskablePPO, no teacher": "maskableppo",
    "DQN, no teacher": "dqn",
    "expert iteration, no teacher": "expert-iteration",
}
TIMES = {
    "2048, `small`": "ways-2048-5min-",
    "2048, `medium`": "ways-2048-20min-",
    "Tetris, `small`": "ways-tetris-5min-",
    "Tetris, `medium`": "ways-tetris-20min-",
}


def records():
    """All records, in the file's order."""
    lines = FIGURES.read_text(encoding="utf-8").splitlines()
    return [{"options": {}, "env_kwargs": {}} | json.loads(line) for line in lines]


def rows_of(name, known):
    """A table's columns, and its records under the labels that they have there."""
    if name in QUESTIONS:
        return QUESTIONS[name].columns, [record for record in known if record["question"] == name]
    columns, ids = EXTRACTS[name]
    named = {record["id"]: record for record in known}
    rows = [{key: named[id][key] for key in named[id] if key not in ("note", "commit")} for id in ids.split()]
    return columns, [
        row | {"label": row.get("short", row["label"]), "command": row.get("again", row.get("command"))} for row in rows
    ]


def table(name, known):
    """A table in Markdown.

    Below a question's table stand the commands, under the numbers that the rows bear in the column "how".
    """
    if name == "ways":
        return ways(known)
    columns, rows = rows_of(name, known)
    commands = list(dict.fromkeys(row["command"] for row in rows if row.get("command") and name in QUESTIONS))
    cells = {header: [column(row) for row in rows] for header, column in columns.items()}
    cells = {header: column for header, column in cells.items() if any(column)}
    if len(commands) > 1:
        cells["how"] = [str(commands.index(row["command"]) + 1) if row.get("command") else "" for row in rows]
    notes = [""] * bool(commands)
    for i, command in enumerate(commands, start=1):
        dates = sorted({row["date"] for row in rows if row.get("command") == command})
        notes.append((f"{i}. " if len(commands) > 1 else "Command: ") + f"`{command}` ({', '.join(dates)})")
    return "\n".join([markdown(cells, zip(*cells.values(), strict=True)), *notes, ""])


def ways(known):
    """The table of the ways to train: a line for each way, a column for each preset."""
    named = {record["id"]: record for record in known}
    rows = [
        [way, *(plain(named[time + id]) if time + id in named else "" for time in TIMES.values())]
        for way, id in WAYS.items()
    ]
    return markdown(["mean score or lines", *TIMES], rows) + "\n"


def page(name, top=""):
    """A question's page in Markdown: title, caption, picture, table and commands.

    Args:
        name: the question.
        top: the path from the page to the top of the clone, such as `../../`, for the picture.
    """
    question = QUESTIONS[name]
    parts = [f"# {question.title}", question.caption]
    parts += [f"![{question.title}]({top}{question.picture})"] if question.picture else []
    return "\n\n".join([*parts, table(name, records())])


def linked(text, address):
    """A page's text in which each question that is named in code leads to its address.

    Lines `Full tables: …` get the questions' titles. A name among other code stays as it is.
    """

    def titled(match):
        return f"[{QUESTIONS[match[1]].title}]({address(match[1])})"

    def named(match):
        return f"[`{match[1]}`]({address(match[1])})" if match[1] in QUESTIONS else match[0]

    text = FULL.sub(lambda line: re.sub(r"`([^`]+)`", titled, line[0]), text)
    return re.sub(r"(?<!\[)`([^`\n]+)`", named, text)


def rendered(text, known):
    """A page's text with its tables as the records have them."""
    return MARKED.sub(lambda match: f"{match[1]}{table(match[2], known)}{match[3]}", text)


def main():
    if (name := "".join(sys.argv[1:2])) in QUESTIONS:
        print(page(name, f"{ROOT}/"))
    elif name == "--write":
        for path in PAGES:
            old = path.read_text(encoding="utf-8")
            if (new := rendered(old, records())) != old:
                print(path.relative_to(ROOT))
                path.write_text(new, encoding="utf-8")
    elif name:
        sys.exit(f"there is no question {name!r}; without arguments all are listed")
    else:
        print("\n".join(f"{name:<20} {question.title}" for name, question in QUESTIONS.items()))


if __name__ == "__main__":
    main()
