"""The README's examples run as they stand."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_examples_run(capsys):
    of_2048, of_tetris, of_shaping = CODE.findall(TEXT)
    exec(compile(of_2048, str(README), "exec"), {})
    score, largest = map(int, capsys.readouterr().out.splitlines()[0].split())
    assert score > 0
    assert largest >= 8
    exec(compile(of_tetris, str(README), "exec"), {})
    assert "'f8'" in capsys.readouterr().out.splitlines()[0]
    exec(compile(of_shaping, str(README), "exec"), {})
    paid, score = capsys.readouterr().out.split()
    assert float(paid) != 0
    assert int(score) >= 0


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", CODE.sub("", TEXT)):
        assert (README.parent / target).is_file(), target
