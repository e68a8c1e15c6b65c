"""Checks a shell command of a text without running it: its program, player, options and suite exist."""

import io
import re
import shlex
from contextlib import redirect_stderr
from functools import cache
from pathlib import Path

from mergefall_baselines.registry import signature_of
from mergefall_training import cli
from mergefall_training.compare import load_suite
from mergefall_training.learn import ALGORITHMS

ROOT = Path(__file__).parents[1]
TARGETS = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
OTHERS = ("cd", "export", "git", "pip", "ray", "tensorboard")  # programs that are taken as they are


def check(line):
    """Raise ValueError for a line of commands, joined by `&&`, of which one could not run.

    >>> check("mergefall evaluate 2048/random --episodes 3 && make test")
    >>> check("mergefall evaluate 2048/expectimax --option deepness=3")
    Traceback (most recent call last):
    ValueError: 2048/expectimax has no option 'deepness'
    """
    for command in line.split(" && "):
        check_one(command)


@cache
def check_one(command):
    """Raise ValueError for a command that could not run."""
    program, *arguments = shlex.split(command, comments=True)
    if program == "mergefall":
        check_mergefall(arguments)
    elif program == "make":
        if wrong := set(arguments) - set(TARGETS):
            raise ValueError(f"the Makefile has no target {wrong.pop()!r}")
    elif program == "python":
        if arguments[0] == "-c":
            compile(arguments[1], "-c", "exec")
        elif arguments[0] != "-m" and not (ROOT / arguments[0]).is_file():
            raise ValueError(f"there is no file {arguments[0]!r}")
    elif program not in OTHERS:
        raise ValueError(f"unknown program {program!r}")


def check_mergefall(arguments):
    """Parse a command line as `mergefall` does, and check the names that parsing lets through."""
    command = parsed(arguments)
    options = dict(command.keywords)
    if command.func is cli.compare:
        for name in cli.paths_in(options["suite"]):
            if not name.endswith((".jsonl", ".yaml")):
                suite = load_suite(name)
                assert not options["game"] or suite.only(options["game"])
    elif "who" in options and options["who"].player.partition("/")[0] in ("2048", "tetris", "quintris"):
        check_player(options["who"].player, cli.parse_options(options["who"].option))
    elif command.func is cli.train and (options["algorithm"] in ALGORITHMS or not options["resume"]):
        run_of(command)  # else the command resumes the run in a folder, which is not there


def run_of(command):
    """The run folder and the configuration of a `mergefall train`."""
    options = dict(command.keywords)
    changes = {name: options[name] for name in ("preset", "timesteps", "seed", "interval", "episodes")}
    return cli.run_of(
        options["algorithm"], options["where"], options["set"], changes, options["resume"], options["out"]
    )


def parsed(arguments):
    """The command that a line of `mergefall` is. Raises ValueError for one that cannot be read."""
    complaint = io.StringIO()
    with redirect_stderr(complaint):
        try:
            return cli.parse(arguments)
        except SystemExit as error:
            raise ValueError(f"mergefall {shlex.join(arguments)}: {complaint.getvalue()}") from error


def check_player(name, options):
    """Check that there is a player of a name, and that it has these options."""
    known = signature_of(name).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        for option in options.keys() - known.keys():
            raise ValueError(f"{name} has no option {option!r}")
