"""Contests of speed: contestants in processes of their own that take turns, and the median of the rounds."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
PEERS = {
    "gymnasium-2048": "gymnasium-2048==0.1.2",
    "pgx": "pgx==2.6.0",
    "tetris-gymnasium": "tetris-gymnasium==0.3.1",
    "jumanji": "jumanji==1.1.2",
}


def peer_python(name: str) -> str:
    """The Python of a peer's own environment, which is made if it is not there yet."""
    folder = Path(".bench") / name
    binary = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "made").exists():
        print(f"making {folder} for {PEERS[name]}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([binary, "-m", "pip", "install", "--quiet", PEERS[name]], check=True)
        (folder / "made").touch()
    return str(binary)


@dataclass
class Contestant:
    """A worker process and the figures it has given."""

    title: str
    worker: str
    size: int = 1
    python: str = sys.executable
    figures: list[float] = field(default_factory=list)

    def start(self) -> None:
        environment = dict(os.environ)
        if self.python != sys.executable:
            environment.pop("PYTHONPATH", None)  # the peer's own packages, not ours
        command = [self.python, str(HERE / "workers.py"), self.worker, str(self.size)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._answer("ready")

    def measure(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.figures.append(float(self._answer()))

    def _answer(self, expected: str | None = None) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line or expected not in (None, line):
            raise RuntimeError(f"{self.title} answered {line!r} and ended with {self.process.wait()}")
        return line

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    @property
    def median(self) -> float:
        return statistics.median(self.figures)


def contest(contestants: list[Contestant], rounds: int) -> list[Contestant]:
    """Let the contestants take turns for some rounds, then print what each did."""
    for contestant in contestants:
        contestant.start()
    for _ in range(rounds):
        for contestant in contestants:
            contestant.measure()
    for contestant in contestants:
        contestant.stop()
        low, high = min(contestant.figures), max(contestant.figures)
        print(f"  {contestant.title:44} {contestant.median:>13,.0f}/s   ({low:,.0f} to {high:,.0f})")
    return contestants


def goal(title: str, figure: float, target: float, unit: str, smaller: bool = False) -> None:
    reached = figure <= target if smaller else figure >= target
    sign = "<=" if smaller else ">="
    print(f"  {title:44} {figure:>13,.1f}{unit:2}   goal {sign} {target:g}{unit}  {'reached' if reached else 'MISSED'}")
