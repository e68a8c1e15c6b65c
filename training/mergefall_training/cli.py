"""The command ``mergefall``: each subcommand is a dataclass whose fields are its arguments and whose `run` does it.

Heavy imports stay inside the methods, so that ``--help`` answers at once.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import tyro

from mergefall_training.tune.climbing import Climb

if TYPE_CHECKING:
    from mergefall_baselines import Player

    from mergefall_training.learn.run import Config

Pairs = tyro.conf.UseAppendAction[list[str]]
PlayerName = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PLAYER")]
Algorithm = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ALGORITHM")]

GAME2048 = "mergefall/Game2048-v0"


@dataclass(frozen=True, kw_only=True)
class InEnvironment:
    """Arguments of commands that play in an environment."""

    env: str | None = None
    """Id of the environment; default: the player's, or mergefall/Game2048-v0."""
    env_option: Pairs = field(default_factory=list)
    """Argument of the environment, NAME=VALUE in YAML; may be repeated."""
    max_episode_steps: int | None = None
    """Moves (Tetris: pieces) after which a game is cut off; default: no cap."""


@dataclass(frozen=True, kw_only=True)
class WithPlayer(InEnvironment):
    """Arguments of commands with a player."""

    player: PlayerName
    """Name of a player, as `mergefall players` lists them; path of a trained agent (run folder or model file); or
    `module:name`, a class or function that makes a player or a model of Stable-Baselines3."""
    option: Pairs = field(default_factory=list)
    """Option of the player, NAME=VALUE in YAML; may be repeated."""

    def make_player(self) -> Player:
        """The player with its options."""
        from mergefall_baselines import make

        return make(self.player, **parse_options(self.option))

    def environment(self) -> tuple[str, dict[str, Any]]:
        """Id and arguments of the environment to play in."""
        return env_of(self.player, parse_options(self.option), self.env, self.env_option)


@dataclass(frozen=True, kw_only=True)
class Evaluate(WithPlayer):
    """Play many games with one player and print the results with 95 % intervals."""

    episodes: int | None = None
    """Number of games; default: 100, with `until` at most 100,000."""
    until: str | None = None
    """Stop when the mean is known so well, such as 2%: neither end of its interval is farther from it than that."""
    seed: int = 0
    """Seed of the first game; game k has seed + k."""
    workers: int | None = None
    """Processes that play side by side; default: one per core."""
    executor: Literal["processes", "ray"] = "processes"
    """Where the games run: on this machine, or on a Ray cluster (at RAY_ADDRESS; default: one started here)."""
    out: Path | None = None
    """File to which each finished game is appended; the same command resumes a stopped run."""
    adversary: Pairs = field(default_factory=list)
    """Argument of the adversary, which picks some of the new tiles or pieces against the player: `player=NAME` or
    `rate=SHARE`, in YAML; may be repeated; default: no adversary."""

    def run(self) -> None:
        from mergefall_training.compare.comparison import print_result
        from mergefall_training.compare.results import ContestResult, Row
        from mergefall_training.play.evaluation import evaluate
        from mergefall_training.progress import console

        env, kwargs = self.environment()
        player = self.make_player()
        evaluation = evaluate(
            player,
            env,
            (100 if self.until is None else 100_000) if self.episodes is None else self.episodes,
            self.seed,
            kwargs,
            self.workers,
            self.out,
            max_episode_steps=self.max_episode_steps,
            adversary=parse_options(self.adversary) or None,
            executor=self.executor,
            until=None if self.until is None else share_of(self.until),
        )
        row = Row(evaluation.header.title, evaluation, player.batched and self.executor != "ray")
        print_result(ContestResult(row.label, [row]), console())


@dataclass(frozen=True)
class Compare:
    """Play a suite: several players on the same seeds, with a table, files and plots. Or compare files of episodes."""

    suite: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SUITE")] = ("quick",)
    """Name of a suite (`documented`, `from-searchers`, `league`, `maskable-ppo`, `mcts`, `past-teachers`,
    `prairie-fire`, `quick`, `robustness`, `shaping`, `tetris`), or a YAML file. Or files that `evaluate --out` wrote:
    the players of all others are then compared with that of the first, seed by seed."""
    out: Path | None = None
    """Folder for games, results and plots; default: results/SUITE. The same command resumes a stopped run."""
    game: Pairs = field(default_factory=list)
    """Name of one of the suite's games to play; may be repeated; default: all of them."""
    workers: int | None = None
    """Processes that train and play side by side; default: one per core."""
    executor: Literal["processes", "ray"] = "processes"
    """Where the games run: on this machine, or on a Ray cluster (at RAY_ADDRESS; default: one started here)."""

    def run(self) -> None:
        if any(name.endswith(".jsonl") for name in self.suite):
            from mergefall_training.compare.versus import compare_files

            if self.out is not None or self.game:
                raise ValueError("files of episodes are compared without --out and --game, which are for suites")
            compare_files(self.suite)
            return
        from mergefall_training.compare.comparison import compare

        if len(self.suite) != 1:
            raise ValueError(f"{len(self.suite)} suites were named; expected one, or files of episodes (.jsonl)")
        (suite,) = self.suite
        out = self.out or Path("results", Path(suite).stem)
        compare(suite, out, self.workers, games=self.game or None, executor=self.executor)


@dataclass(frozen=True, kw_only=True)
class TuneWhat:
    """The word after `mergefall tune`, as the first field of `Tune`."""

    what: Annotated[Literal["weights"], tyro.conf.Positional]
    """What to tune."""


@dataclass(frozen=True, kw_only=True)
class Tune(WithPlayer, TuneWhat):
    """Find better weights for a player's heuristic: hill climbing over games, one weight at a time, with restarts."""

    heuristic: str = "heuristic"
    """Name of the player's option that holds the heuristic to tune; its value there is the start."""
    weight: Pairs = field(default_factory=list)
    """Weight to change, such as `penalty`, or `stages.0.1.penalty` for a nested one; may be repeated; default: all."""
    climb: Annotated[Climb, tyro.conf.arg(name="")] = field(default_factory=Climb)
    workers: int = 1
    """Processes that play side by side."""
    out: Path | None = None
    """File to which each trial is appended; the same command resumes a stopped run."""

    def run(self) -> None:
        from mergefall_training.tune.weights import print_tuning, tune

        env, kwargs = self.environment()
        tuning = tune(
            self.player,
            parse_options(self.option),
            env,
            self.climb,
            option=self.heuristic,
            only=self.weight,
            env_kwargs=kwargs,
            max_episode_steps=self.max_episode_steps,
            workers=self.workers,
            out=self.out,
        )
        print_tuning(tuning)


@dataclass(frozen=True, kw_only=True)
class Train(InEnvironment):
    """Train an agent from a preset; options override it. The run folder can be used as a player.

    `mergefall train ALGORITHM --help` describes an algorithm, its hyper-parameters and presets.
    """

    env: str | None = None
    """Id of the environment; default: mergefall/Game2048-v0, or another that the algorithm has a preset for."""
    algorithm: Algorithm
    """`maskable-ppo`, `dqn`; with a teacher `distill`, `kickstart`; `ntuple` (2048); `afterstate`, `cma-es` (Tetris).
    Or a run's folder, with `--resume` and no options but `--device`: the folder says all else."""
    preset: str | None = None
    """Preset other than the usual one, such as `5min`; `mergefall train ALGORITHM --help` lists them."""
    set: Pairs = field(default_factory=list)
    """Hyper-parameter to change, NAME=VALUE in YAML; may be repeated."""
    timesteps: int | None = None
    """Steps of all environments together; default: the preset's."""
    seed: int = 0
    """Training seed; runs with different seeds share neither games nor initial weights."""
    interval: int | None = None
    """Steps between evaluations, each of which writes a checkpoint; default: a tenth of the run."""
    episodes: int = 30
    """Games of each evaluation."""
    device: str = "auto"
    """PyTorch's device; `auto`: a GPU if there is one."""
    resume: bool = False
    """Continue the run in the folder from its last checkpoint; fails if there is no run."""
    out: Path | None = None
    """Run folder; default: runs/ALGORITHM-ENV-SEED."""

    def run(self) -> None:
        from mergefall_training.learn.run import rank, train
        from mergefall_training.play.statistics import plain

        folder, config = self.folder_and_config()
        if self.resume and not (folder / "config.json").exists():
            raise ValueError(f"{folder} holds no training run; leave out --resume to begin one")
        run = train(folder, config, resume=self.resume, device=self.device)
        best = max(run.points, key=rank)
        figure = f"mean {best.headline} {plain(best.mean)} [{plain(best.low)}, {plain(best.high)}], N={best.episodes}"
        print(f"{folder}: {run.points[-1].step:,} steps in {run.seconds:,.0f} s; best at {best.step:,}: {figure}")

    def folder_and_config(self) -> tuple[Path, Config]:
        """The run's folder and configuration."""
        from mergefall_training.learn import ALGORITHMS
        from mergefall_training.learn.presets import configure, usual_env
        from mergefall_training.learn.run import read_config

        folder = Path(self.algorithm)
        if self.algorithm not in ALGORITHMS and folder.is_dir():
            if self != Train(algorithm=self.algorithm, resume=True, device=self.device):
                expected = f"`mergefall train {folder} --resume`, without options but --device"
                raise ValueError(f"{folder} is a folder, not an algorithm; to continue its run: {expected}")
            return folder, read_config(folder)
        env = self.env or usual_env(self.algorithm)
        config = configure(
            self.algorithm,
            env,
            env_kwargs=parse_options(self.env_option),
            max_episode_steps=self.max_episode_steps,
            changed=parse_options(self.set),
            timesteps=self.timesteps,
            interval=self.interval,
            episodes=self.episodes,
            seed=self.seed,
            preset=self.preset,
        )
        return self.out or Path("runs", f"{self.algorithm}-{env.rpartition('/')[2]}-{self.seed}"), config


@dataclass(frozen=True)
class Pack:
    """Write an n-tuple network to one small file, rounded and compressed; `2048/ntuple` plays it."""

    run_folder: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Run folder, model file, or `.w` file of TDL2048+."""
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """File to write, such as network.npz."""
    bits: int = 10
    """Bits of each entry, 2 to 16, in even steps up to the table's largest entry; 32: not rounded."""
    entries: int | None = None
    """Number of entries to keep: the ones that the run adjusted most; default: all."""

    def run(self) -> None:
        from mergefall_training.learn.ntuple.player import network_of, prune

        network = network_of(self.run_folder)
        if self.entries is not None:
            prune(network, self.run_folder, self.entries)
        checksum = network.save(self.file, self.bits)
        size = self.file.stat().st_size
        print(f"{self.file}: {network.touched().sum():,} entries, {size:,} bytes, checksum {checksum[:16]}")


@dataclass(frozen=True)
class Export:
    """Write a trained policy as a .zip that Stable-Baselines3 or sb3-contrib loads."""

    run_folder: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Run folder or model file of an algorithm of SB3, or of distill or kickstart; or the name
    of such a player."""
    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """File to write, such as model.zip."""
    model: Literal["best", "last"] = "best"
    """Which model of a run folder."""

    def run(self) -> None:
        from mergefall_training.learn import import_extra

        found = import_extra("mergefall_training.learn.sb3.export").export(self.run_folder, self.file, self.model)
        name = type(found).__name__
        print(f"{self.file}: load it by {name}.load({str(self.file)!r}), with mergefall_training installed")


@dataclass(frozen=True, kw_only=True)
class Demonstrate(WithPlayer):
    """Write a player's games as a Minari dataset, to learn from."""

    episodes: int = 100
    """Number of games."""
    seed: int = 1_000_000
    """Seed of the first game; seeds below a million are for evaluations."""
    dataset: str | None = None
    """Name of the dataset, such as NAMESPACE/NAME-v0; default: mergefall/ENVIRONMENT/PLAYER-v0."""
    workers: int | None = None
    """Processes that play side by side; default: one per core."""

    def run(self) -> None:
        from mergefall_training.learn import import_extra

        env, kwargs = self.environment()
        name = import_extra("mergefall_training.learn.demonstrations").demonstrate(
            self.make_player(),
            env,
            self.episodes,
            dataset=self.dataset,
            seed=self.seed,
            env_kwargs=kwargs,
            max_episode_steps=self.max_episode_steps,
            workers=self.workers,
        )
        from minari.storage import get_dataset_path  # now that minari is there

        print(f"{get_dataset_path(name)}: load it by minari.load_dataset({name!r})")


@dataclass(frozen=True, kw_only=True)
class Advise(WithPlayer):
    """Print what a player thinks of each action of positions, one line for each.

    A position of 2048 is a board, `2 . . 4/. . . ./. 8 . ./. . . .`. One of Tetris is a field, the current piece and
    the next ones, `...../...../##.#./#.### T S`.
    """

    positions: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="POSITION")] = ()
    """Positions; default: the lines of `file`, or of standard input."""
    file: Path | None = None
    """File with a position on each line."""
    json: bool = False
    """Print JSON objects with `position` and `actions`, the best action first; a fatal one has the value null."""

    def run(self) -> None:
        import json
        import math
        from dataclasses import asdict

        from mergefall_training.play.advice import Adviser

        if self.positions and self.file:
            raise ValueError(f"positions were given besides --file {self.file}; expected one of the two")
        adviser = Adviser(self.make_player(), *self.environment())
        lines = self.positions or (self.file.read_text().splitlines() if self.file else sys.stdin)
        for position in filter(None, map(str.strip, lines)):
            choices = adviser.choices(position)
            if self.json:
                actions = [asdict(c) | {"value": c.value if math.isfinite(c.value) else None} for c in choices]
                print(json.dumps({"position": position, "actions": actions}), flush=True)
            else:
                said = "; ".join(f"{choice.name} {choice.value:.7g}" for choice in choices)
                print(said or "no legal action", flush=True)


@dataclass(frozen=True, kw_only=True)
class BenchText:
    """Score a program, such as a language model, that reads a position as text and answers with a move.

    Each puzzle starts the program anew: it reads the prompt on standard input and writes its answer to standard output.
    The reward is 1 for the best move and 0 for the worst one, by the values of a strong player, the judge.
    """

    program: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PROGRAM")]
    """Command line of the program, in one argument, such as `"python model.py"`."""
    env: str = GAME2048
    """Id of the environment."""
    env_option: Pairs = field(default_factory=list)
    """Argument of the environment, NAME=VALUE in YAML; may be repeated."""
    puzzles: int = 200
    """Number of test puzzles."""
    seed: int = 0
    """Seed of the puzzles."""
    gap: tuple[float, float] = (0.0, 1.0)
    """Smallest and largest reward that the second-best move loses: the difficulty. Small gaps are hard."""
    afterstates: bool = False
    """Show the boards that moves lead to."""
    judge: str | None = None
    """Player whose values make the rewards: a name, or name and options in YAML, such as
    `{name: 2048/expectimax, depth: 3}`; default: perfect play on boards up to 2×3, else a strong player."""
    reference: Pairs = field(default_factory=list)
    """Player to compare with, as for `judge`; may be repeated; default: a few players of the game."""
    stream: bool = False
    """Start the program once: it reads JSON lines with `id` and `prompt`, and writes JSON lines with `answer`, and
    `id` if they are in another order."""
    timeout: float = 60
    """Seconds to wait for an answer; then the program is stopped, and the bench with it."""
    out: Path | None = None
    """File to which each prompt, answer, verdict and reward is appended; the same command resumes a stopped run."""

    def run(self) -> None:
        from mergefall_training.play.text_bench import Bench, print_rows
        from mergefall_training.progress import console

        judge = None if self.judge is None else parsed("judge", self.judge)
        kwargs = parse_options(self.env_option)
        bench = Bench(self.env, kwargs, self.puzzles, judge, self.gap, self.afterstates, self.seed)
        # First, because a wrong name must not be found after a costly model has answered.
        references = bench.references([parsed("reference", player) for player in self.reference] or None)
        row = bench.ask(self.program, stream=self.stream, seconds=self.timeout, out=self.out)
        print_rows(bench, [row, *references], console())


@dataclass(frozen=True, kw_only=True)
class Watch(WithPlayer):
    """Watch a player play one game, or two players side by side: in the terminal, in a window, or as a video file.

    PLAYER may also be a file that `mergefall evaluate --out` wrote: a recorded game is then played again. Where the
    output is no terminal, only the end of the game is printed; `--video` shows all of it.
    """

    beside: str | None = None
    """A second player, or a second file, that plays from the same seed."""
    beside_option: Pairs = field(default_factory=list)
    """Option of the second player, NAME=VALUE in YAML; may be repeated."""
    seed: int = 0
    """Seed of the game."""
    worst: bool = False
    """Of the recorded games the one with the lowest result, in place of `seed`."""
    adversary: Pairs = field(default_factory=list)
    """Argument of the adversary, as for `evaluate`; may be repeated; default: no adversary."""
    render_mode: Literal["ansi", "human"] = "ansi"
    """`ansi`: in the terminal; `human`: in a window."""
    fps: float = 8
    """Moves shown per second."""
    video: Path | None = None
    """Write a video instead: a .mp4 or .gif file."""

    def run(self) -> None:
        from mergefall_training.play.screens import Terminal, Window
        from mergefall_training.play.watching import film, watch

        if self.fps <= 0:
            raise ValueError(f"--fps {self.fps}: expected more than 0")
        if self.beside_option and self.beside is None:
            raise ValueError(f"--beside-option {self.beside_option[0]} is the second player's; expected --beside, too")
        first = self._show(self.player, self.option, self.seed)
        shows = [first]
        if self.beside is not None:
            shows.append(self._show(self.beside, self.beside_option, first.seed))
        if self.video is not None:
            film(shows, self.video, self.fps)
        else:
            watch(shows, Window() if self.render_mode == "human" else Terminal(), self.fps)

    def _show(self, player: str, options: Pairs, seed: int) -> Any:
        """The game of a player, or of a file of recorded games."""
        from mergefall_training.play.watching import Show

        path = Path(player)
        if path.suffix == ".jsonl" or (path.is_file() and path.suffix != ".npz"):
            if options or self.env or self.env_option or self.max_episode_steps or self.adversary:
                raise ValueError(f"{player} names player and environment; leave out options, env, cap and adversary")
            return Show.recorded(path, None if self.worst and player == self.player else seed)
        if self.worst and player == self.player:
            raise ValueError(f"--worst is for a file of recorded games; {player} is a player")
        given, against = parse_options(options), parse_options(self.adversary) or None
        env, kwargs = env_of(player, given, self.env, self.env_option)
        return Show.of(player, given, env, kwargs, self.max_episode_steps, seed, against)


@dataclass(frozen=True)
class Play:
    """Play a game yourself, with the arrow keys or W A S D; H asks a searcher, U takes moves back, Q quits."""

    env: Annotated[str, tyro.conf.Positional] = GAME2048
    """Id of the environment."""
    env_option: Pairs = field(default_factory=list)
    """Argument of the environment, NAME=VALUE in YAML; may be repeated."""
    seed: int | None = None
    """Seed of the game; default: a new game each time."""
    render_mode: Literal["ansi", "human"] = "ansi"
    """`ansi`: in the terminal; `human`: in a window."""
    adviser: str | None = None
    """Player that is asked for hints; default: expectimax in 2048, two-tetrad in Tetris."""
    option: Pairs = field(default_factory=list)
    """Option of the adviser, NAME=VALUE in YAML; may be repeated."""
    out: Path | None = None
    """File to which the finished game is appended, as `evaluate --out` does; `verify` and `report` read it."""

    def run(self) -> None:
        from mergefall_training.play.playing import play

        if self.option and self.adviser is None:
            raise ValueError(f"--option {self.option[0]} is the adviser's; expected --adviser, too")
        play(
            self.env,
            parse_options(self.env_option),
            self.seed,
            window=self.render_mode == "human",
            adviser=self.adviser,
            options=parse_options(self.option),
            out=self.out,
        )


@dataclass(frozen=True)
class Verify:
    """Play the games of files again that `evaluate` or `compare` wrote, and say which records hold.

    Exits with status 1 if one does not.
    """

    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """Files of episodes."""

    def run(self) -> None:
        from mergefall_training.play.actions import RECORDED
        from mergefall_training.play.verify import verify

        if not self.files:
            raise ValueError("no file was named; expected files that `mergefall evaluate --out` wrote")
        failed = False
        for file in self.files:
            verdicts = verify(file)
            wrong = [verdict for verdict in verdicts if verdict.problem]
            partial = sum(verdict.proven is not None for verdict in verdicts)
            note = f"; {partial} of them up to action {RECORDED:,}, where their records end" if partial else ""
            _say(f"{file}: {len(verdicts) - len(wrong)} of {len(verdicts)} records hold{note}")
            for verdict in wrong:
                seed = "" if verdict.seed is None else f", seed {verdict.seed}"
                _say(f"{file}, line {verdict.line}{seed}: {verdict.problem}")
            failed |= bool(wrong)
        if failed:
            sys.exit(1)


@dataclass(frozen=True)
class Report:
    """Write games and training runs as one HTML page with tables, plots and replays, which opens from a file."""

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folders that `compare` wrote into, files that `evaluate --out` wrote, and run folders."""
    out: Path = Path("report.html")
    """The page to write."""
    replays: int = 2
    """Games of each player to watch, from the first seeds that all share; its best and its worst one follow."""
    values: int = 400
    """Positions of each such game at which the page shows the player's values; 0: none, and no player is made."""

    def run(self) -> None:
        from mergefall_training.compare.comparison import print_result
        from mergefall_training.compare.report import report
        from mergefall_training.progress import console

        sections = report(self.paths, self.out, replays=self.replays, values=self.values)
        for section in sections:
            print_result(section.result, console())
            for problem in section.problems:
                _say(f"  {problem}")
        _say(f"written to {self.out} ({self.out.stat().st_size / 1e6:.1f} MB)")


Name = Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]")]


@dataclass(frozen=True)
class Players:
    """List the players with their options and defaults, or describe one."""

    name: Name = None
    """Name of a player, or module:name; default: list all."""

    def run(self) -> None:
        from mergefall_training.manual import players_page

        print(players_page(self.name))


@dataclass(frozen=True)
class Heuristics:
    """List the heuristics of both games with their weights, or describe one."""

    name: Name = None
    """Name of a heuristic; default: list all."""

    def run(self) -> None:
        from mergefall_training.manual import heuristics_page

        print(heuristics_page(self.name))


@dataclass(frozen=True)
class Envs:
    """List the environments with their arguments and defaults, or describe one."""

    name: Name = None
    """Id of an environment; default: list all."""

    def run(self) -> None:
        from mergefall_training.manual import environments_page

        print(environments_page(self.name))


@dataclass(frozen=True)
class Suites:
    """List the suites that `mergefall compare` plays."""

    def run(self) -> None:
        from mergefall_training.manual import suites_page

        print(suites_page())


Command = (
    Evaluate
    | Compare
    | Train
    | Tune
    | Pack
    | Export
    | Demonstrate
    | Watch
    | Advise
    | BenchText
    | Play
    | Verify
    | Report
    | Players
    | Heuristics
    | Envs
    | Suites
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Bad input prints one line on stderr and exits with status 2, Ctrl-C with status 130."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a redirected output's encoding may lack the multiplication sign
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments == ["--version"]:
        from mergefall import __version__

        print(f"mergefall {__version__}")
        return
    algorithm = _described(arguments)
    command: Any = (
        Description(algorithm)
        if algorithm
        else tyro.cli(
            Command,
            args=arguments,
            prog="mergefall",
            description="2048 and Tetris: play, watch, advise, compare, verify, report, train, tune. "
            "`mergefall --version` prints the version.",
            config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
        )
    )
    from concurrent.futures.process import BrokenProcessPool

    from gymnasium.error import DependencyNotInstalled
    from mergefall.imports import look_in

    look_in(os.getcwd())
    try:
        command.run()
    except BrokenPipeError:  # as `| head` leaves behind
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError, DependencyNotInstalled) as error:
        _say("\n".join([f"mergefall: {error}", *getattr(error, "__notes__", [])]), file=sys.stderr)
        sys.exit(2)
    except BrokenProcessPool:
        print("mergefall: a worker process died, perhaps for lack of memory; what is on file stays", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as interrupt:
        print("mergefall: " + "; ".join(getattr(interrupt, "__notes__", ["stopped"])), file=sys.stderr)
        sys.exit(130)


@dataclass(frozen=True)
class Description:
    """`mergefall train ALGORITHM --help`."""

    algorithm: str

    def run(self) -> None:
        from mergefall_training.manual import training_page

        print(training_page(self.algorithm))


def _described(arguments: Sequence[str]) -> str | None:
    """The algorithm that the command is asked to describe, None if it is asked for something else."""
    if arguments[:1] == ["train"] and len(arguments) > 2 and arguments[2] in ("-h", "--help"):
        return None if arguments[1].startswith("-") else arguments[1]
    return None


def _say(text: str, file: TextIO | None = None) -> None:
    """Print text in which names from files may stand."""
    from mergefall_training.progress import printable

    print(printable(text), file=file)


# -- arguments --------------------------------------------------------------------------------------------------------


def share_of(text: str) -> float:
    """A share from text such as `2%` or `0.02`. Raises ValueError for anything else.

    >>> share_of("2%"), share_of("0.5")
    (0.02, 0.5)
    """
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise ValueError(f"a share is {text!r}; expected one such as 2% or 0.02") from error


def env_of(
    player: str, options: Mapping[str, Any], env: str | None, given: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """Id and arguments of the environment to play in: `env` with the arguments that are `given`, else the player's own.

    A trained agent's own environment is the one that it was trained in.

    >>> env_of("2048/expectimax", {}, None, ["rows=3"])
    ('mergefall/Game2048-v0', {'rows': 3})
    """
    from mergefall_baselines.registry import environment_of

    kwargs = parse_options(given)
    if env is not None:
        return env, kwargs
    env, plays = environment_of(player, options)
    if env is None:
        raise ValueError(f"which environment does {player!r} play? Name it with --env")
    return env, plays | kwargs


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Options given as NAME=VALUE, values read as YAML.

    >>> parse_options(["heuristic=nneonneo", "depth=3", "cutoff=1e-4", "weights={empty: 270}", "table=false"])
    {'heuristic': 'nneonneo', 'depth': 3, 'cutoff': 0.0001, 'weights': {'empty': 270}, 'table': False}
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"option {pair!r}: expected NAME=VALUE")
        if name in options:
            raise ValueError(f"option {name!r} is given twice")
        options[name] = parsed(f"option {pair!r}", value)
    return options


def parsed(about: str, text: str) -> Any:
    """The value of a text in YAML; raises ValueError, with what it is `about`, for a text that is none."""
    import yaml

    from mergefall_training.yaml_numbers import load_yaml

    try:
        return load_yaml(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{about}: the value is no YAML: {reason}") from error


if __name__ == "__main__":
    main()
