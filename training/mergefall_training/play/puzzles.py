"""Puzzles for language models: positions with a reward for every move, from exact solutions or strong players.

The reward of a move is how little it loses against the best one, by the values of a player, the judge::

    reward = (value − worst) / (best − worst),

1 for the best legal move and 0 for the worst; 1 for all if all are equally good. A fatal placement, an illegal move and
an answer that cannot be read earn 0. A value within a billionth of the best one counts as equal, because early in a
game on 3×3 moves may differ by no more.
"""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from mergefall.checks import choice, integer, number
from mergefall.games import game_of
from mergefall.text import Verdict, action_names, canonical, in_words, position, prompt, read_answer
from mergefall.typing import Dict, Floats, Observation, Options
from mergefall_baselines import Player
from mergefall_baselines.player import Step, chosen_by, steps
from numpy.typing import ArrayLike

from mergefall_training.play.evaluation import SEEDS
from mergefall_training.play.match import Match, environment
from mergefall_training.play.workers import Task, task

TEST_SHARE = 8  # one position in so many is for tests
LONGEST = 300  # moves before a position
RANDOM_MOVES = 0.1  # share of the moves before a position
PATIENCE = 1_000  # positions in a row without a puzzle
SOLVED_AT_ONCE = 6  # cells
EQUAL = 1e-9  # a value that is less than the best one by no more than this share of it counts as equal
SPLITS = ("train", "test")


def move_rewards(values: ArrayLike) -> Floats:
    """The rewards of moves, float64[…, actions], from a player's values; −∞ marks illegal and fatal moves.

    >>> move_rewards([3, 1, 2, -np.inf])
    array([1. , 0. , 0.5, 0. ])
    >>> move_rewards([[2, 2, -np.inf, -np.inf], [-np.inf, 5, -np.inf, -np.inf]])
    array([[1., 1., 0., 0.],
           [0., 1., 0., 0.]])
    """
    values = np.asarray(values, dtype=np.float64)
    counts = np.isfinite(values)
    best = values.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(counts & (values >= best - EQUAL * np.abs(best)), best, values)
        worst = np.where(counts, values, np.inf).min(axis=-1, keepdims=True)
        rewards = np.where(best > worst, (values - worst) / (best - worst), 1.0)  # 1 where all are equally good
    return np.where(counts, rewards, 0.0)


@dataclass(frozen=True)
class Puzzle:
    """A position, and what each answer is worth; all fields are of JSON types (`dataclasses.asdict`).

    - `id`: environment, split and number; the same arguments of `puzzles` give the same puzzles.
    - `position`: as `mergefall advise` reads it; `prompt`: as a question.
    - `mask`: of the actions, 1 for a legal one. `rewards`: of the actions. `names`: of the actions.
    - `gap`: the reward lost by the second-best move. Small gaps are hard.
    """

    id: str
    env_id: str
    env_kwargs: Dict
    position: str
    prompt: str
    mask: list[int]
    rewards: list[float]
    names: list[str]
    gap: float


def puzzles(
    env_id: str,
    env_kwargs: Options | None = None,
    *,
    judge: Any = None,
    split: Literal["train", "test"] = "train",
    gap: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
) -> Iterator[Puzzle]:
    """Endless puzzles of one environment.

    Args:
        env_id, env_kwargs: the environment.
        judge: the player whose values make rewards, a name, a mapping of `player` and options, or a player; default:
            `2048/optimal` on boards up to 2×3, the n-tuple network on 4×4, on others expectimax; in Tetris the deep
            two-tetrad search with bcts. Exact rewards on 2×4 and 3×3 cost time at the start, so ask for them:
            `"2048/optimal"` solves 2×4 in seconds, and 3×3 in a minute or two with 0.8 GiB of memory.
            The judge also plays up to the positions, but for one move in ten, which is random.
        split: `train` or `test`. No position is in both, nor turned or mirrored, whatever the seeds (`split_of`).
        gap: smallest and largest `gap` of a puzzle.
        seed: of the positions. The number of moves before one is drawn from 0 up to `LONGEST`; in a game that ends
            before, from 0 up to its end.

    Raises ValueError for wrong arguments, and if none of 1,000 positions in a row (`test`: 8,000) is such a puzzle.

    Example:
        >>> puzzle = next(puzzles("mergefall/Game2048-v0", {"rows": 2, "cols": 2}, gap=(0.5, 1)))
        >>> best = puzzle.names[puzzle.rewards.index(1.0)]
        >>> reward(puzzle, f"<answer>{best}</answer>"), reward(puzzle, "I don't know")
        (1.0, 0.0)
    """
    choice("split", split, SPLITS)
    integer("seed", seed, 0)
    if not isinstance(gap, tuple | list) or len(gap) != 2:
        raise ValueError(f"gap is {gap!r}; expected the smallest and the largest")
    low, high = (number("gap", end, 0, 1) for end in gap)
    if low > high:
        raise ValueError(f"gap is {gap}; expected the smaller end first")
    in_words(game_of(env_id))
    match = Match.read(env_id, env_kwargs)
    judging = task(default_judge(env_id, match.env_kwargs) if judge is None else judge, match)
    return _drawn(judging, split, (low, high), seed)


def default_judge(env_id: str, env_kwargs: Options) -> Dict:
    """The judge of an environment, as a mapping of `player` and options."""
    if in_words(game_of(env_id)).name == "tetris":
        return {"player": "tetris/two-tetrad", "heuristic": "bcts"}
    rows, cols = (int(env_kwargs.get(name, 4)) for name in ("rows", "cols"))
    if rows * cols <= SOLVED_AT_ONCE:
        return {"player": "2048/optimal", "rows": rows, "cols": cols}
    if (rows, cols) == (4, 4):
        return {"player": "2048/ntuple"}
    return {"player": "2048/expectimax", "heuristic": "nneonneo", "depth": 2}


def _drawn(judging: Task, split: str, gap: tuple[float, float], seed: int) -> Iterator[Puzzle]:
    judge, match, env = judging.player, judging.match, judging.match.make()
    rules, refused = env.unwrapped.rules, 0
    for attempt in itertools.count():
        if refused == PATIENCE * (TEST_SHARE if split == "test" else 1):
            raise ValueError(
                f"none of {refused:,} positions is of split {split!r} and has a gap from {gap[0]:g} to {gap[1]:g}"
            )
        refused += 1
        rng = np.random.default_rng([seed, attempt])
        step = _position(env, judge, attempt, rng)
        observation, mask = step.observation, step.info["action_mask"]
        if split_of(observation, rules) != split:
            continue
        rewards = move_rewards(judge.values(observation))
        second = np.sort(rewards[mask == 1])[::-1][1:2]
        lost = float(1 - second[0]) if len(second) else 0.0
        if rewards.any() and len(second) and gap[0] <= lost <= gap[1]:  # where all moves lose, none is best
            refused = 0
            yield Puzzle(
                id=f"{match.env_id} {split} {seed}.{attempt}",
                env_id=match.env_id,
                env_kwargs=match.env_kwargs,
                position=position(observation, rules),
                prompt=prompt(observation, rules, mask),
                mask=mask.tolist(),
                rewards=rewards.tolist(),
                names=action_names(rules),
                gap=lost,
            )


def _position(env: Any, judge: Player, seed: int, rng: np.random.Generator) -> Step:
    """Play up to a position; if the game ends before, to a random one of the game."""
    guided = chosen_by(judge, seed)

    def choose(step: Step) -> int:
        action = guided(step)
        return int(rng.choice(np.flatnonzero(step.info["action_mask"]))) if rng.random() < RANDOM_MOVES else action

    game = steps(env, int(rng.integers(SEEDS)), choose)
    last, kept = int(rng.integers(LONGEST + 1)), Step(None, {})
    for moves, step in enumerate(game):
        if step.terminated:
            break
        if moves == last:
            return step
        if rng.integers(moves + 1) == 0:  # each position of the game with the same probability
            kept = step
    return kept


def split_of(observation: Observation, rules: Any) -> str:
    """The split of a position and of all its symmetric forms: `test` for one in eight, else `train`.

    A digest of the canonical position decides (`mergefall.text.canonical`), so no seed and no player changes it.
    """
    first = hashlib.sha256(canonical(observation, rules).encode()).digest()[0]
    return "train" if first % TEST_SHARE else "test"


def reward(puzzle: Puzzle, answer: str) -> float:
    """What a language model's answer earns: the reward of the move it names, 0 if that is illegal or unreadable."""
    return judged(puzzle, answer)[1]


def judged(puzzle: Puzzle, answer: str) -> tuple[Verdict, float]:
    """The action that an answer names, whether it is legal (`mergefall.text.read_answer`), and the reward."""
    verdict = read_answer(answer, rules_of(puzzle), puzzle.mask)
    return verdict, puzzle.rewards[verdict.action] if verdict.kind == "legal" and verdict.action is not None else 0.0


def rules_of(puzzle: Puzzle) -> Any:
    """The rules of a puzzle's environment (`env.unwrapped.rules`)."""
    return environment(puzzle.env_id, puzzle.env_kwargs).unwrapped.rules
