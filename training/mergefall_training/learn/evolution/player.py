"""Evolved weights as players of Tetris: models of `mergefall train cma-es`.

The players are `tetris/greedy` and `tetris/expectimax` with these weights, or those of `afterstate` with an evolved
network. They are compiled and need only the search players.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from mergefall.tetris.heuristics import Heuristic
from mergefall.tetris.heuristics import heuristic as named
from mergefall.typing import Arrays, Options
from mergefall.weighted import weights_of
from mergefall_baselines import Player
from mergefall_baselines.tetris.greedy import Greedy
from mergefall_baselines.tetris.search import Expectimax

from mergefall_training.learn.afterstate.player import player as player_of_network
from mergefall_training.learn.agents import of_file

LOST = -1000.0  # value of a lost game to a search: below all boards of 20 rows under weights of length 1


def names_of(heuristic: Heuristic) -> list[str]:
    """The names of a heuristic's weights."""
    return list(weights_of(heuristic.to_json()))


def player(spec: Options, arrays: Arrays, depth: int | None = None, heuristic: Any = None) -> Player:
    """The player of a model.

    Args:
        spec: the model's; its ``network`` has the ``heuristic``, the ``names`` of its weights in order, and the
            ``depth`` that they were learnt for. That of an evolved network is as for `afterstate`'s `player`.
        arrays: ``weights`` float64[names], or the network's.
        depth: own moves to look ahead. Default: the depth that the weights were learnt for.
        heuristic: the heuristic that has these weights, if it is your own (`module:name`), because no file may name it.

    Raises ValueError if the weights do not fit the heuristic.
    """
    network = spec["network"]
    if "inputs" in network:
        if depth is not None or heuristic is not None:
            raise ValueError(
                f"depth is {depth}, heuristic is {heuristic!r}; a network plays without search, so expected none"
            )
        return player_of_network(spec, arrays)
    # Older files call it `evaluation`.
    own = named(heuristic or network.get("heuristic", network.get("evaluation")))
    weights = arrays.get("weights", np.empty(0))
    expected = {"weights": (np.float64, (len(names_of(own)),))}
    if network.get("names") != names_of(own) or expected != {n: (a.dtype, a.shape) for n, a in arrays.items()}:
        theirs = f"{weights.dtype}{list(weights.shape)} for {network.get('names')}, of the arrays {sorted(arrays)}"
        raise ValueError(f"a model's weights are {theirs}; expected one float64 for each of {names_of(own)}")
    ahead = network.get("depth", 1) if depth is None else depth
    chosen = replace(own, **dict(zip(names_of(own), weights.tolist(), strict=True)))
    return of_file(Greedy(chosen) if ahead == 1 else Expectimax(chosen, ahead, lost=LOST), spec)
