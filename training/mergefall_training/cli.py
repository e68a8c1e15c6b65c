"""The command ``mergefall``: what it can do, as typed dataclasses; each one's `run` does it.

Everything heavy is imported where it is used, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from mergefall_training.climbing import Settings

Options = tyro.conf.UseAppendAction[list[str]]
PlayerName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PLAYER")]


@dataclass(frozen=True)
class Evaluate:
    """Play many games with one player and print what they show."""

    player: PlayerName
    """A player's name, as `mergefall players` lists them, or the folder or model file of a trained agent."""
    episodes: int = 100
    """How many games."""
    option: Options = field(default_factory=list)
    """One of the player's options, NAME=VALUE in YAML; may be repeated."""
    env: str | None = None
    """The environment's id; the player's game unless told."""
    env_option: Options = field(default_factory=list)
    """One of the environment's arguments, NAME=VALUE in YAML; may be repeated."""
    max_episode_steps: int | None = None
    """Moves (in Tetris: pieces) after which a game is cut off."""
    seed: int = 0
    """The first game's seed; game k is played from seed + k."""
    workers: int | None = None
    """Processes that play side by side; one per core unless told."""
    executor: Literal["processes", "ray"] = "processes"
    """Where they run: on this machine, or on a Ray cluster (RAY_ADDRESS; else one is started here)."""
    out: Path | None = None
    """File to which each game is appended as it ends; the same command on it resumes a run that was stopped."""

    def run(self) -> None:
        from mergefall_baselines import make

        from mergefall_training.comparison import print_result
        from mergefall_training.console import console
        from mergefall_training.evaluation import evaluate
        from mergefall_training.results import GameResult, Row
        from mergefall_training.suites import Entry, Game

        env, kwargs = game_of(self.player, self.env, self.env_option)
        player = make(self.player, **parse_options(self.option))
        evaluation = evaluate(
            player,
            env,
            self.episodes,
            self.seed,
            kwargs,
            self.workers,
            self.out,
            max_episode_steps=self.max_episode_steps,
            executor=self.executor,
        )
        header = evaluation.header
        entry = Entry(header.player, header.options, header.title, self.episodes)
        game = Game(header.title, header.env_id, header.env_kwargs, header.max_episode_steps, self.seed, (entry,))
        print_result(
            GameResult(game, [Row(entry, evaluation, evaluation.summary(), player.batched and self.executor != "ray")]),
            console(),
        )


@dataclass(frozen=True)
class Compare:
    """Play a suite: several players on the same seeds, with a table, files and plots."""

    suite: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SUITE")] = "quick"
    """`documented`, `prairie-fire`, `tetris`, or a YAML file of one's own; with the extra `train` also `quick`,
    `maskable-ppo`, `potentials`."""
    out: Path | None = None
    """Folder for episodes, results and plots; results/SUITE unless told. The same command on it resumes."""
    workers: int | None = None
    """Processes that play side by side; one per core unless told."""
    executor: Literal["processes", "ray"] = "processes"
    """Where they run: on this machine, or on a Ray cluster (RAY_ADDRESS; else one is started here)."""

    def run(self) -> None:
        from mergefall_training.comparison import compare

        compare(self.suite, self.out or Path("results", Path(self.suite).stem), self.workers, executor=self.executor)


@dataclass(frozen=True)
class Tune:
    """Find better weights for a player's heuristic: hill climbing over games, one weight at a time, with restarts.

    With an algorithm of `mergefall train` in place of the player: better hyper-parameters than its preset's. That has
    other options; `mergefall tune maskable-ppo --help` lists them.
    """

    player: PlayerName
    """A player's name, as `mergefall players` lists them."""
    option: Options = field(default_factory=list)
    """One of the player's options, NAME=VALUE in YAML; may be repeated. The heuristic given here is the start."""
    heuristic: str = "heuristic"
    """The name of the option that holds what is tuned."""
    weight: Options = field(default_factory=list)
    """One of the weights to change, `stages.0.1.penalty` being one within another; may be repeated; all unless told."""
    settings: Annotated[Settings, tyro.conf.arg(name="")] = field(default_factory=Settings)
    env: str | None = None
    """The environment's id; the player's game unless told."""
    env_option: Options = field(default_factory=list)
    """One of the environment's arguments, NAME=VALUE in YAML; may be repeated."""
    max_episode_steps: int | None = None
    """Moves (in Tetris: pieces) after which a game is cut off."""
    workers: int = 1
    """Processes that play side by side."""
    out: Path | None = None
    """File to which each trial is appended as it ends; the same command on it resumes a run that was stopped."""

    def run(self) -> None:
        from mergefall_training.tuning import print_tuning, tune

        env, kwargs = game_of(self.player, self.env, self.env_option)
        tuning = tune(
            self.player,
            parse_options(self.option),
            env,
            self.settings,
            option=self.heuristic,
            only=self.weight,
            env_kwargs=kwargs,
            max_episode_steps=self.max_episode_steps,
            workers=self.workers,
            out=self.out,
        )
        print_tuning(tuning)


@dataclass(frozen=True)
class TunePreset:
    """Find better hyper-parameters than an algorithm's preset has: training runs, chosen by Optuna.

    With a player in place of the algorithm: better weights for its heuristic. That has other options; `mergefall tune
    --help` lists them.
    """

    algorithm: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ALGORITHM")]
    """`maskable-ppo`, `ppo`, `dqn`, `qr-dqn`, `clone`, `afterstate`; for Tetris `cross-entropy`, `cma-es`."""
    space: Options = field(default_factory=list)
    """Where to search one of the hyper-parameters, NAME=CHOICES or NAME=RANGE in YAML, such as `gamma=[0.9, 0.99]`,
    `n_epochs={low: 1, high: 8}`, or `learning_rate={low: 1e-4, high: 1e-2, log: true, prefix: lin_}`; may be repeated.
    The others are searched as is usual for the algorithm."""
    set: Options = field(default_factory=list)
    """One of the preset's hyper-parameters, NAME=VALUE in YAML, which is then not searched; may be repeated."""
    env: str = "mergefall/Game2048-v0"
    """The environment's id."""
    env_option: Options = field(default_factory=list)
    """One of the environment's arguments, NAME=VALUE in YAML; may be repeated."""
    max_episode_steps: int | None = None
    """Moves (in Tetris: pieces) after which a game is cut off."""
    timesteps: int | None = None
    """Steps of each training run, of all its environments together; the preset's unless told."""
    trials: int = 30
    """The most choices of hyper-parameters to try; the first is the preset's."""
    seeds: int = 1
    """Training runs of a trial, from as many seeds."""
    episodes: int = 100
    """Games that each trained agent plays."""
    finalists: int = 3
    """The best trials, which are trained again, as is the preset."""
    finals: int = 3
    """Training runs of each finalist, from fresh seeds."""
    seed: int = 0
    """Where the choices come from; the first training seed too."""
    device: str = "auto"
    """PyTorch's device; a GPU where there is one, unless told."""
    out: Path | None = None
    """Folder for the trials and their runs; results/tune-ALGORITHM-ENV unless told. The same command on it resumes."""

    def run(self) -> None:
        from mergefall_training.learning import import_learning

        searching = import_learning("searching")
        found = searching.search(
            self.algorithm,
            self.env,
            searching.Settings(self.trials, self.seeds, self.episodes, self.finalists, self.finals, self.seed),
            out=self.out or Path("results", f"tune-{self.algorithm}-{self.env.rpartition('/')[2]}"),
            timesteps=self.timesteps,
            space=parse_options(self.space),
            changed=parse_options(self.set),
            env_kwargs=parse_options(self.env_option),
            max_episode_steps=self.max_episode_steps,
            device=self.device,
        )
        searching.print_search(found)


@dataclass(frozen=True)
class Train:
    """Train an agent by the preset for its algorithm and game, but for what is told. Its folder is a player."""

    algorithm: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ALGORITHM")]
    """`maskable-ppo`, `ppo`, `dqn`, `qr-dqn`, `clone`, `afterstate`; for 2048 `ntuple`; for Tetris `td`,
    `cross-entropy`, `cma-es`."""
    env: str = "mergefall/Game2048-v0"
    """The environment's id."""
    preset: str | None = None
    """Another preset than the usual one: `2min`, `20min`, `2h`, `small` (ntuple), `linear` (td), `far` (afterstate)."""
    env_option: Options = field(default_factory=list)
    """One of the environment's arguments, NAME=VALUE in YAML; may be repeated."""
    max_episode_steps: int | None = None
    """Moves (in Tetris: pieces) after which a game is cut off."""
    set: Options = field(default_factory=list)
    """One of the preset's hyper-parameters, NAME=VALUE in YAML; may be repeated."""
    timesteps: int | None = None
    """Steps of all environments together; the preset's unless told."""
    seed: int = 0
    """The run's: different ones share neither games nor first weights."""
    interval: int | None = None
    """Steps between evaluations, each with a checkpoint; a twentieth of the run unless told."""
    episodes: int = 30
    """Games of each evaluation."""
    device: str = "auto"
    """PyTorch's device; a GPU where there is one, unless told."""
    resume: bool = False
    """Continue the run in the folder from its last checkpoint. Fails if there is no run."""
    out: Path | None = None
    """The run's folder; runs/ALGORITHM-ENV-SEED unless told."""

    def run(self) -> None:
        from mergefall_training.learning.presets import configure
        from mergefall_training.learning.runs import train

        config = configure(
            self.algorithm,
            self.env,
            env_kwargs=parse_options(self.env_option),
            max_episode_steps=self.max_episode_steps,
            changed=parse_options(self.set),
            timesteps=self.timesteps,
            interval=self.interval,
            episodes=self.episodes,
            seed=self.seed,
            preset=self.preset,
        )
        folder = self.out or Path("runs", f"{self.algorithm}-{self.env.rpartition('/')[2]}-{self.seed}")
        run = train(folder, config, resume=self.resume, device=self.device)
        best = max(run.points, key=lambda point: point.mean)
        figure = f"mean {best.headline} {best.mean:,.0f} [{best.low:,.0f}, {best.high:,.0f}], N={best.episodes}"
        print(f"{folder}: {run.points[-1].step:,} steps in {run.seconds:,.0f} s; best at {best.step:,}: {figure}")


@dataclass(frozen=True)
class Pack:
    """Write a run's n-tuple network to a file of its own, rounded and compressed: `2048/ntuple` plays it."""

    run_folder: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run's folder, or a model file."""
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """The file to write, such as network.npz."""
    bits: int = 10
    """Of each entry, 2 to 16, in even steps up to its table's largest; 32 leaves them as they are."""
    entries: int | None = None
    """Keep only so many entries, those that the run adjusted most; all unless told."""

    def run(self) -> None:
        from mergefall_training.learning.ntuple import network_of, prune

        network = network_of(self.run_folder)
        if self.entries is not None:
            prune(network, self.run_folder, self.entries)
        checksum = network.save(self.file, self.bits)
        size = self.file.stat().st_size
        print(f"{self.file}: {network.touched().sum():,} entries, {size:,} bytes, checksum {checksum[:16]}")


@dataclass(frozen=True)
class Demonstrate:
    """Write a player's games as a Minari dataset, to learn from."""

    player: PlayerName
    """A player's name, as `mergefall players` lists them."""
    episodes: int = 100
    """How many games."""
    option: Options = field(default_factory=list)
    """One of the player's options, NAME=VALUE in YAML; may be repeated."""
    env: str | None = None
    """The environment's id; the player's game unless told."""
    env_option: Options = field(default_factory=list)
    """One of the environment's arguments, NAME=VALUE in YAML; may be repeated."""
    max_episode_steps: int | None = None
    """Moves (in Tetris: pieces) after which a game is cut off."""
    seed: int = 1_000_000
    """The first game's seed; those below a million are for evaluations."""
    dataset: str | None = None
    """The dataset's name, such as NAMESPACE/NAME-v0; mergefall/ENVIRONMENT/PLAYER-v0 unless told."""
    workers: int | None = None
    """Processes that play side by side; one per core unless told."""

    def run(self) -> None:
        from mergefall_baselines import make

        from mergefall_training.learning import import_learning

        env, kwargs = game_of(self.player, self.env, self.env_option)
        name = import_learning("demonstrations").demonstrate(
            make(self.player, **parse_options(self.option)),
            env,
            self.episodes,
            dataset=self.dataset,
            seed=self.seed,
            env_kwargs=kwargs,
            max_episode_steps=self.max_episode_steps,
            workers=self.workers,
        )
        print(f"minari.load_dataset({name!r})")


@dataclass(frozen=True)
class Watch:
    """Watch a player play one game, in the terminal, in a window, or as a video file."""

    player: PlayerName
    """A player's name, or a file that `mergefall evaluate --out` wrote: its player then plays its game again."""
    option: Options = field(default_factory=list)
    """One of the player's options, NAME=VALUE in YAML; may be repeated."""
    env: str | None = None
    """The environment's id; the player's game unless told."""
    env_option: Options = field(default_factory=list)
    """One of the environment's arguments, NAME=VALUE in YAML; may be repeated."""
    max_episode_steps: int | None = None
    """Moves (in Tetris: pieces) after which the game is cut off."""
    seed: int = 0
    """The game's seed."""
    render_mode: Literal["ansi", "human"] = "ansi"
    """In the terminal, or in a window."""
    fps: float = 8
    """Moves shown per second."""
    video: Path | None = None
    """Write a film instead: a .mp4 or .gif file."""

    def run(self) -> None:
        from mergefall_training.watching import Show

        if self.fps <= 0:
            raise ValueError(f"--fps {self.fps}: expected more than 0")
        path = Path(self.player)
        if path.suffix == ".jsonl" or (path.is_file() and path.suffix != ".npz"):
            if self.option or self.env or self.env_option or self.max_episode_steps:
                raise ValueError(f"{self.player} says who plays what; leave out options, environment and cap")
            show = Show.recorded(path, self.seed)
        else:
            env, kwargs = game_of(self.player, self.env, self.env_option)
            show = Show.of(self.player, parse_options(self.option), env, kwargs, self.max_episode_steps, self.seed)
        if self.video is not None:
            show.film(self.video, self.fps)
        elif self.render_mode == "human":
            show.in_window(self.fps)
        else:
            show.in_terminal(self.fps)


@dataclass(frozen=True)
class Play:
    """Play a game yourself, with the arrow keys or W A S D; Q ends it."""

    env: Annotated[str, tyro.conf.Positional] = "mergefall/Game2048-v0"
    """The environment's id."""
    env_option: Options = field(default_factory=list)
    """One of the environment's arguments, NAME=VALUE in YAML; may be repeated."""
    seed: int | None = None
    """The game's seed; a new game each time unless told."""
    render_mode: Literal["ansi", "human"] = "ansi"
    """In the terminal, or in a window."""

    def run(self) -> None:
        from mergefall_training.watching import play_in_terminal, play_in_window

        play = play_in_terminal if self.render_mode == "ansi" else play_in_window
        play(self.env, parse_options(self.env_option), self.seed)


@dataclass(frozen=True)
class Players:
    """List the players, with their options and the defaults of these."""

    def run(self) -> None:
        from mergefall_training.console import console
        from mergefall_training.listing import players_table

        console().print(players_table())


@dataclass(frozen=True)
class Envs:
    """List the environments, with their arguments and the defaults of these."""

    def run(self) -> None:
        from mergefall_training.console import console
        from mergefall_training.listing import envs_table

        console().print(envs_table())


Command = Evaluate | Compare | Train | Tune | Pack | Demonstrate | Watch | Play | Players | Envs
GAMES = {"2048": "mergefall/Game2048-v0", "tetris": "mergefall/Tetris-v0", "quintris": "mergefall/Quintris-v0"}


def game_of(player: str, env: str | None, options: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The id and the arguments of the environment to play in: as told, else the player's game.

    A trained agent's is the one that it was trained in.

    >>> game_of("2048/expectimax", None, ["rows=3"])
    ('mergefall/Game2048-v0', {'rows': 3})
    """
    kwargs, game = parse_options(options), player.partition("/")[0]
    if env is not None:
        return env, kwargs
    if game in GAMES:
        return GAMES[game], kwargs
    if not Path(player).exists():
        raise ValueError(f"which environment does {player!r} play? Name it with --env")
    from mergefall_training.learning.agents import trained_in

    env, rules = trained_in(player)
    return env, rules | kwargs


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Options given as NAME=VALUE, values read as YAML.

    >>> parse_options(["heuristic=nneonneo", "depth=3", "cutoff=1e-4", "weights={empty: 270}", "table=false"])
    {'heuristic': 'nneonneo', 'depth': 3, 'cutoff': 0.0001, 'weights': {'empty': 270}, 'table': False}
    """
    import yaml

    from mergefall_training.yaml_numbers import load_yaml

    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"option {pair!r}: expected NAME=VALUE")
        if name in options:
            raise ValueError(f"option {name!r} is given twice")
        try:
            options[name] = load_yaml(value)
        except yaml.YAMLError as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"option {pair!r}: the value is no YAML: {reason}") from error
    return options


def tunes_a_preset(arguments: Sequence[str]) -> bool:
    """Whether these are the arguments of `mergefall tune` with an algorithm as the player, not as an option's value.

    >>> tunes_a_preset(["tune", "--trials", "9", "ppo"]), tunes_a_preset(["tune", "2048/greedy", "--out", "ppo"])
    (True, False)
    """
    if arguments[:1] != ["tune"]:
        return False
    from mergefall_training.learning import ALGORITHMS

    return any(
        argument in ALGORITHMS and (not before.startswith("-") or "=" in before)
        for before, argument in pairwise(arguments)
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; bad input gives one line on stderr and exit status 2, Ctrl-C status 130."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if tunes_a_preset(arguments):
        command = tyro.cli(TunePreset, args=arguments[1:], prog="mergefall tune")
    else:
        command = tyro.cli(
            Command,
            args=arguments,
            prog="mergefall",
            description="2048 and Tetris: play, watch, compare, train, tune.",
        )
    from gymnasium.error import DependencyNotInstalled

    try:
        command.run()
    except (ValueError, OSError, DependencyNotInstalled) as error:
        print(f"mergefall: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as interrupt:
        print("mergefall: " + "; ".join(getattr(interrupt, "__notes__", ["stopped"])), file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
