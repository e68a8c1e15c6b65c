"""Recorded games as the page plays them: actions, rules, colours, and what the player thought at some positions."""

import base64
import json
import zlib
from dataclasses import asdict
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import DependencyNotInstalled
from mergefall.game2048 import board
from mergefall.game2048.render import TILES, tile_colours
from mergefall.game2048.rules import Rules as Rules2048
from mergefall.games import stack
from mergefall.tetris import game
from mergefall.tetris.keys import CLEARS
from mergefall.tetris.keys import game as by_keys
from mergefall.tetris.keys.rules import Rules as RulesOfKeys
from mergefall.tetris.pieces import NAMES, rotations
from mergefall.tetris.placements import ABOVE, ROTATIONS, SLIDES, STEPS
from mergefall.tetris.render import GREY, PALETTE
from mergefall.tetris.srs import MOVES
from mergefall.text import action_names
from mergefall.typing import Dict
from mergefall.words import stream_from_seed
from mergefall_baselines import Player, make
from mergefall_baselines.player import check_values, recorded, steps

from mergefall_training.compare.results import Row
from mergefall_training.compare.sections import Section
from mergefall_training.files import within
from mergefall_training.play.records import Episode, Header, actions_of
from mergefall_training.play.watching import BY_HAND
from mergefall_training.play.workers import task
from mergefall_training.progress import progress_bar

MOST_SECONDS = 300  # for the values of a player


def replays_of(section: Section, count: int, values: int, progress: bool) -> Dict:
    """The section's games as the page plays them."""
    result = section.result
    header = result.rows[0].evaluation.header
    shared = set.intersection(*({e.seed for e in row.evaluation.episodes} for row in result.rows))
    env: Any = gym.make(header.env_id, **header.game_kwargs).unwrapped
    # For 2048 the colours (tile, digits) by rank from 1 on, for Tetris that of each piece.
    tiles = result.game.name == "2048"
    filled = (*PALETTE, GREY)  # the last is that of garbage
    palette = [tile_colours(rank) for rank in range(1, len(TILES) + 1)] if tiles else [[colour] for colour in filled]
    players, rows = [], result.rows
    if header.adversary is not None or result.game.matches:  # the page cannot play the other one's part
        section.problems.append("games against another player are not shown; `mergefall watch FILE` shows one")
        rows = []
    with progress_bar(f"{result.name}: replays", len(rows), enabled=progress and bool(rows)) as show:
        for done, row in enumerate(rows, start=1):
            players.append({"label": row.label, "replays": _replays(section, row, sorted(shared)[:count], values)})
            show(done, row.label)
    return {
        "game": result.game.name,
        "colours": [["#" + bytes(colour).hex() for colour in colours] for colours in palette],
        "actions": _packed(json.dumps(action_names(env.rules)).encode()),  # reachable placements have thousands
        "headline": result.headline,
        "rules": page_rules(env.rules),
        "players": players,
    }


def page_rules(rules: Any) -> Dict:
    """An environment's rules (`env.unwrapped.rules`) as `rules.js` takes them."""
    if isinstance(rules, Rules2048):
        return asdict(rules) | {"goal": rules.goal_rank, "four": int(board.FOUR_IN_2_32)}
    pieces = rules.piece_set
    field = asdict(rules) | {
        "copies": game.MOST_COPIES,
        "storage": pieces.storage,
        "first": NAMES.index(pieces.names[0]),
        "drawn": list(pieces.drawn),
        "pieces": [{"name": name, "rotations": rotations(name)} for name in pieces.names],
        "kicks": MOVES.tolist() if isinstance(rules, RulesOfKeys) or rules.reachable else None,
    }
    if not isinstance(rules, RulesOfKeys):
        return field | {
            "reach": rules.rows + ABOVE if rules.reachable else 0,
            "slides": STEPS[: SLIDES if rules.slides else 1].tolist(),
            "turns": ROTATIONS,
            "lineScores": game.LINE_SCORES.tolist(),
        }
    (state,) = rules.new_states(1)
    garbage = zip(("rate", "holes", "moving"), state[[game.RATE, game.HOLES, game.MOVING]].tolist(), strict=True)
    return field | {
        "keys": rules.n_actions,
        "timed": rules.timed,
        "falls": by_keys.FALLS.tolist() if rules.levels else [int(by_keys.gravity_of(state))],
        "levelLines": by_keys.LEVEL_LINES,
        "garbage": dict(garbage) if rules.garbage else None,
        "clears": CLEARS,
        "points": by_keys.POINTS.tolist(),
        "attacks": by_keys.ATTACKS.tolist(),
        "perfectPoints": by_keys.PERFECT_POINTS.tolist(),
        "perfectChained": by_keys.PERFECT_CHAINED,
        "perfectAttack": by_keys.PERFECT_ATTACK,
        "comboPoints": by_keys.COMBO_POINTS,
        "comboAttacks": by_keys.COMBO_ATTACKS.tolist(),
    }


def _replays(section: Section, row: Row, first: list[int], values: int) -> list[Dict]:
    """The games of a player that can be watched: those of the seeds `first`, its best and its worst."""
    header, player = row.evaluation.header, None
    episodes = {episode.seed: episode for episode in row.evaluation.episodes}
    worst, *_, best = sorted(episodes.values(), key=lambda episode: episode.result) * 2
    notes = dict.fromkeys(first, "") | {best.seed: "best"} | {worst.seed: "worst"}
    try:
        if values and header.player != BY_HAND:
            header.check_player()
            player = task(make(header.player, **header.options), header).player
        with within(MOST_SECONDS, "to value positions"):
            return [_replay(header, episodes[seed], note, player, values) for seed, note in notes.items()]
    except (ValueError, OSError, RecursionError, DependencyNotInstalled) as error:
        section.problems.append(f"{row.label}: its values are missing, because {error}")
        return [_replay(header, episodes[seed], note, None, 0) for seed, note in notes.items()]


def _replay(header: Header, episode: Episode, note: str, player: Player | None, values: int) -> Dict:
    """One game as the page plays it, with the player's values at some positions."""
    actions = actions_of(episode.actions, episode.length)
    found: Dict = {
        **{name: getattr(episode, name) for name in ("seed", "actions", "length", "result", "score", "terminated")},
        "note": note,
        "stream": str(stream_from_seed(episode.seed)),
        "wide": bool(actions.max(initial=0) > 255),
    }
    half, n = values // 2, len(actions)
    if player is None or not half or getattr(player, "remembers", False):
        return found
    ranges = [[0, min(half, n)], [max(half, n - half), n]]
    wanted = {at for first, last in ranges for at in range(first, last)}
    played = steps(gym.make(header.env_id, **header.game_kwargs), episode.seed, recorded(actions.tolist()))
    observations = [step.observation for at, step in enumerate(played) if at in wanted]
    valued = np.asarray(player.values(stack(observations)), dtype=np.float64)
    check_values(player.name, valued)
    likely = getattr(player, "log_probabilities", False)
    if likely:  # of the legal actions alone
        valued -= np.log(np.exp(valued).sum(axis=1, keepdims=True))
    data = _packed(valued.astype("<f4").tobytes())
    found["values"] = {"ranges": ranges, "kind": "probability" if likely else "value", "data": data}
    return found


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()
