import shlex
import sys

import pytest
from mergefall_training.cli import main


@pytest.fixture
def drawn():
    """A test that takes this sees plots; for others none are drawn, which takes most of a comparison's time."""


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr("mergefall_training.compare.plots.draw", lambda *_: {})


@pytest.fixture
def without_matplotlib(undrawn, monkeypatch):
    """As if it were not installed."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "mergefall_training.compare.plots", raising=False)
    monkeypatch.delattr("mergefall_training.compare.plots", raising=False)


@pytest.fixture
def command(capsys):
    """Runs a command in text, with files as its last arguments; returns its output, errors and exit status."""

    def run(text, *files):
        status = 0
        try:
            main([*shlex.split(text), *map(str, files)])
        except SystemExit as end:
            status = end.code
        return *capsys.readouterr(), status

    return run
