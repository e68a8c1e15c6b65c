"""The README's example runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_example_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec(compile(example, str(README), "exec"), {})
    score, largest = map(int, capsys.readouterr().out.splitlines()[0].split())
    assert score > 0
    assert largest >= 8


def test_its_links_lead_somewhere():
    for target in re.findall(r"\]\((?!http)([^)]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).is_file(), target
