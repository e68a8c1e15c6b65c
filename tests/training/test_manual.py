"""The pages of the command about players, heuristics, environments, suites and learners."""

import re

import pytest
from mergefall.games import games
from mergefall_baselines import players
from mergefall_training.compare.suite import load_suite, suite_names
from mergefall_training.learn import ALGORITHMS
from mergefall_training.learn.presets import load_preset


@pytest.fixture
def page(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def printed(words):
        text, _, status = command(words)
        assert status == 0
        assert " " in words or max(map(len, text.splitlines())) <= 80  # docstrings stay as they are
        return text

    return printed


def test_lists_name_everything(page):
    listed = page("players")
    for name in players():
        assert f"{name}\n    " in listed
    listed = page("heuristics")
    for game in games().values():
        for name in game.library().known:
            assert listed.count(f": {name}\n    ") == 1  # games by keys share those of Tetris
    suites = page("suites")
    for name in suite_names():
        assert f"{name}\n    " in suites
    assert all(contest.name in suites for suite in ("quick", "past-teachers") for contest in load_suite(suite).contests)
    assert "mergefall/SZTetris-v0\n    " in page("envs")


def test_one_of_them_is_described_with_its_defaults(page):
    text = page("players 2048/expectimax")
    assert "A *position* is a board with the player to move, an *afterstate* the board that a move" in text
    assert re.search(r"\n    table: transposition tables", text)
    assert "heuristic='nneonneo', depth=3" in text
    text = page("heuristics monotone-smooth")
    assert "`corner`: 0 if a largest tile is in a corner" in text
    assert "smoothness=0.1" in text
    for name in ("mergefall/Quintris-v0", "Quintris-v0"):
        text = page(f"envs {name}")
        assert "## Action Space" in text
        assert "cols=15" in text


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_learners_are_described_with_hyper_parameters_and_presets(page, algorithm):
    text = page(f"train {algorithm} --help")
    games = ["mergefall/Tetris-v0" if algorithm in ("afterstate", "cma-es") else "mergefall/Game2048-v0"]
    given = load_preset(algorithm, games[0])
    assert f"\n    {games[0]} --preset small: " in text
    for name in set(given) - {"n_timesteps", "env_kwargs", "max_episode_steps"}:
        assert re.search(rf":param {name}:|`{name}`", text), name
    assert f"n_timesteps={given['n_timesteps']}" in " ".join(text.split())
    defaults = text.partition("(--set NAME=VALUE):")[2].partition("\n\n")[0]
    assert {"learning_rate", "population"} & set(re.findall(r"(\w+)=", defaults))


def test_the_version_is_printed(page):
    assert re.fullmatch(r"mergefall \d+\.\d+\.\d+\n", page("--version"))
