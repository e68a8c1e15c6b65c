"""The command ``mergefall``: each subcommand is a function whose parameters are its arguments.

What a function returns is printed. Heavy imports stay inside the functions, so that ``--help`` answers at once.
"""

import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO, TypeVar

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, UseAppendAction, arg
from tyro.extras import subcommand_cli_from_dict

from mergefall_training.manual import envs, heuristics, players, suites, training_page
from mergefall_training.tune.climbing import Climb

if TYPE_CHECKING:
    from mergefall.typing import Dict, Options
    from mergefall_baselines import Player

    from mergefall_training.learn.run import Config
    from mergefall_training.play.match import Match

T = TypeVar("T")
Pairs = UseAppendAction[tuple[str, ...]]
PlayerName = Annotated[str, Positional, arg(metavar="PLAYER")]
EnvOption = Annotated[Pairs, arg(help="Argument of the environment, NAME=VALUE in YAML; may be repeated.")]
Option = Annotated[Pairs, arg(help="Option of the player, NAME=VALUE in YAML; may be repeated.")]
Workers = Annotated[int | None, arg(help="Processes that play side by side; default: one per core.")]
PLACES = "Where the games run: on this machine, or on a Ray cluster (at RAY_ADDRESS; default: one started here)."
Executor = Annotated[Literal["processes", "ray"], arg(help=PLACES)]

GAME2048 = "mergefall/Game2048-v0"
SHOWN = 5  # actions that `advise` names
_typed: list[str] = []  # the command line


@dataclass(frozen=True, kw_only=True)
class InEnvironment:
    """Arguments of commands that play in an environment."""

    env: str | None = None
    """Id of the environment; default: that of the player or the algorithm, else mergefall/Game2048-v0."""
    env_option: EnvOption = ()
    max_episode_steps: int | None = None
    """Actions (moves, pieces, or keys) after which a game is cut off; default: no cap."""


@dataclass(frozen=True, kw_only=True)
class WithPlayer(InEnvironment):
    """Arguments of commands with a player."""

    max_pieces: int | None = None
    """Pieces of Tetris after which a game is cut off; default: no cap."""
    player: PlayerName
    """Name of a player, as `mergefall players` lists them; path of a trained agent (run folder or model file); or
    `module:name`, a class or function that makes a player or a model of Stable-Baselines3."""
    option: Option = ()

    def make_player(self) -> "Player":
        """The player with its options."""
        from mergefall_baselines import make

        return make(self.player, **parse_options(self.option))

    def environment(self) -> tuple[str, "Dict"]:
        """Id and arguments of the environment to play in: `env` with its options, else the player's own.

        A trained agent's own environment is the one that it was trained in.
        """
        from mergefall_baselines.registry import environment_of

        kwargs = parse_options(self.env_option)
        if self.env is not None:
            return self.env, kwargs
        env, plays = environment_of(self.player, parse_options(self.option))
        if env is None:
            raise ValueError(f"which environment does {self.player!r} play? Name it with --env")
        return env, plays | kwargs

    def match(self, adversary: Pairs = ()) -> "Match":
        """Where the player plays."""
        from mergefall_training.play.match import Match

        against = parse_options(adversary) or None
        return Match.read(*self.environment(), self.max_episode_steps, against, self.max_pieces)


Where = Annotated[InEnvironment, arg(name="")]
Who = Annotated[WithPlayer, arg(name="")]

# -- games ------------------------------------------------------------------------------------------------------------


def play(
    env: Annotated[str, Positional] = GAME2048,
    env_option: EnvOption = (),
    seed: int | None = None,
    adviser: str | None = None,
    out: Path | None = None,
) -> None:
    """Play a game yourself in the terminal, with the arrow keys; H asks a searcher, U takes moves back, Q quits.

    Args:
        env: Id of the environment.
        seed: Seed of the game; default: a new game each time.
        adviser: Player that is asked for hints: a name, or name and options in YAML, such as
            `{player: 2048/expectimax, depth: 2}`; default: expectimax in 2048, two-tetrad in Tetris.
        out: File to which the finished game is appended, as `evaluate --out` does; `verify` and `report` read it.
    """
    from mergefall_training.play import watching

    watching.play(env, parse_options(env_option), seed, adviser=adviser and parsed("adviser", adviser), out=out)


def watch(
    who: Who,
    beside: str | None = None,
    seed: int = 0,
    worst: bool = False,
    adversary: Pairs = (),
    render_mode: Literal["ansi", "human"] = "ansi",
    fps: float | None = None,
    video: Path | None = None,
) -> None:
    """Watch a player play one game, or two players side by side: in the terminal, in a window, or as a video file.

    PLAYER may also be a file that `mergefall evaluate --out` wrote: a recorded game is then played again. Where the
    output is no terminal, only the end of the game is printed; `--video` shows all of it.

    Args:
        who: The player.
        beside: A second player, without options, or a second file, that plays from the same seed.
        seed: Seed of the game.
        worst: Of the recorded games the one with the lowest result, in place of `seed`.
        adversary: Argument of the adversary, as for `evaluate`; may be repeated; default: no adversary.
        render_mode: `ansi`: in the terminal; `human`: in a window.
        fps: Moves shown per second; default: 8, of Tetris by keys 60.
        video: Write a video instead: a .mp4 or .gif file.
    """
    from mergefall_training.play import watching

    if fps is not None and fps <= 0:
        raise ValueError(f"--fps {fps}: expected more than 0")

    def show_of(who: WithPlayer, seed: int | None) -> watching.Show:
        path = Path(who.player)
        if path.suffix == ".jsonl" or (path.is_file() and path.suffix != ".npz"):
            if who != WithPlayer(player=who.player) or adversary:
                raise ValueError(f"{path} names player and environment; leave out options, env, cap and adversary")
            return watching.Show.recorded(path, seed)
        if seed is None:
            raise ValueError(f"--worst is for a file of recorded games; {path} is a player")
        return watching.Show.of(who.player, parse_options(who.option), who.match(adversary), seed)

    shows = [show_of(who, None if worst else seed)]
    if beside is not None:
        shows.append(show_of(replace(who, player=beside, option=()), shows[0].seed))
    if video is not None:
        watching.film(shows, video, fps)
    else:
        watching.watch(shows, watching.Window() if render_mode == "human" else watching.Terminal(), fps)


def advise(
    player: PlayerName,
    where: Where,
    positions: Annotated[tuple[str, ...], Positional, arg(metavar="POSITION")] = (),
    option: Option = (),
    json: bool = False,
) -> None:
    """Print what a player thinks of the actions in positions, the best ones first: one line for each position.

    A position of 2048 is a board of tiles, `"2 . . 4/. . . ./. 8 . ./. . . ."`. One of Tetris is a field, the current
    piece and the next ones, `"...../...../##.#./#.### T S"`.

    Args:
        player: The player, as for `evaluate`.
        where: The environment.
        positions: Positions; default: the lines of standard input.
        json: Print JSON objects with `position` and all `actions`, the best first; a fatal one has the value null.
    """
    from dataclasses import asdict

    from mergefall.checks import in_place

    from mergefall_training.files import json_text
    from mergefall_training.play.advice import Adviser

    who = WithPlayer(**vars(where), player=player, option=option)
    adviser = Adviser(who.make_player(), *who.environment())
    for number, position in enumerate(map(str.strip, positions or sys.stdin), start=1):
        if not position:
            continue
        with in_place(f"{'argument' if positions else 'standard input'}, line {number}"):
            choices = adviser.choices(position)
        text = "; ".join(f"{choice.name} {choice.value:.7g}" for choice in choices[:SHOWN]) or "no legal action"
        text += f"; {len(choices) - SHOWN} others" * (len(choices) > SHOWN)
        if json:
            text = json_text({"position": position, "actions": list(map(asdict, choices))})
        print(text, flush=True)


def evaluate(
    who: Who,
    episodes: int = 100,
    seed: int = 0,
    workers: Workers = None,
    executor: Executor = "processes",
    out: Path | None = None,
    adversary: Pairs = (),
    headline: str | None = None,
    figure: str | None = None,
) -> None:
    """Play many games with one player and print the results with 95 % intervals.

    Args:
        who: The player.
        episodes: Number of games.
        seed: Seed of the first game; game k has seed + k.
        out: File to which each finished game is appended; the same command resumes a stopped run.
        adversary: Argument of the adversary, which picks some of the new tiles or pieces against the player:
            `player=NAME` or `rate=SHARE`, in YAML; may be repeated; default: no adversary.
        headline: Figure that the result is judged by, such as attack in Tetris by keys; default: the game's.
        figure: QUESTION/ID: also write the result as a record to `training/figures.jsonl` of the clone that the current
            folder belongs to.
    """
    from mergefall_training.compare.comparison import print_result
    from mergefall_training.compare.results import ContestResult, Row
    from mergefall_training.play.evaluation import evaluate

    write = _writer(figure)
    player = who.make_player()
    evaluation = evaluate(player, who.match(adversary), episodes, seed, workers=workers, out=out, executor=executor)
    evaluation = replace(evaluation, by=headline or "")
    row = Row(evaluation.header.title, evaluation, player.batched and executor != "ray")
    result = ContestResult(row.label, [row])
    print_result(result)
    write([result])


def compare(
    suite: Annotated[tuple[str, ...], Positional, arg(metavar="SUITE")] = ("quick",),
    out: Path | None = None,
    game: Pairs = (),
    workers: Workers = None,
    executor: Executor = "processes",
    figure: str | None = None,
) -> None:
    """Play a suite: several players on the same seeds, with a table, files and plots. Or compare files of episodes.

    Args:
        suite: Name of a suite, as `mergefall suites` lists them, or a YAML file. Or files that `evaluate --out` wrote:
            the players of all others are then compared with that of the first, seed by seed. Your own players in
            them must be named, too: `module:name`.
        out: Folder for games, results and plots; default: results/SUITE. The same command resumes a stopped run.
        game: Name of one of the suite's games to play; may be repeated; default: all of them.
        workers: Processes that train and play side by side; default: one per core.
        figure: QUESTION/ID: also write a record for each player, ID-LABEL, as `evaluate` does.
    """
    suite = paths_in(suite)
    if any(name.endswith(".jsonl") for name in suite):
        from mergefall_training.compare.versus import compare_files

        if out is not None or game or figure:
            raise ValueError("files of episodes are compared without --out, --game and --figure, which are for suites")
        compare_files(suite)
        return
    from mergefall_training.compare import comparison

    write = _writer(figure)
    if len(suite) != 1:
        raise ValueError(f"{len(suite)} suites were named; expected one, or files of episodes (.jsonl)")
    out = out or Path("results", Path(suite[0]).stem)
    write(comparison.compare(suite[0], out, workers, games=game or None, executor=executor))


def report(
    paths: Annotated[tuple[Path, ...], Positional, arg(metavar="RUN")],
    out: Path = Path("report.html"),
    replays: int = 2,
    values: int = 400,
) -> None:
    """Write games and training runs as one HTML page with tables, plots and replays, which opens from a file.

    Args:
        paths: Folders that `compare` wrote into, files that `evaluate --out` wrote, and run folders. Your own players
            in them must be named, too: `module:name`.
        out: The page to write.
        replays: Games of each player to watch, from the first seeds that all share; its best and its worst one follow.
        values: Positions of each such game at which the page shows the player's values; 0: none, and no player is made.
    """
    from mergefall_training.compare.comparison import print_result
    from mergefall_training.compare.report import report

    for section in report(paths_in(paths), out, replays=replays, values=values):
        print_result(section.result)
        for problem in section.problems:
            say(f"  {problem}")
    say(f"written to {out} ({out.stat().st_size / 1e6:.1f} MB)")


def verify(files: Annotated[tuple[Path, ...], Positional, arg(metavar="FILE")]) -> None:
    """Play the games of files again that `evaluate` or `compare` wrote, and say which records hold.

    Exits with status 1 if one does not.

    Args:
        files: Files of episodes. Your own opponents in them must be named, too: `module:name`.
    """
    from mergefall_training.play.records import RECORDED
    from mergefall_training.play.verify import verify

    if not files:
        raise ValueError("no file was named; expected files that `mergefall evaluate --out` wrote")
    failed = 0
    for file in paths_in(files):
        verdicts = verify(file)
        wrong = [verdict for verdict in verdicts if verdict.problem]
        partial = sum(verdict.proven is not None for verdict in verdicts)
        note = f"; {partial} of them up to action {RECORDED:,}, where their records end" if partial else ""
        say(f"{file}: {len(verdicts) - len(wrong)} of {len(verdicts)} records hold{note}")
        for verdict in wrong:
            seed = "" if verdict.seed is None else f", seed {verdict.seed}"
            say(f"{file}, line {verdict.line}{seed}: {verdict.problem}")
        failed += len(wrong)
    if failed:
        sys.exit(1)


# -- learning ---------------------------------------------------------------------------------------------------------


def train(
    algorithm: Annotated[str, Positional, arg(metavar="ALGORITHM")],
    where: Where,
    preset: str | None = None,
    set: Pairs = (),
    timesteps: int | None = None,
    seed: int | None = None,
    interval: int | None = None,
    episodes: int | None = None,
    device: str = "auto",
    resume: bool = False,
    out: Path | None = None,
) -> None:
    """Train an agent from a preset; options override it. The run folder can be used as a player.

    `mergefall train ALGORITHM --help` describes an algorithm, its hyper-parameters and presets.

    Args:
        algorithm: `maskable-ppo`, `dqn`; with a teacher `distill`, `kickstart`; `ntuple` (2048); `afterstate`, `cma-es`
            (Tetris). Or a run's folder, with `--resume` and no options but `--device`: the folder says all else.
        where: The environment.
        preset: `small` (default), or another such as `medium`; `mergefall train ALGORITHM --help` lists them.
        set: Hyper-parameter to change, NAME=VALUE in YAML; may be repeated.
        timesteps: Steps of all environments together; default: the preset's.
        seed: Training seed, by default 0; runs with different seeds share neither games nor initial weights.
        interval: Steps between evaluations, each of which writes a checkpoint; default: a tenth of the run.
        episodes: Games of each evaluation; default: 30.
        device: PyTorch's device; `auto`: a GPU if there is one.
        resume: Continue the run in the folder from its last checkpoint; fails if there is no run.
        out: Run folder; default: runs/ALGORITHM-ENV-SEED.
    """
    from mergefall_training.learn.run import rank, train
    from mergefall_training.play.statistics import Estimate

    changes = {"preset": preset, "timesteps": timesteps, "seed": seed, "interval": interval, "episodes": episodes}
    folder, config = run_of(algorithm, where, set, changes, resume, out)
    if resume and not (folder / "config.json").exists():
        raise ValueError(f"{folder} holds no training run; leave out --resume to begin one")
    run = train(folder, config, resume=resume, device=device)
    best = max(run.points, key=rank)
    figure = f"mean {best.headline} {Estimate(best.mean, best.low, best.high)}, N={best.episodes}"
    print(f"{folder}: {run.points[-1].step:,} steps in {run.seconds:,.0f} s; best at {best.step:,}: {figure}")


def run_of(
    algorithm: str,
    where: InEnvironment,
    hyperparameters: Sequence[str],
    changes: "Options",
    resume: bool,
    out: Path | None,
) -> tuple[Path, "Config"]:
    """The folder and configuration of a run; `changes`: other arguments of `configure`, None for its defaults."""
    from mergefall_training.learn import ALGORITHMS
    from mergefall_training.learn.presets import configure, usual_env
    from mergefall_training.learn.run import read_config

    folder, changes = Path(algorithm), {name: value for name, value in changes.items() if value is not None}
    if algorithm not in ALGORITHMS and (folder.is_dir() or folder.name != algorithm):
        if not resume or changes or hyperparameters or out or where != InEnvironment():
            raise ValueError(
                f"{folder} is a run, which goes on as it was begun: `mergefall train {folder} --resume`, perhaps with "
                f"--device. For more steps begin another one with --set warm_start={folder}"
            )
        return folder, read_config(folder)
    env = where.env or usual_env(algorithm)
    config = configure(
        algorithm,
        env,
        env_kwargs=parse_options(where.env_option),
        max_episode_steps=where.max_episode_steps,
        changed=parse_options(hyperparameters),
        **changes,
    )
    return out or Path("runs", f"{algorithm}-{env.rpartition('/')[2]}-{config.seed}"), config


def demonstrate(
    who: Who, episodes: int = 100, seed: int = 1_000_000, dataset: str | None = None, workers: Workers = None
) -> None:
    """Write a player's games as a Minari dataset, to learn from.

    Args:
        who: The player.
        episodes: Number of games.
        seed: Seed of the first game; seeds below a million are for evaluations.
        dataset: Name of the dataset, such as NAMESPACE/NAME-v0; default: mergefall/ENVIRONMENT/PLAYER-v0.
    """
    from mergefall.imports import import_extra

    env, kwargs = who.environment()
    name = import_extra("mergefall_training.learn.demonstrations").demonstrate(
        who.make_player(),
        env,
        episodes,
        dataset=dataset,
        seed=seed,
        env_kwargs=kwargs,
        max_episode_steps=who.max_episode_steps,
        workers=workers,
    )
    from minari.storage import get_dataset_path  # now that minari is there

    print(f"{get_dataset_path(name)}: load it by minari.load_dataset({name!r})")


def tune(
    what: Annotated[Literal["weights"], Positional],
    who: Who,
    climb: Annotated[Climb, arg(name="")],
    by: str | None = None,
    weight: Pairs = (),
    workers: int = 1,
    out: Path | None = None,
) -> None:
    """Find better weights for a player's heuristic: hill climbing over games, one weight at a time, with restarts.

    Args:
        what: What is tuned.
        who: The player.
        climb: How to climb.
        by: Figure whose mean is to grow, such as `attack`; default: the score, in Tetris the lines.
        weight: Weight to change, such as `penalty`, or `stages.0.1.penalty` for a nested one; may be repeated;
            default: all.
        workers: Processes that play side by side.
        out: File to which each trial is appended; the same command resumes a stopped run.
    """
    from mergefall_training.tune.weights import print_tuning, tune

    options = parse_options(who.option)
    print_tuning(tune(who.player, options, who.match(), climb, by=by, only=weight, workers=workers, out=out))


def export(
    run_folder: Annotated[str, Positional, arg(metavar="RUN")],
    file: Annotated[Path, Positional, arg(metavar="FILE")],
    model: Literal["best", "last"] = "best",
    bits: int = 10,
    entries: int | None = None,
) -> None:
    """Write a trained policy as a .zip that Stable-Baselines3 or sb3-contrib loads, or an n-tuple network as a .npz.

    The .npz is one small file, rounded and compressed; `2048/ntuple` plays it.

    Args:
        run_folder: Run folder or model file of an algorithm of SB3, of distill or kickstart, or the name of such a
            player. For a .npz: run folder or model file of ntuple, or `.w` file of TDL2048+.
        file: File to write, such as model.zip or network.npz.
        model: Which model of a run folder; for a .zip.
        bits: Bits of each entry of a .npz, 2 to 16, in even steps up to the table's largest entry; 32: not rounded.
        entries: Number of entries to keep in a .npz: the ones that the run adjusted most; default: all.
    """
    if file.suffix != ".npz":
        from mergefall.imports import import_extra

        exported = import_extra("mergefall_training.learn.sb3.export").export(run_folder, file, model)
        name = type(exported).__name__
        print(f"{file}: load it by {name}.load({str(file)!r}), with mergefall_training installed")
        return
    from mergefall_training.learn.ntuple.player import network_of, prune

    network = network_of(run_folder)
    if entries is not None:
        prune(network, run_folder, entries)
    checksum = network.save(file, bits)
    size = file.stat().st_size
    print(f"{file}: {network.touched().sum():,} entries, {size:,} bytes, checksum {checksum[:16]}")


def bench_text(
    function: Annotated[str, Positional, arg(metavar="MODULE:FUNCTION")],
    env: str = GAME2048,
    env_option: EnvOption = (),
    puzzles: int = 200,
    batch: int | None = None,
    seed: int = 0,
    judge: str | None = None,
    reference: Pairs = (),
    out: Path | None = None,
) -> None:
    """Score a function, such as a language model, that reads a position as text and answers with a move.

    The reward is 1 for the best move and 0 for the worst one, by the values of a strong player, the judge.

    Args:
        function: The function, `module:name`: it takes a prompt and returns an answer.
        env: Id of the environment.
        puzzles: Number of test puzzles.
        batch: The function takes a list of up to so many prompts and returns a list of answers; default: one prompt.
        seed: Seed of the puzzles.
        judge: Player whose values make the rewards: a name, or name and options in YAML, such as
            `{player: 2048/expectimax, depth: 3}`; default: perfect play on boards up to 2×3, else a strong player.
        reference: Player to compare with, as for `judge`; may be repeated; default: a few players of the game.
        out: File to which each prompt, answer, verdict and reward is appended; the same command resumes a stopped run.
    """
    from mergefall.imports import imported

    from mergefall_training.play.tables import to_terminal
    from mergefall_training.play.text_bench import bench_text

    table = bench_text(
        imported(function),
        env,
        parse_options(env_option),
        count=puzzles,
        batch=batch,
        judge=judge and parsed("judge", judge),
        seed=seed,
        references=[parsed("reference", player) for player in reference] or None,
        out=out,
    )
    to_terminal(table)


# -- the command ------------------------------------------------------------------------------------------------------

COMMANDS: "Dict" = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(envs, players, heuristics, suites),
        *(play, watch, advise, evaluate, compare, report, verify),
        *(train, demonstrate, tune, export, bench_text),
    )
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Bad input prints one line on stderr and exits with status 2, Ctrl-C with status 130."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # PyTorch's threads: networks this small are no faster on two
    words = _typed[:] = sys.argv[1:] if arguments is None else list(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a redirected output's encoding may lack the multiplication sign
    command = parse(words)  # before imports, so that --help answers at once
    from concurrent.futures.process import BrokenProcessPool

    from gymnasium.error import DependencyNotInstalled
    from mergefall.imports import allow, look_in

    look_in(os.getcwd())
    allow(words)
    try:
        if (text := command()) is not None:
            print(text)
    except BrokenPipeError:  # as `| head` leaves behind
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError, DependencyNotInstalled) as error:
        say("\n".join([f"mergefall: {error}", *getattr(error, "__notes__", [])]), file=sys.stderr)
        sys.exit(2)
    except BrokenProcessPool:
        print("mergefall: a worker process died, perhaps for lack of memory; what is on file stays", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as interrupt:
        print("mergefall: " + "; ".join(getattr(interrupt, "__notes__", ["stopped"])), file=sys.stderr)
        sys.exit(130)


def parse(arguments: Sequence[str]) -> partial[Any]:
    """The function of a command line, with its arguments."""
    match list(arguments):
        case ["--version"]:
            from mergefall import __version__

            return partial(str, f"mergefall {__version__}")
        case ["train", algorithm, "-h" | "--help", *_] if not algorithm.startswith("-"):
            return partial(training_page, algorithm)
    return subcommand_cli_from_dict(
        {name: _held(function) for name, function in COMMANDS.items()},
        args=arguments or ["--help"],
        prog="mergefall",
        description="2048 and Tetris: play, watch, advise, compare, verify, report, train, tune. "
        "A player's own options are set by --option NAME=VALUE, an environment's by --env-option, hyper-parameters by "
        "--set. `mergefall --version` prints the version.",
        config=(OmitArgPrefixes, OmitSubcommandPrefixes),
    )


def _held(function: Any) -> Any:
    """A function that returns the call of another one."""
    return wraps(function)(lambda *arguments, **options: partial(function, *arguments, **options))


def say(text: str, file: TextIO | None = None) -> None:
    """Print text in which names from files may stand."""
    from mergefall_training.progress import printable

    print(printable(text), file=file)


def _writer(figure: str | None) -> Callable[[Sequence[Any]], None]:
    """What writes results as records of `figure`, QUESTION/ID. Raises ValueError if there is no place for them."""
    if figure is None:
        return lambda results: None
    from mergefall_training.compare.figures import figure_file, write_figures

    # The command line, without options that change no figure.
    unsaid = r" --(figure|out|workers|executor)[ =]('[^']*'|\S+)"
    file, command = figure_file(figure), re.sub(unsaid, "", shlex.join(["mergefall", *_typed]))
    return lambda results: say(f"written to {file}: {', '.join(write_figures(file, figure, results, command))}")


# -- arguments --------------------------------------------------------------------------------------------------------


def parse_options(pairs: Sequence[str]) -> "Dict":
    """Options given as NAME=VALUE, values read as YAML.

    >>> parse_options(["heuristic=nneonneo", "depth=3", "cutoff=1e-4", "weights={empty: 270}", "table=false"])
    {'heuristic': 'nneonneo', 'depth': 3, 'cutoff': 0.0001, 'weights': {'empty': 270}, 'table': False}
    """
    options: Dict = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        if not equals or not name.isidentifier():
            raise ValueError(f"option {pair!r}: expected NAME=VALUE")
        if name in options:
            raise ValueError(f"option {name!r} is given twice")
        options[name] = parsed(f"option {pair!r}", value)
    return options


def paths_in(words: Sequence[T]) -> tuple[T, ...]:
    """Those of a command's words that name no module or program: `mergefall.imports.allow` has let files name these."""
    from mergefall.imports import is_import

    return tuple(word for word in words if not is_import(str(word)) and not str(word).startswith("command="))


def parsed(about: str, text: str) -> Any:
    """The value of a text in YAML; raises ValueError, with what it is `about`, for a text that is none."""
    from mergefall.checks import in_place

    from mergefall_training.yaml_numbers import load_yaml

    with in_place(about):
        return load_yaml(text)


if __name__ == "__main__":
    main()
