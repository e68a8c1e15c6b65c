"""A pseudo-terminal, for commands that read keys, and a screen on which keys are pressed."""

import os
import subprocess
import sys
import time
from contextlib import suppress


def in_terminal(arguments, keys):
    """What `mergefall` with these arguments prints in a terminal where keys are pressed, and its status."""
    ours, theirs = os.openpty()
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


class Clock:
    """A clock that stands still unless somebody waits; `monotonic` for the module `time`."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


class Script:
    """A screen on which keys are pressed, one for each time that it is read, and the last of `keys` for ever."""

    render_mode, interactive = "ansi", True

    def __init__(self, keys, clock=None):
        self._keys, self.shown, self.waited, self._clock = list(keys), [], [], clock

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def show(self, pictures, lines):
        self.shown.append((list(pictures), lines))

    def read(self, timeout=None):
        self.waited.append(timeout)
        if self._clock:
            self._clock.now += timeout or 0
        key = self._keys.pop(0) if len(self._keys) > 1 else self._keys[0]
        return [key] if key else []
