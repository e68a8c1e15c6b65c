"""Potential-based reward shaping by the heuristics of both games (Ng, Harada & Russell 1999).

    F = γΦ(s′) − Φ(s)          Φ(s) = scale · squash(h(s) − offset), 0 in terminal states

A step from s to s′ pays F in addition to its reward. The optimal policy stays the same if γ is the learner's own
discount. If an episode is truncated, Φ(s′) keeps its value. An illegal action leaves s′ = s, so it pays (γ − 1)Φ(s).
The step on which a batched environment begins a new episode pays 0.

- h is the heuristic's value of the board with `to_move=False`. Of a Tetris heuristic only the terms of the board count,
  and the base of nneonneo is left out.
- `squash` is "identity" or "asinh", which is logarithmic far from 0.
- `offset`, default: h(empty board) − drop · cells, about the value of the last boards of random games; 0 for
  `tile-order`, whose value grows with the tiles.

`CONSTANTS` has squash, scale and drop of each documented potential, chosen so that a typical step is paid about one
(`python tests/benchmarks/shaping.py` of version 0.1.0 prints it). The page of the environments says when shaping helps.

Other potentials have squash "identity", scale 1 and offset 0: a function of a board, and a player that values boards,
`{"player": "2048/expectimax", …options}`, where h is the value of its best action. In an argument of an environment,
which must be JSON types, name a function as `module:name`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mergefall.checks import choice, known, number
from mergefall.kernels import kernel
from mergefall.library import Library
from mergefall.weighted import WeightedSum

SQUASHES = ("identity", "asinh")
GAMMA = 0.99  # the default discount, as in Stable-Baselines3
CONSTANTS = {  # squash, scale, drop
    "tile-order": ("asinh", 1.0, 30.0),
    "monotone-smooth": ("identity", 0.5, 2.25),
    "prairie-fire": ("identity", 0.02, 50.0),
    "nneonneo": ("identity", 0.0001, 17500.0),
    "two-tetrad": ("identity", 0.002, 100.0),
    "open-enclosed": ("identity", 0.05, 3.5),
    "dellacherie": ("identity", 0.1, 1.75),
    "bcts": ("identity", 0.015, 14.0),
    "dt-10": ("identity", 0.1, 2.4),
    "dt-20": ("identity", 0.08, 2.8),
    "el-tetris": ("identity", 0.04, 5.6),
}


@kernel
def squashed(value, offset, scale, bends):
    """scale · squash(value − offset); `bends` is True for "asinh", False for "identity"."""
    return scale * (math.asinh(value - offset) if bends else value - offset)


@dataclass(frozen=True)
class Shaping:
    """A potential of one game's states and a discount: what each step pays in addition to its reward.

    `potential` is a heuristic of the game, or an object with `of_observations(batch) -> float64[n]` that can be pickled
    (a player).
    """

    rules: Any
    potential: Any
    gamma: float
    scale: float
    squash: str
    offset: float

    @classmethod
    def read(cls, options: Any, rules: Any, library: Library[Any]) -> Self | None:
        """The shaping that the argument `shaping` of an environment describes; None for None.

        Its keys: `potential` (whatever `heuristic` of the game takes, or `{"player": …}`) and, optionally, `gamma`
        (default: 0.99), `scale`, `squash` and `offset` (defaults: see the module). None as a value means the default.
        Raises ValueError for anything else.
        """
        if options is None:
            return None
        if not isinstance(options, Mapping):
            raise ValueError(f"shaping is {options!r}; expected a mapping with a potential's name as 'potential'")
        known("shaping", options, [field.name for field in fields(cls) if field.name != "rules"])
        values = {name: value for name, value in options.items() if value is not None}
        spec, squash, scale, offset = values.get("potential"), "identity", 1.0, 0.0
        if isinstance(spec, Mapping) and "player" in spec:
            (maker,) = entry_points(group="mergefall.potentials", name="player")
            potential = maker.load()(spec, rules)
        elif not isinstance(spec, str | Mapping) and not callable(spec):
            raise ValueError(f"potential is {spec!r}; expected a name, a mapping of a name and weights, or a function")
        else:
            spec = {"name": spec} if isinstance(spec, str) else spec
            if isinstance(spec, Mapping) and spec.get("name") == "nneonneo":
                spec = {"base": 0.0, **spec}  # the same for all boards
            potential = library.read(spec)
            potential.check_size(rules.rows, rules.cols)
            if potential.name in CONSTANTS:
                squash, scale, drop = CONSTANTS[potential.name]
                empty = np.zeros((rules.rows, rules.cols), np.uint8)
                offset = potential.of_empty(empty) - drop * rules.rows * rules.cols
        return cls(
            rules,
            potential,
            number("gamma", values.get("gamma", GAMMA), above=0, most=1),
            number("scale", values.get("scale", scale), above=0),
            choice("squash", values.get("squash", squash), SQUASHES),
            number("offset", values.get("offset", offset)),
        )

    @cached_property
    def _compiled(self) -> tuple[Any, tuple[Any, ...]]:
        """The kernel (states, …, offset, scale, bends, values) that computes Φ, and its arguments before the values."""
        kernel, arguments = self.potential.potentials()
        return kernel, (*arguments, self.offset, self.scale, self.squash == "asinh")

    def __reduce__(self) -> Any:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def of_states(self, states: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Φ, float64[n], of states uint64[n, words] as `clone_state` returns them; 0 where the game is over."""
        if isinstance(self.potential, WeightedSum):
            values, (kernel, arguments) = np.empty(len(states)), self._compiled
            kernel(states, *arguments, values)
            self.potential.check()
            return values
        values, going = np.zeros(len(states)), np.flatnonzero(~self.rules.observed(states)[1])
        if going.size:
            h = self.potential.of_observations(self.rules.observations(states[going])) - self.offset
            values[going] = self.scale * (np.arcsinh(h) if self.squash == "asinh" else h)
        return values
