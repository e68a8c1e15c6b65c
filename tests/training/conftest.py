import pytest


@pytest.fixture
def drawn():
    """A test that takes this sees plots; for others none are drawn, which takes most of a comparison's time."""


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr("mergefall_training.compare.plots.draw", lambda *_: {})
