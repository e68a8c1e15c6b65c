"""A pseudo-terminal, for commands that read keys."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress


def in_terminal(arguments: Sequence[str], keys: Sequence[bytes]) -> tuple[str, int]:
    """What `mergefall` with these arguments prints in a terminal where keys are pressed, and its status."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "dumb"}
    command = [sys.executable, "-m", "mergefall_training", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, env=environment) as process:
        os.close(theirs)
        for pressed in keys:
            os.write(ours, pressed)
            time.sleep(0.01)
        printed = b""
        with suppress(OSError):  # Linux's end of the output of a terminal that nobody has open
            while part := os.read(ours, 4096):
                printed += part
    os.close(ours)
    return printed.decode(), process.returncode
