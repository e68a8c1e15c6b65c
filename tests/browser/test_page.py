"""The report in Chromium: replays reach the recorded results, keys work, a game can be played by hand."""

import json

import pytest
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.cli import main

PLAYERS = {
    "2048": [("2048/greedy", {"heuristic": "nneonneo"}), ("2048/random", {})],
    "keys": [("tetris/keys", {"of": "tetris/bcts"}), ("tetris/keys", {"of": "tetris/dt-10"})],
    "tetris": [("tetris/bcts", {}), ("tetris/random", {})],
}
ENVS = {
    "2048": ("mergefall/Game2048-v0", {"rows": 3}),
    "keys": ("mergefall/TetrisKeys-v0", {"cols": 6, "rows": 8, "gravity": 0}),
    "tetris": ("mergefall/Tetris-v0", {"cols": 6, "rows": 8, "placements": "reachable", "hold": True}),
}

START = "() => [...document.querySelectorAll('.replay')].map((root) => root.querySelectorAll('canvas').length)"

# Each game of each player to its end: what is shown, and how many values its first position has.
TO_THE_END = """async () => {
  const found = [];
  const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
  for (const root of document.querySelectorAll(".replay")) {
    const pane = root.querySelector(".pane"), [who, which] = pane.querySelectorAll("select");
    for (const player of [...who.options].slice(0, -1)) {
      who.value = player.value;
      who.dispatchEvent(new Event("change"));
      await settled();
      for (const game of [...which.options]) {
        which.value = game.value;
        which.dispatchEvent(new Event("change"));
        await settled();
        root.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
        const thoughts = pane.querySelectorAll(".thoughts .bar").length;
        root.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }));
        found.push([player.textContent, Number(game.value), Number(pane.dataset.score), thoughts,
          pane.querySelector(".figures").textContent]);
      }
    }
  }
  return found;
}"""

BY_HAND = """async () => {
  const found = [];
  for (const root of document.querySelectorAll(".replay")) {
    const pane = root.querySelectorAll(".pane")[1];
    const who = pane.querySelector("select"), board = pane.querySelector("canvas");
    who.selectedIndex = who.options.length - 1;
    who.dispatchEvent(new Event("change"));
    await new Promise((resolve) => setTimeout(resolve, 20));
    const press = (key) => board.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    const text = () => pane.querySelector(".figures").textContent;
    for (let i = 0; i < 12; i++) for (const key of ["ArrowLeft", "ArrowDown", "ArrowRight"]) press(key);
    const played = text();
    press("u");
    found.push([played, text()]);
  }
  return found;
}"""

WHILE_IT_PLAYS = """async () => {
  const root = document.querySelector(".replay"), slider = root.querySelector("input[type=range]");
  const speed = root.querySelector(".controls select"), steps = [];
  const second = () => new Promise((resolve) => setTimeout(() => resolve(steps.push(Number(slider.value))), 1000));
  root.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
  root.dispatchEvent(new KeyboardEvent("keydown", { key: " ", bubbles: true }));
  await second();
  slider.value = 100;
  slider.dispatchEvent(new Event("input"));
  await second();
  speed.value = "20";
  await second();
  return steps;
}"""

WIDTHS = "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with records of all games, and what they hold by game, player and seed."""
    folder, results = tmp_path_factory.mktemp("runs"), {}
    for game, players in PLAYERS.items():
        env_id, env_kwargs = ENVS[game]
        for number, (name, options) in enumerate(players):
            player, out = make(name, **options), folder / game / f"{number}.jsonl"
            played = evaluate(player, env_id, 5, 0, env_kwargs, 1, out, max_episode_steps=900, progress=False)
            results |= {(played.header.title, episode.seed): episode for episode in played.episodes}
    return folder, results


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "report.html"
    main(["report", str(runs[0]), "--out", str(out)])
    return out


def test_each_replay_ends_with_the_recorded_score(page, runs, asked):
    found = asked(page, TO_THE_END)
    assert {player for player, *_ in found} == {title for title, _ in runs[1]}
    for player, seed, score, thoughts, text in found:
        episode = runs[1][player, seed]
        assert score == episode.score
        assert text.startswith(f"step {episode.length:,} of {episode.length:,}:")
        assert text.endswith("; over" if episode.terminated else "; cut off here")
        assert thoughts >= 2 or player.startswith(("2048/random", "tetris/random", "tetris/keys"))
    assert len(found) >= 8


def test_a_game_is_played_by_hand(page, asked):
    for played, taken_back in asked(page, BY_HAND):
        steps = int(played.split()[1])
        assert steps > 3
        assert taken_back.startswith(f"step {steps - 1} of {steps - 1}:")


def test_one_can_jump_and_change_the_speed_while_a_game_plays(page, asked):
    slow, jumped, fast = asked(page, WHILE_IT_PLAYS, "#section=0&a=2048/greedy&seed=0")
    assert 3 <= slow <= 7
    assert 102 <= jumped <= 108
    assert 115 <= fast - jumped + 100 <= 125


def test_an_address_names_a_position(page, asked):
    ask = "() => [...document.querySelectorAll('.pane .figures')].map((line) => line.textContent)"
    shown = asked(page, ask, "#section=2&a=tetris/bcts&b=tetris/random&seed=1&step=3")
    assert [text.startswith("step 3 of ") for text in shown] == [False] * 4 + [True] * 2


@pytest.mark.parametrize("width", [500, 1200])  # headless Chromium has no narrower window
def test_nothing_is_wider_than_the_screen(page, asked, width):
    content, screen = asked(page, WIDTHS, width=width)
    assert content <= screen


def test_without_values_and_with_damaged_records_the_rest_is_shown(runs, tmp_path, asked):
    games = tmp_path / "games"
    games.mkdir()
    lines = (runs[0] / "2048" / "0.jsonl").read_text().splitlines()
    forged = json.loads(lines[2]) | {"score": 1}
    (games / "forged.jsonl").write_text("\n".join([*lines[:2], json.dumps(forged), *lines[3:]]) + "\n")
    (games / "broken.jsonl").write_text("{}\n")
    out = tmp_path / "report.html"
    main(["report", str(games), "--out", str(out), "--values", "0"])
    told = asked(out, "() => [...document.querySelectorAll('.problems li')].map((item) => item.textContent)")
    assert len(told) == 2
    assert any("broken.jsonl" in line for line in told)
    assert any("do not hold" in line and "checksum" in line and "(1 of 5)" in line for line in told)
    assert asked(out, START) == [2]


def test_players_of_any_name_are_watched(runs, tmp_path, asked):
    """Blanks that HTML would fold, and the name that stands for the reader."""
    suite = (
        "games:\n  - {name: small, env: mergefall/Game2048-v0, env_kwargs: {rows: 2, cols: 2}, episodes: 2, players: ["
    )
    suite += ", ".join(f"{{player: 2048/greedy, label: {json.dumps(name)}}}" for name in ("two  blanks", " a ", "you"))
    (tmp_path / "names.yaml").write_text(suite + "]}\n")
    main(["compare", str(tmp_path / "names.yaml"), "--out", str(tmp_path / "out"), "--workers", "1"])
    main(["report", str(tmp_path / "out"), "--out", str(tmp_path / "report.html")])
    found = asked(tmp_path / "report.html", TO_THE_END)
    assert len({player for player, *_ in found}) == 3
    assert len(found) >= 6


KEYS = """async () => {
  const root = document.querySelector(".replay"), pane = root.querySelectorAll(".pane")[1];
  const who = pane.querySelector("select"), board = pane.querySelector("canvas");
  const text = () => pane.querySelector(".figures").textContent;
  who.selectedIndex = who.options.length - 1;
  who.dispatchEvent(new Event("change"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const press = (key, held = {}) => board.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...held }));
  for (let i = 0; i < 4; i++) for (const key of ["ArrowLeft", "ArrowDown"]) press(key);
  const found = [text()];
  for (const held of [{ altKey: true }, { ctrlKey: true }]) {
    for (const key of ["ArrowRight", "ArrowUp", "u"]) press(key, held);
  }
  found.push(text());
  press("U");
  found.push(text());
  const play = root.querySelector(".controls button[title=play]");
  play.click();
  found.push(play.ariaLabel);
  return found;
}"""


def test_keys_of_the_browser_are_left_to_it(page, asked):
    played, held, taken_back, label = asked(page, KEYS)
    assert played == held
    steps = int(played.split()[1])
    assert steps > 1
    assert taken_back.startswith(f"step {steps - 1} of {steps - 1}:")
    assert label == "pause"


IN_TIME = """async () => {
  const root = document.querySelector(".replay"), pane = root.querySelectorAll(".pane")[1], found = [];
  const who = pane.querySelector("select"), board = pane.querySelector("canvas");
  const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
  const send = (type, key, more = {}) => board.dispatchEvent(new KeyboardEvent(type, { key, bubbles: true, ...more }));
  const numbers = () => pane.querySelector(".figures").textContent.match(/[0-9]+/g).map(Number);
  const note = () => found.push(numbers());
  who.selectedIndex = who.options.length - 1;
  who.dispatchEvent(new Event("change"));
  await wait(500);
  note(); // nothing has passed
  send("keydown", "c");
  send("keyup", "c");
  await wait(1000);
  note(); // a second has passed
  send("keydown", "ArrowDown");
  send("keydown", "ArrowDown", { repeat: true });
  await wait(200);
  send("keyup", "ArrowDown");
  await wait(100);
  note(); // it fell while the key was held down
  send("keydown", " ");
  await wait(200);
  send("keydown", "p");
  note(); // a piece is placed
  await wait(500);
  note(); // nothing passes any more
  send("keydown", "u");
  note();
  return found;
}"""


def test_time_passes_in_a_game_by_keys(tmp_path, asked):
    games = tmp_path / "games.jsonl"
    evaluate("tetris/keys", "mergefall/TetrisKeys-v0", 1, 0, {}, 1, games, max_episode_steps=50, progress=False)
    main(["report", str(games), "--out", str(tmp_path / "report.html")])
    before, second, fell, placed, still, back = asked(tmp_path / "report.html", IN_TIME)
    _, _, lines, pieces, score, attack = placed
    assert before == [0, 0, 0, 0, 0, 0]
    assert 55 <= second[0] <= 65
    assert second[3:] == [0, 0, 0]
    assert 4 <= fell[4] <= 8
    assert (lines, pieces, attack) == (0, 1, 0)
    assert score > fell[4] + 10
    assert still == placed
    assert back == [0, 0, 0, 0, 0, 0]
