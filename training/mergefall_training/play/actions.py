"""The actions of a game as text, which its record holds, so that anyone can play the game again from its seed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from typing import Any

import numpy as np
from mergefall.typing import Array
from numpy.typing import NDArray

RECORDED = 1 << 16  # a record holds at most so many actions, and a digest of the rest
_CHUNK = 1024  # steps that `ActionLogs` collects at a time


class ActionLog:
    """The actions of one game, added in parts.

    >>> log = ActionLog()
    >>> log.add(np.array([3, 1, 3], np.uint8))
    >>> actions_of(log.fields()["actions"], 3)
    array([3, 1, 3], dtype=uint16)
    """

    def __init__(self) -> None:
        self._first: list[Array] = []
        self._count = 0
        self._rest = hashlib.sha256()

    def add(self, actions: Array) -> None:
        """Add the next actions, integers below 65,536."""
        room = max(RECORDED - self._count, 0)
        self._first.append(actions[:room].copy())
        self._rest.update(actions[room:].astype("<u2").tobytes())
        self._count += len(actions)

    def fields(self) -> dict[str, str]:
        """The fields of a record.

        - `actions`: the first `RECORDED` actions, one byte each, or two if an action is above 255; compressed by zlib,
          as base64.
        - `rest`: the SHA-256 of all others that were added, two bytes each; left out if there are none.
        """
        first = np.concatenate(self._first)
        content = first.astype("<u1" if first.max(initial=0) < 256 else "<u2").tobytes()
        found = {"actions": base64.b64encode(zlib.compress(content, 9)).decode()}
        return found | ({"rest": self._rest.hexdigest()} if self._count > RECORDED else {})


class ActionLogs:
    """The actions of n games that are played side by side, one step of all of them at a time."""

    def __init__(self, n: int) -> None:
        self._logs = [ActionLog() for _ in range(n)]
        self._steps = np.empty((_CHUNK, n), np.uint16)
        self._filled = 0

    def add(self, actions: Array) -> None:
        """Add a step: integers[n]."""
        if self._filled == _CHUNK:
            for log, column in zip(self._logs, self._steps.T, strict=True):
                log.add(column)
            self._filled = 0
        self._steps[self._filled] = actions
        self._filled += 1

    def fields(self, i: int) -> dict[str, str]:
        """`ActionLog.fields` of game i, which ends with the last step."""
        self._logs[i].add(self._steps[: self._filled, i])
        return self._logs[i].fields()


def actions_of(text: Any, length: int) -> NDArray[np.uint16]:
    """The actions in a record of a game with `length` actions: uint16, at most `RECORDED`. Raises ValueError."""
    count = min(length, RECORDED)
    try:
        packed = zlib.decompressobj()
        content = packed.decompress(base64.b64decode(text, validate=True), 2 * count + 1)
    except (TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise ValueError(f"the actions cannot be read ({error})") from error
    if not packed.eof or len(content) not in (count, 2 * count):
        raise ValueError(f"the actions are {len(content)} bytes; expected one or two for each of {count}")
    return np.frombuffer(content, "<u1" if len(content) == count else "<u2").astype(np.uint16)
