"""Evolved weights: players of Tetris whose heuristic's weights were learnt from whole games.

What is learnt, and how, is in `evolution.py`; the players here are `tetris/greedy` and `tetris/expectimax` with these
weights. They run compiled and need nothing but the search players.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from mergefall.tetris import HEURISTICS
from mergefall.tetris.heuristics import Heuristic, heuristic
from mergefall.tetris.heuristics.linear import Linear, linear
from mergefall.weighted import weights_of
from mergefall_baselines import Player
from mergefall_baselines.tetris.expectimax import Expectimax
from mergefall_baselines.tetris.greedy import Greedy
from mergefall_baselines.tetris.player import RULES, TetrisPlayer
from numpy.typing import NDArray

from mergefall_training.learn.afterstate.player import SHOWN, OfFile


def heuristic_of(spec: Any) -> Heuristic:
    """A heuristic by its name, from a mapping of `name` and options, or from a list of features of `linear.py`.

    >>> heuristic_of("bcts").term_names == heuristic_of(list(heuristic_of("bcts").term_names)).term_names
    True
    """
    if not isinstance(spec, list):
        return heuristic(spec)
    found = linear(spec)
    for known in HEURISTICS.values():
        if isinstance(known, Linear) and set(known.term_names) == set(found.term_names):
            return known  # its kernels are compiled
    return found()


def names_of(known: Heuristic) -> list[str]:
    """The names of a heuristic's weights.

    >>> names_of(heuristic_of("two-tetrad"))
    ['f1', 'f2', 'f3', 'f4', 'f5', 'f6', 'f7', 'f8']
    """
    return list(weights_of(known.to_json()))


def weighted(known: Heuristic, weights: NDArray[np.float64]) -> Heuristic:
    """A heuristic with other weights, in the order of `names_of`."""
    return replace(known, **dict(zip(names_of(known), weights.tolist(), strict=True)))


LOST = -1000.0  # to a search: below what boards are worth by weights of length 1


def playing(known: Heuristic, depth: int) -> TetrisPlayer:
    """Who plays by weights: `tetris/greedy`, or `tetris/expectimax` if it looks further than one piece.

    A search weighs chances of a lost game: to it such an end is worth `LOST`.
    """
    return Greedy(known) if depth == 1 else Expectimax(known, depth, lost=LOST)


class _Evolved(OfFile):
    """A player with learnt weights; `heuristic` holds them.

    It plays by any rules; those that an observation does not show are the ones it was trained with, unless `evaluate`
    or `play` knows better.
    """

    def __init__(self, spec: Mapping[str, Any], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.defaults = {name: spec["env_kwargs"][name] for name in RULES if name not in SHOWN}


class EvolvedGreedy(_Evolved, Greedy):
    """The placement of highest value."""


class EvolvedSearch(_Evolved, Expectimax):
    """The placement that is best some placements ahead."""


def player(spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], depth: int | None = None) -> Player:
    """The player of a model: the array ``weights`` float64[k] for the ``heuristic`` in its spec's ``network``.

    ``names`` there says whose weights they are, in order, and ``depth`` how many moves ahead the player looked that
    they were learnt for; `depth` tells another. What does not fit is a ValueError.
    """
    network = spec["network"]
    known = heuristic_of(network.get("heuristic", network.get("evaluation")))
    weights = arrays.get("weights", np.empty(0))
    expected = {"weights": (np.float64, (len(names_of(known)),))}
    if network.get("names") != names_of(known) or expected != {n: (a.dtype, a.shape) for n, a in arrays.items()}:
        found = f"{weights.dtype}{list(weights.shape)} for {network.get('names')}, of the arrays {sorted(arrays)}"
        raise ValueError(f"a model's weights are {found}; expected one float64 for each of {names_of(known)}")
    known, ahead = weighted(known, weights), network.get("depth", 1) if depth is None else depth
    return EvolvedGreedy(spec, known) if ahead == 1 else EvolvedSearch(spec, known, ahead, lost=LOST)
