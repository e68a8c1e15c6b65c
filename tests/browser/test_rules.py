"""The rules in the page are those of the environments: the same games from the same seeds, a million moves and keys."""

import json
from dataclasses import asdict

import gymnasium as gym
import numpy as np
from mergefall.words import stream_from_seed
from mergefall_baselines import make
from mergefall_training import evaluate
from mergefall_training.compare.replays import page_rules
from mergefall_training.compare.report import PAGE
from mergefall_training.play.records import actions_of

TETRIS = "mergefall/Tetris-v0"
FREE = {"cols": 7, "rows": 9}
HELD = {"hold": True, "preview": 2}
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
        (player, TETRIS, FREE | {"randomizer": randomizer, "placements": placements} | more, count)
        for randomizer in ("uniform", "bag7", "hidden")
        for placements in ("drop", "slide", "reachable")
        for player, more, count in (
            ("tetris/greedy", {"overflow": "strict"}, 3),
            ("tetris/greedy", {"overflow": "clear_first"}, 3),
            ("tetris/random", HELD, 30),
            ("tetris/greedy", HELD, 1),
        )
    ),
]

QUESTION = """() => {
  let moves = 0;
  const wrong = [];
  for (const contest of GIVEN) {
    for (const game of contest.games) {
      const twin = new GAMES[contest.game](contest.rules, game.stream);
      let legal = true;
      for (const [i, action] of game.actions.entries()) {
        if (twin.over && contest.game === "tetris") legal = false;
        if (i % 10 === 0 && i / 10 < game.masks.length) {
          const mask = twin.legal(), sum = mask.reduce((sum, one, action) => sum + (one ? 1 + action : 0), 0);
          const drops = Array.from({ length: twin.rules?.reach ? 28 : 0 }, (_, i) => twin.dropping(i % 4, i >> 2));
          const alike = drops.every((action) => action < 0 || mask[action] === (twin.resting(action) !== null));
          legal &&= alike && sum === game.masks[i / 10];
        }
        legal &&= twin.step(action);
      }
      moves += game.actions.length;
      const seen = [twin.score, twin.lines ?? 0, +twin.over];
      if (game.masks.length) {
        const tetris = twin.rules, cells = [...twin.cells];
        const field = tetris && cells.slice(tetris.storage * tetris.cols).map((cell) => Math.min(cell, 1));
        seen.push(...(field ?? cells), ...(twin.queue ?? []), ...(tetris?.hold ? [twin.held ?? 7] : []));
      }
      if (!legal || String(seen) !== String(game.seen)) wrong.push({ name: contest.name, game, legal, seen });
    }
  }
  return { moves, wrong: wrong.slice(0, 3) };
}"""


def recorded(player, env_id, env_kwargs, count):
    """The games of a player, their figures, and of the first ones what the environment shows last, and some masks."""
    cap = 3000 if "tetris" in player else None
    played = evaluate(player, env_id, count, 7, env_kwargs, 1, max_episode_steps=cap, progress=False, out=None)
    env = gym.make(env_id, **env_kwargs)
    for number, episode in enumerate(played.episodes):
        actions = actions_of(episode.actions, episode.length).tolist()
        seen, masks = [episode.score, getattr(episode, "lines", 0), int(episode.terminated)], []
        if number < 20:
            observation, info = env.reset(seed=episode.seed)
            for step, action in enumerate(actions):
                if step % 10 == 0:  # the sum of 1 + each legal action
                    masks.append(int(np.flatnonzero(info["action_mask"]).sum() + info["action_mask"].sum()))
                observation, _, _, _, info = env.step(action)
            shown = observation if isinstance(observation, dict) else {"board": observation}
            for part in ("board", "piece", "queue", "hold"):
                seen += np.ravel(shown.get(part, [])).astype(int).tolist()
        stream = str(stream_from_seed(episode.seed))
        yield {"seed": episode.seed, "stream": stream, "actions": actions, "seen": seen, "masks": masks}


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


KEYS = "mergefall/TetrisKeys-v0"
WEIGHTS = np.random.default_rng(0).integers(1, 1 << 20, 1000)
CHANCES = np.array([0.1, 0.17, 0.17, 0.14, 0.14, 0.1, 0.08, 0.05, 0.05])  # of the keys in random play
NARROW = {"cols": 4, "rows": 12}
KEYED = [  # rules, and whose placements the keys make; None: keys are random
    ({}, None),
    ({}, "tetris/bcts"),
    ({"gravity": 0, "rotate_180": True, "preview": 6}, None),
    ({"gravity": 20, "lock_delay": 12, "lock_resets": 4}, None),
    ({"levels": True, "cols": 5, "rows": 10}, "tetris/bcts"),
    ({"gravity": 0.3, "lock_delay": 3, "lock_resets": 0, "preview": 0, "hold": False}, None),
    ({"garbage": {"rows": 0.7}, "randomizer": "uniform"}, "tetris/bcts"),
    ({"garbage": {"rows": 2.3, "holes": 2, "moves": 0.8}, "rotate_180": True}, None),
    (NARROW | {"randomizer": "uniform", "gravity": 0}, None),
    (NARROW | {"garbage": {"rows": 0.4, "moves": 1}, "gravity": 0.1}, None),
    ({"cols": 6, "rows": 8, "pieces": "sz"}, None),
    ({"cols": 16, "rows": 36, "gravity": 1}, None),
]
WELL = [3, *[1] * 9, 6]  # stand a piece in the column at the left wall
STARTED = [  # the lowest rows of a start, a seed whose first pieces are T, T, I, and I twice, and the keys
    ("##..../#...##/##.###", 1, [3, *[5] * 12, 3, 6]),
    ("..####/...###", 1, [3, 1, 1, *[5] * 12, 4, 6]),
    ("/".join([".#####"] * 4), 0, WELL),
    ("/".join([".#####"] * 8), 44, WELL * 2),
]
# Of each step one number stands for all that can be seen: its scalar product with fixed weights.
KEYED_QUESTION = """() => {
  const wrong = [], clears = {};
  let keys = 0;
  for (const contest of GIVEN) {
    for (const game of contest.games) {
      const twin = new TetrisKeys(contest.rules, game.stream);
      if (game.board) twin.cells.set(game.board, twin.rules.storage * twin.rules.cols);
      for (const [i, key] of game.keys.entries()) {
        const before = twin.pieces, mask = twin.legal().map((legal) => +(twin.over || legal));
        twin.step(key);
        const { falling: f, rules } = twin, cleared = twin.pieces > before ? twin.cleared : 0;
        const held = rules.hold ? [twin.held ?? 7] : [];
        const seen = [...[...twin.cells].map((cell) => Math.min(cell, 1)), ...twin.queue, f.rotation, f.column, f.y,
          +f.byHold, f.spin, f.phase, f.grounded, f.resets, f.lowest, twin.combo, +twin.chain, twin.pending, twin.level,
          ...held, twin.score, twin.lines, twin.pieces, twin.attack, cleared, +twin.over, ...mask];
        const sum = seen.reduce((sum, value, n) => sum + value * WEIGHTS[n], 0);
        keys++;
        clears[rules.clears[cleared]] = (clears[rules.clears[cleared]] ?? 0) + 1;
        if (sum !== game.sums[i]) {
          wrong.push({ rules, seed: game.seed, step: i, seen });
          break;
        }
      }
    }
  }
  return { keys, clears, wrong: wrong.slice(0, 3) };
}"""


def by_keys(env, seed, choose, board=None):
    """A game by keys as long as `choose(observation, mask)` returns a key: its keys, and one number for each."""
    observation, info = env.reset(seed=seed, options=None if board is None else {"board": board})
    keys, rows, over, first = [], [], False, None if board is None else observation["board"][4:].ravel().tolist()
    while not over and (key := choose(observation, info["action_mask"])) is not None:
        mask = info["action_mask"]
        observation, _, over, _, info = env.step(key)
        queue, held = observation.get("queue", ()), [observation["hold"]] if "hold" in observation else []
        seen = [*observation["board"].ravel(), observation["piece"], *queue, *observation["place"]]
        seen += [*observation["status"], *held, *(info[name] for name in ("score", "lines", "pieces", "attack"))]
        rows.append([int(number) for number in (*seen, info["clear"], over, *mask)])
        keys.append(key)
    sums = (np.array(rows) @ WEIGHTS[: len(rows[0])]).tolist()
    return {"seed": seed, "stream": str(stream_from_seed(seed)), "keys": keys, "sums": sums, "board": first}


def many_by_keys(env, of, count):
    """Games of so many keys in all; the last one is cut off."""
    rng, player, left = np.random.default_rng(3), None, iter(range(count))
    if of is not None:
        player = make("tetris/keys", of=of).with_rules(asdict(env.unwrapped.rules))

    def choose(observation, mask):
        if next(left, None) is None:
            return None
        if player is not None and rng.random() > 0.01:
            return int(player.act(observation))
        if observation["piece"] == 2 and observation["status"][1] and not mask[5]:
            return 6  # a T that was turned where it rests locks there
        chances = CHANCES[: len(mask)] * (mask if rng.random() < 0.9 else 1)
        return int(rng.choice(len(mask), p=chances / chances.sum()))

    games = []
    while sum(len(game["keys"]) for game in games) < count:
        games.append(by_keys(env, len(games), choose))
    return games


def started_by_keys(env):
    """The games of `STARTED`; then keys at random."""
    for rows, seed, keys in STARTED:
        board = "/".join(["......"] * (9 - rows.count("/")) + [rows])
        left = [*np.random.default_rng(seed).integers(0, 8, 100).tolist(), *keys[::-1]]
        yield by_keys(env, seed, lambda *_, left=left: left.pop() if left else None, board)


def test_games_by_keys_are_those_of_the_environment(tmp_path, asked):
    started = gym.make(KEYS, cols=6, rows=10, gravity=0, randomizer="uniform")
    played = [(started, list(started_by_keys(started)))]
    for kwargs, of in KEYED:
        env = gym.make(KEYS, **kwargs)
        played.append((env, many_by_keys(env, of, 10_000)))
    given = [{"rules": page_rules(env.unwrapped.rules), "games": games} for env, games in played]
    page, data = tmp_path / "keys.html", f"const GIVEN = {json.dumps(given)}, WEIGHTS = {WEIGHTS.tolist()};"
    page.write_text(f"<script>{(PAGE / 'rules.js').read_text()}\n{data}</script>")
    answer = asked(page, KEYED_QUESTION)
    assert answer["wrong"] == []
    assert answer["keys"] == sum(len(game["keys"]) for _, games in played for game in games) >= 120_000
    assert {"T-spin double", "mini T-spin single", "tetris", "perfect clear tetris"} <= answer["clears"].keys()
