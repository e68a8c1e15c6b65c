"""Networks of TD learning as players of Tetris: models of `mergefall train td`.

The players are `tetris/greedy` and `tetris/expectimax` with the network (`mergefall_baselines.tetris.network`) as their
heuristic. They are compiled and need only the search players.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from mergefall.checks import known
from mergefall.tetris.heuristics.linear import linear
from mergefall.tetris.rules import Rules
from mergefall.typing import Arrays, Options
from mergefall_baselines import Player
from mergefall_baselines.tetris.network import BlockNetwork, Shape, network_class, network_shape

from mergefall_training.learn.agents import heuristic_player


def shape_of(blocks: str, features: Iterable[str], rules: Rules) -> Shape:
    """The shape of a network for a game: blocks share their weights with their mirror images if the pieces allow it.

    They do not with the five-cell pieces, which have no mirror images, nor with hidden counts, which differ between
    mirror images.
    """
    mirrored = rules.pieces != "five" and rules.randomizer != "hidden"
    names = linear(features).term_names if features else ()
    return network_shape(blocks, rules.cols, rules.rows, names, mirrored)


def player(spec: Options, arrays: Arrays, depth: int = 1) -> Player:
    """The player of a model.

    Args:
        spec: the model's; its ``network`` has the network's ``blocks`` and ``features``.
        arrays: ``places`` uint32[n], rising, and ``weights`` float32[n]: the weights that are not 0, and their places.
        depth: own moves to look ahead. Default: 1, the current piece.

    Raises ValueError if the arrays do not fit the network.
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
    heuristic: BlockNetwork = network_class(shape)(weights)
    size = {"cols": shape.cols, "rows": shape.rows} if shape.blocks else {}
    return heuristic_player(spec, heuristic, depth, lost=0.0, **size)  # a lost game has no more pieces
