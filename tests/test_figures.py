"""The figures of the results pages: complete records, commands that exist, and tables that agree with them."""

import datetime
import re

import pytest

from . import commands
from .figures import EXTRACTS, MARKED, PAGES, QUESTIONS, ROOT, linked, page, records, rendered

RECORDS = records()
REQUIRED = {
    "figure": (
        "label player options env env_kwargs episodes seed figure mean command date",
        "cap training_seed low high error interval rates ms moves_per_second published note short front again "
        "training size optimum ratio less more runs games matched pieces deaths open against trials",
    ),
    "hint": (
        "label env env_kwargs episodes seed figure mean date note",
        "training_seed low high error runs",
    ),
    "published": ("label env figure reported source date", "note short"),
    "exact": ("label player options env env_kwargs figure mean command date", ""),
    "speed": ("label ours command date", "beside ratio note"),
    "coverage": ("label of samples covered above below command date", ""),
}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name + "/" + path.name)
def test_tables_agree_with_the_records(path):
    text = path.read_text(encoding="utf-8")
    assert rendered(text, RECORDS) == text, "python tests/figures.py --write"


def test_every_record_is_shown_somewhere():
    assert {record["question"] for record in RECORDS} == set(QUESTIONS)
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert {name for _, name, _ in MARKED.findall(text)} - set(QUESTIONS) <= {*EXTRACTS, "ways"}


def test_figures_in_the_prose_of_the_results_are_in_the_tables():
    text = MARKED.sub("", (ROOT / "training" / "RESULTS.md").read_text(encoding="utf-8"))
    whole = re.compile(r"(?<![-\w.,])(?:−?\d[\d.,]*k\b|\[−?\d[\d.,]*, −?\d[\d.,]*\]|\d{1,3}(?:,\d{3})+\b(?!,\d))")
    figures = set(whole.findall(text))
    assert len(figures) > 20
    assert figures <= {figure for name in QUESTIONS for figure in whole.findall(page(name))}


def test_a_question_has_a_page():
    for name, question in QUESTIONS.items():
        text = page(name)
        assert text.startswith(f"# {question.title}\n\n{question.caption}\n\n"), name
        assert all(record["label"] in text for record in RECORDS if record["question"] == name)
        assert not question.picture or (ROOT / question.picture).is_file()


def test_names_of_questions_become_links():
    assert linked("See `sz`, `2min`.\nFull table: `sz`.\n", lambda name: f"{name}.html") == (
        "See [`sz`](sz.html), `2min`.\nFull table: [What do S and Z alone allow?](sz.html).\n"
    )


def test_records_are_whole():
    """Their fields, values within their intervals, and a note where something was not recorded."""
    assert len({record["id"] for record in RECORDS}) == len(RECORDS)
    for record in RECORDS:
        required, optional = (set(names.split()) for names in REQUIRED[record.get("kind", "figure")])
        assert required <= record.keys(), record
        assert record.keys() - required - optional <= {"kind", "id", "question", "options", "env_kwargs", "commit"}
        assert datetime.date.fromisoformat(record["date"])
        if "high" in record:
            assert record["low"] <= record["mean"] <= record["high"], record
        for mean, low, high in record.get("against", {}).values():
            assert mean is None or low <= mean <= high, record
        for percent, *ends in record.get("rates", {}).values():
            assert 0 <= percent <= 100, record
            assert not ends or ends[0] <= percent <= ends[1], record
        if "kind" not in record:
            assert record["mean"] is not None or {"rates", "matched", "against"} & record.keys(), record
            assert None not in (record["episodes"], record["seed"]) or "note" in record, record


def test_players_of_records_exist():
    for record in RECORDS:
        if record.get("player", "runs").partition("/")[0] not in ("runs", "results") and "commit" not in record:
            commands.check_player(record["player"], record["options"])


def test_commands_exist():
    today = [record for record in RECORDS if "commit" not in record]
    for command in {record[key] for record in today for key in ("command", "again") if key in record}:
        commands.check(command)
