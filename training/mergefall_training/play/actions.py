"""The actions of a game as text, which its record holds, so that anyone can play the game again from its seed."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

import numpy as np
from mergefall.typing import Array
from numpy.typing import NDArray

RECORDED = 1 << 16  # a record holds at most so many actions


def text_of(actions: Array) -> str:
    """The first `RECORDED` of a game's actions as text: one byte each, or two if one is above 255; by zlib, as base64.

    >>> actions_of(text_of(np.array([3, 1, 3], np.uint8)), 3)
    array([3, 1, 3], dtype=uint16)
    """
    first = actions[:RECORDED]
    content = first.astype("<u1" if first.max(initial=0) < 256 else "<u2").tobytes()
    return base64.b64encode(zlib.compress(content, 9)).decode()


def actions_of(text: Any, length: int) -> NDArray[np.uint16]:
    """The actions in a record of a game with `length` actions: uint16, at most `RECORDED`. Raises ValueError."""
    count = min(length, RECORDED)
    try:
        packed = zlib.decompressobj()
        content = packed.decompress(base64.b64decode(text, validate=True), 2 * count + 1)
    except (TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise ValueError(f"the actions cannot be read ({error})") from error
    if not packed.eof or packed.unused_data or len(content) not in (count, 2 * count):
        raise ValueError(f"the actions are {len(content)} bytes; expected one or two for each of {count}")
    return np.frombuffer(content, "<u1" if len(content) == count else "<u2").astype(np.uint16)
