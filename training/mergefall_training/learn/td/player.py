"""Players of Tetris by networks that TD learning made: models of `mergefall train td`.

What is learnt, and how, is in `tetris_td.py`; the players here are `tetris/greedy` and `tetris/expectimax` with the
network (`mergefall_baselines.tetris.network`) as their heuristic. They run compiled and need nothing but the search
players.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from mergefall.checks import known
from mergefall.tetris.heuristics.linear import linear
from mergefall.tetris.rules import Rules
from mergefall_baselines import Player
from mergefall_baselines.tetris.network import Network, Shape, network_class, network_shape
from numpy.typing import NDArray

from mergefall_training.learn.evolution.player import EvolvedGreedy, EvolvedSearch


def shape_of(blocks: str, features: Iterable[str], rules: Rules) -> Shape:
    """The shape of a network for a game; places are mirror images of each other where pieces are.

    The five-cell pieces have no mirror images, and hidden multiplicities differ between those that are.
    """
    mirrored = rules.pieces != "five" and rules.randomizer != "hidden"
    names = linear(features).term_names if features else ()
    return network_shape(blocks, rules.cols, rules.rows, names, mirrored)


def player(spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], depth: int = 1) -> Player:
    """The player of a model: the arrays ``places`` uint32[n] and ``weights`` float32[n] of its network's entries.

    ``blocks`` and ``features`` in its spec's ``network`` say which network that is; `depth` is how many own moves the
    player looks ahead. What does not fit is a ValueError.
    """
    network, kwargs = spec["network"], spec["env_kwargs"]
    rules = Rules(**{name: kwargs[name] for name in ("cols", "rows", "pieces", "randomizer")})
    shape = shape_of(network.get("blocks"), network.get("features"), rules)
    places, found = (arrays.get(name, np.empty(0)) for name in ("places", "weights"))
    known("a model of td", arrays, ("places", "weights"))
    fits = places.dtype == np.uint32 and found.dtype == np.float32 and places.ndim == 1 and places.shape == found.shape
    if not fits or places.max(initial=0) >= shape.size or (places[1:] <= places[:-1]).any():
        has = f"{places.dtype}{list(places.shape)} up to {places.max(initial=0)} and {found.dtype}{list(found.shape)}"
        raise ValueError(
            f"a model's places and weights are {has}; expected rising uint32[n] below {shape.size} and float32[n]"
        )
    weights = np.zeros(shape.size, dtype=np.float32)
    weights[places] = found
    heuristic: Network = network_class(shape)(weights)
    size = {"cols": shape.cols, "rows": shape.rows} if shape.blocks else {}
    if depth == 1:
        return EvolvedGreedy(spec, heuristic, **size)
    return EvolvedSearch(spec, heuristic, depth, lost=0.0, **size)  # no more pieces
