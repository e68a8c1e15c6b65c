"""Evaluation: play many whole games in parallel, record each finished game, and summarise them."""

from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, takewhile
from typing import Any

import numpy as np
from mergefall import __version__
from mergefall.checks import choice, integer
from mergefall.imports import strings_in
from mergefall.tetris.keys.game import STEPS_PER_SECOND
from mergefall.typing import Array, FilePath, Ints, Options
from mergefall_baselines import Player
from mergefall_baselines.player import name_of_player
from mergefall_baselines.registry import player_of

from mergefall_training.play.match import Match
from mergefall_training.play.records import Episode, Header, RecordFile, code_of, read_records
from mergefall_training.play.statistics import (
    CONFIDENCE,
    Estimate,
    bootstrap,
    difference,
    exponential_mean,
    exponential_ratio,
    interquartile_mean,
    rate,
    ratio,
    short,
    superiority,
    wilson,
)
from mergefall_training.play.workers import play_all, task, workers_of
from mergefall_training.progress import progress_bar

SEEDS = 1_000_000  # Training uses seeds from here on, so that no agent is evaluated on its training games.


@dataclass(frozen=True)
class Summary:
    """The figures of an evaluation, with 95 % intervals.

    - `headline`: name of the figure that the game is judged by (`Evaluation.headline`).
    - `capped`, `deaths`: number of games that a cap ended, and of the others.
    - `stuck`: those of the others that ended because the player chose illegal actions, `illegal_limit` in a row.
    - `mean`, `median`, `iqm`: of the headline figure, with bootstrap intervals. For Tetris with capped games `mean` is
      `exponential_mean`, `median` and `iqm` are None.
    - `tiles`: for 2048, from tile 8 to the largest -> share of games that reached it, with Wilson's interval.
    - `moves_per_game`: a move is a piece in Tetris.
    - `ms_per_move`: per action, which is a piece in Tetris and a key in Tetris by keys.
    - `outcomes`: of matches, the shares of wins, draws and losses, with Wilson's intervals.
    - `rates`: of games by keys, rows of attack per piece, and pieces per second of the game (60 keys are a second).
    """

    headline: str
    episodes: int
    first_seed: int
    last_seed: int
    deaths: int
    capped: int
    stuck: int
    mean: Estimate
    median: Estimate | None
    iqm: Estimate | None
    tiles: dict[int, Estimate]
    moves_per_game: float
    ms_per_move: float
    outcomes: dict[str, Estimate]
    rates: dict[str, Estimate]


@dataclass(frozen=True, repr=False)
class Versus:
    """Two players on the same seeds.

    - `games`: number of seeds that both played.
    - `difference`: the mean of the first player's result minus the second's; None if a cap ended some games of a
      memoryless game, whose results are then only lower bounds.
    - `higher`: the probability that the first player's result is the higher one on a seed; ties count half. A capped
      game counts with what it reached.
    - `ratio`: the first mean divided by the second, as `Evaluation.ratio`; None of agents that were trained alike.
    - `confidence`: of the intervals.
    """

    games: int
    difference: Estimate | None
    higher: Estimate
    ratio: Estimate | None
    confidence: float = CONFIDENCE

    @property
    def verdict(self) -> int:
        """1 if the first player has the higher mean, -1 if the lower one, 0 if the interval does not say it."""
        found, level = (self.ratio, 1) if self.difference is None else (self.difference, 0)
        return 0 if found is None else int(found.low > level) - int(found.high < level)

    def __repr__(self) -> str:
        gap = "" if self.difference is None else f"difference {self.difference}, "
        return f"<{self.games} seeds of both: {gap}ratio {self.ratio}, chance of more {self.higher}>"


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Finished episodes of one player in one environment, sorted by seed.

    `by`: the figure that players are compared by, such as `attack`; default: the game's (`headline`). Raises ValueError
    for one that the game does not have.
    """

    header: Header
    episodes: list[Episode]
    by: str = ""

    def __post_init__(self) -> None:
        if self.by:
            choice("headline", self.by, self.game.figures)

    @property
    def game(self) -> Any:
        """The game that was played."""
        return self.episodes[0].game

    @property
    def headline(self) -> str:
        """The figure that players are compared by: score for 2048, lines for Tetris, wins with ``reward="goal"``."""
        return self.by or ("wins" if self.header.env_kwargs.get("reward") == "goal" else self.game.headline)

    @property
    def of_shares(self) -> bool:
        """Whether a result is a win or a loss."""
        return self.headline in ("wins", "won")

    @property
    def results(self) -> Array:
        """The headline figure of each game: int64[episodes]; for wins 1 or 0; float64 for matches, a draw is a half."""
        if self.headline == "wins":
            return (self.max_tiles >= self.header.env_kwargs["goal"]).astype(np.int64)
        found = self.figures(self.headline)
        return (found + 1) / 2 if self.of_shares else found

    def figures(self, name: str) -> Array:
        """A field of each episode: an array of integers, of floats for `seconds`."""
        return np.array([getattr(episode, name) for episode in self.episodes])

    @property
    def deaths(self) -> int:
        """The number of games that no cap ended: those that were lost or won, and those that got stuck."""
        return sum(not self.header.capped(episode) for episode in self.episodes)

    @property
    def censored(self) -> bool:
        """Whether a cap ended some games of a memoryless game; the mean is then `exponential_mean`."""
        return self.game.memoryless and not self.by and self.deaths < len(self.episodes)

    @property
    def seeds(self) -> set[int]:
        """The seeds of the games."""
        return {episode.seed for episode in self.episodes}

    @property
    def scores(self) -> Ints:
        """Final scores: int64[episodes]."""
        return self.figures("score")

    @property
    def max_tiles(self) -> Ints:
        """Largest tile of each game: int64[episodes]; empty for Tetris."""
        return self.figures("max_tile") if "max_tile" in self.game.figures else np.empty(0, np.int64)

    @property
    def ms_per_move(self) -> float:
        """Wall time in milliseconds per action."""
        return 1000 * float(self.figures("seconds").sum() / self.figures("length").sum())

    def tile_rate(self, tile: int) -> Estimate:
        """Share of games whose largest tile is at least ``tile``, with Wilson's 95 % interval."""
        return wilson(int((self.max_tiles >= tile).sum()), len(self.episodes))

    def mean(self) -> Estimate:
        """The mean result with its 95 % interval: bootstrapped; Wilson's for wins; `exponential_mean` if censored."""
        if self.of_shares:
            return wilson(float(self.results.sum()), len(self.episodes))
        if self.censored:
            return exponential_mean(int(self.results.sum()), self.deaths)
        return bootstrap(np.mean, self.results)

    def outcomes(self) -> dict[str, Estimate]:
        """Of matches, the shares of wins, draws and losses, with Wilson's 95 % intervals."""
        if not self.game.matches:
            return {}
        won = self.figures("won").tolist()
        return {name: wilson(won.count(n), len(won)) for name, n in (("wins", 1), ("draws", 0), ("losses", -1))}

    def rates(self) -> dict[str, Estimate]:
        """Of games by keys, attack per piece and pieces per second of the game, with bootstrap 95 % intervals."""
        if not self.game.by_keys:
            return {}
        attack, pieces, keys = map(self.figures, ("attack", "pieces", "length"))
        return {"attack/piece": rate(attack, pieces), "pieces/s": rate(pieces, keys / STEPS_PER_SECOND)}

    def ratio(self, other: "Evaluation", *, confidence: float = CONFIDENCE) -> Estimate:
        """The mean result divided by that of another player, with its interval; results must not be negative."""
        if self.censored or other.censored:
            return exponential_ratio(
                int(self.results.sum()), self.deaths, int(other.results.sum()), other.deaths, confidence=confidence
            )
        return ratio(self.results, other.results, confidence=confidence)

    @classmethod
    def read(cls, path: FilePath) -> "Evaluation":
        """The evaluation in a file that `evaluate` or `compare` wrote; raises ValueError if it is none or damaged."""
        header, episodes = read_records(path)
        if not episodes:
            raise ValueError(f"{path} holds no finished game")
        return cls(header, episodes)

    def versus(self, other: "Evaluation", *, confidence: float = CONFIDENCE) -> Versus:
        """This player beside another one, on the seeds that both played.

        Of k comparisons at once, all hold together with 95 % if each has ``confidence=1 - 0.05 / k`` (Bonferroni).

        Raises ValueError if they share no seed, or if they played in different environments.

        Example:
            >>> games = {name: evaluate(name, "mergefall/Game2048-v0", 30, workers=1, progress=False)
            ...          for name in ("2048/greedy", "2048/random")}
            >>> versus = games["2048/greedy"].versus(games["2048/random"])
            >>> versus.games, versus.difference.low > 0, versus.higher.value > 0.8
            (30, True, True)
        """
        theirs = other.header.said()
        for name, ours in self.header.said().items():
            if ours != theirs[name]:
                raise ValueError(
                    f"{name} is {ours!r} for {self.header.title}, {theirs[name]!r} for {other.header.title}"
                )
        common = self.seeds & other.seeds
        if not common:
            raise ValueError(f"{self.header.title} and {other.header.title} have no seed in common")
        pair = [replace(one, episodes=[e for e in one.episodes if e.seed in common]) for one in (self, other)]
        ours, theirs = pair[0].results, pair[1].results
        return Versus(
            len(common),
            None if any(one.censored for one in pair) else difference(ours, theirs, confidence=confidence),
            superiority(ours, theirs, confidence=confidence),
            pair[0].ratio(pair[1], confidence=confidence),
            confidence,
        )

    def __repr__(self) -> str:
        games = f"{len(self.episodes)} games: mean {self.headline} {self.mean()}"
        return f"<{self.header.title} in {self.header.env_id}, {games}>"

    def summary(self) -> Summary:
        """The figures that tables and plots show."""
        largest = int(self.max_tiles.max(initial=0))
        return Summary(
            headline=self.headline,
            episodes=len(self.episodes),
            first_seed=self.episodes[0].seed,
            last_seed=self.episodes[-1].seed,
            deaths=self.deaths,
            capped=len(self.episodes) - self.deaths,
            stuck=self.deaths - sum(episode.terminated for episode in self.episodes),
            mean=self.mean(),
            median=None if self.censored or self.of_shares else bootstrap(np.median, self.results),
            iqm=None if self.censored or self.of_shares else bootstrap(interquartile_mean, self.results),
            tiles={2**rank: self.tile_rate(2**rank) for rank in range(3, largest.bit_length())},
            moves_per_game=float(self.figures(self.game.turns).mean()),
            ms_per_move=self.ms_per_move,
            outcomes=self.outcomes(),
            rates=self.rates(),
        )


def evaluate(
    player: Any,
    env_id: str | Match,
    episodes: int,
    seed: int = 0,
    env_kwargs: Options | None = None,
    workers: int | None = None,
    out: FilePath | None = None,
    *,
    max_episode_steps: int | None = None,
    adversary: Options | None = None,
    max_pieces: int | None = None,
    executor: str | ProcessPoolExecutor = "processes",
    progress: bool = True,
) -> Evaluation:
    """Play games from the seeds ``seed``, ``seed + 1``, … and return them sorted by seed.

    Each is the game from ``reset(seed=…)``, whichever process plays it, also in a resumed run.

    Args:
        player: a registered name, a mapping of `player` and options, a `Player`, anything with Stable-Baselines3's
            ``predict``, or a function of an observation that returns an action.
        env_id, env_kwargs: the environment, as for ``gymnasium.make``; or a `Match`, which says more.
        episodes: number of games.
        seed: seed of the first game.
        workers: processes that play side by side; 1: this process; default: one per core. Networks
            (`Player.batched`) play all games side by side in this process instead. The number of games may change the
            last digits of a network's output, and so a move that is nearly a tie.
        out: JSON-lines file to which each finished episode is appended. The same call plays the missing episodes.
        max_episode_steps: cap on the length of games; default: none.
        adversary: a searcher that draws new tiles or pieces against the player, as the arguments of
            `mergefall_training.wrappers.adversary`: ``{"player": "2048/minimax", "rate": 0.1}``. Default: none, chance
            draws alone, as at rate 0. Against an adversary no game is played in a compiled loop.
        max_pieces: cap on the pieces of games of Tetris; default: none.
        executor: "processes"; "ray", a Ray cluster whose size replaces `workers`; or a `process_pool` to share.
        progress: whether to show a progress bar.

    Raises ValueError for bad arguments, and if `out` holds another run, is damaged, or another run is writing to it.

    Example:
        >>> evaluate("2048/random", "mergefall/Game2048-v0", 3, workers=1, progress=False).episodes[2].seed
        2
    """
    player = player_of(player)
    episodes = integer("episodes", episodes, 1, SEEDS)
    seed = integer("seed", seed, 0, SEEDS - episodes)
    workers = workers_of(workers)
    if executor not in ("processes", "ray") and not isinstance(executor, ProcessPoolExecutor):
        raise ValueError(f"executor is {executor!r}; expected 'processes', 'ray' or a `process_pool`")
    match = env_id
    if not isinstance(match, Match):
        match = Match.read(match, env_kwargs, max_episode_steps, adversary, max_pieces)
    job, header = task(player, match), _header(player, match, out)
    wanted = range(seed, seed + episodes)
    count, note = 0, ""
    with nullcontext() if out is None else RecordFile(out, header) as records:
        finished: dict[int, Episode] = records.episodes if records else {}
        done = [finished[one] for one in wanted if one in finished]
        games = play_all(job, [one for one in wanted if one not in finished], workers, executor)
        source = f"{header.title}, {len(done):,} games from {out}" if done else header.title
        try:
            with closing(games), progress_bar(source, episodes, enabled=progress) as show:
                for count, episode in enumerate(chain(done, games), start=1):
                    if records and episode.seed not in finished:
                        records.append(episode)
                    finished[episode.seed] = episode
                    if count == episodes or (count >= 8 and count & (count - 1) == 0):
                        first = [finished[one] for one in takewhile(finished.__contains__, wanted)]
                        note = _note(Evaluation(header, first), episodes) if first else ""
                    show(count, note)
        except KeyboardInterrupt as interrupt:
            if records:
                interrupt.add_note(f"{count} of {episodes} episodes are in {out}; the same call plays the rest")
            raise
    return Evaluation(header, [finished[one] for one in wanted])


def _header(player: Player, match: Match, out: Any) -> Header:
    """The header of a player's games in a match. Raises ValueError if a file (`out`) cannot name the player."""
    name, options, code = name_of_player(player), dict(player.options), {}
    if out is not None:
        if player.name == Player.name:  # without a name, a resumed run could mix two models of one class
            raise ValueError(f"a file of episodes must name its player: set `player.name = ...`, or leave out {out}")
        if local := [text for text in strings_in([name, options]) if "<lambda>" in text or "<locals>" in text]:
            raise ValueError(f"a file of episodes must name the function {local[0]}: register it with a name")
        # A model of its own is known by its checksum.
        code = code_of("" if "checksum" in options else name, options, player, match.adversary)
    return Header(player=name, options=options, package=__version__, code=code, **match.said())


def _note(first: Evaluation, episodes: int) -> str:
    """The mean of the games of the first seeds, for the progress bar: of all that are over, short ones are too many."""
    played = len(first.episodes)
    count = first.deaths if first.game.memoryless else played  # as `Evaluation.mean` where a cap ends games
    of = "" if played == episodes else f" of the first {played}"
    return f"mean {short(float(first.results.sum()) / count)}{of}" if count else ""
