"""The rules in the page are those of the environments: the same games from the same seeds, a million moves."""

import json

import gymnasium as gym
import numpy as np
from mergefall.words import stream_from_seed
from mergefall_training import evaluate
from mergefall_training.compare.replays import page_rules
from mergefall_training.compare.report import PAGE
from mergefall_training.play.records import actions_of

TETRIS = "mergefall/Tetris-v0"
FREE = {"cols": 7, "rows": 9}
GAMES = [
    ("2048/random", "mergefall/Game2048-v0", {}, 4500),
    ("2048/greedy", "mergefall/Game2048-v0", {}, 400),
    ("2048/random", "mergefall/Game2048-v0", {"rows": 2, "cols": 3}, 500),
    ("2048/random", "mergefall/Game2048-v0", {"rows": 6, "cols": 5}, 20),
    ("2048/random", "mergefall/Game2048-v0", {"goal": 64}, 100),
    ("tetris/bcts", TETRIS, {"rows": 10}, 120),
    ("tetris/random", TETRIS, {"preview": 0}, 1000),
    ("tetris/random", "mergefall/Quintris-v0", {}, 100),
    ("tetris/random", "mergefall/SZTetris-v0", {}, 100),
    *(
        ("tetris/greedy", TETRIS, FREE | {"randomizer": randomizer, "placements": placements, "overflow": overflow}, 3)
        for randomizer in ("uniform", "bag7", "hidden")
        for placements in ("drop", "slide")
        for overflow in ("strict", "clear_first")
    ),
]

QUESTION = """() => {
  let moves = 0;
  const wrong = [];
  for (const contest of GIVEN) {
    for (const game of contest.games) {
      const twin = new GAMES[contest.game](contest.rules, game.stream);
      let legal = true;
      for (const action of game.actions) {
        if (twin.over && contest.game === "tetris") legal = false;
        legal &&= twin.step(action);
      }
      moves += game.actions.length;
      const found = { legal, score: twin.score, lines: twin.lines, over: twin.over };
      const board = twin.rules
        ? [...twin.cells.subarray(twin.rules.storage * twin.rules.cols)].map((cell) => Math.min(cell, 1))
        : [...twin.cells];
      const same = game.board === null || String(board) === String(game.board);
      const queue = game.queue === null || String(twin.queue) === String(game.queue);
      const counts = twin.score === game.score && twin.lines === (game.lines ?? undefined) && twin.over === game.over;
      if (!legal || !counts || !same || !queue)
        wrong.push({ rules: contest.name, seed: game.seed, expected: game, found });
    }
  }
  return { moves, wrong: wrong.slice(0, 3) };
}"""


def recorded(player, env_id, env_kwargs, count):
    """The games of a player, with the last board and queue of the first ones as the environment shows them."""
    cap = 3000 if "tetris" in player else None
    played = evaluate(player, env_id, count, 7, env_kwargs, 1, max_episode_steps=cap, progress=False, out=None)
    env = gym.make(env_id, **env_kwargs)
    for number, (episode, actions) in enumerate(games_of(played)):
        board = queue = None
        if number < 20:
            observation, _ = env.reset(seed=episode.seed)
            for action in actions.tolist():
                observation, *_ = env.step(action)
            tetris = isinstance(observation, dict)
            board = np.ravel(observation["board"] if tetris else observation).tolist()
            queue = [int(observation["piece"]), *np.ravel(observation.get("queue", [])).tolist()] if tetris else None
        yield {
            "seed": episode.seed,
            "stream": str(stream_from_seed(episode.seed)),
            "actions": actions.tolist(),
            "score": episode.score,
            "lines": getattr(episode, "lines", None),
            "over": episode.terminated,
            "board": board,
            "queue": queue,
        }


def games_of(played):
    for episode in played.episodes:
        yield episode, actions_of(episode.actions, episode.length)


def test_a_million_moves_are_those_of_the_environments(tmp_path, asked):
    given = [
        {
            "name": f"{env_id} {env_kwargs}",
            "game": "2048" if "2048" in env_id else "tetris",
            "rules": page_rules(gym.make(env_id, **env_kwargs).unwrapped.rules),
            "games": list(recorded(player, env_id, env_kwargs, count)),
        }
        for player, env_id, env_kwargs, count in GAMES
    ]
    page = tmp_path / "rules.html"
    page.write_text(f"<script>{(PAGE / 'rules.js').read_text()}\nconst GIVEN = {json.dumps(given)};</script>")
    answer = asked(page, QUESTION)
    assert answer["wrong"] == []
    assert answer["moves"] >= 1_000_000
