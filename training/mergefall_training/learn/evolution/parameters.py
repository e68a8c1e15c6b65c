"""What evolution learns: the weights of a heuristic, or those of a value network's last layer.

A strategy draws vectors float64[size] from a Gaussian with the standard deviation `spread` around 0. `scaled` makes
candidates of them, and `player` the player of a candidate.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from mergefall.typing import Arrays, Options
from mergefall_baselines.tetris.player import TetrisPlayer
from numpy.typing import NDArray

from mergefall_training.learn.afterstate.player import AgentTetris
from mergefall_training.learn.evolution.player import heuristic_of, names_of, playing, weighted
from mergefall_training.learn.run import Config

Vectors = NDArray[np.float64]


class Parameters(Protocol):
    """Parameters that evolution learns; `size` is their number."""

    size: int
    spread: float

    def scaled(self, vectors: Vectors) -> Vectors:
        """Candidates from vectors float64[..., size]."""
        ...

    def player(self, candidate: Vectors) -> TetrisPlayer:
        """The player of a candidate float64[size]."""
        ...

    def arrays(self, candidate: Vectors) -> Arrays:
        """The arrays of a candidate's model."""
        ...

    def network(self) -> dict[str, Any]:
        """What `player.player` needs besides the arrays."""
        ...

    def base(self) -> dict[str, Any] | None:
        """The model that candidates differ from, as `Model`'s `spec` and `arrays`; None if there is none."""
        ...


def directions(weights: Vectors) -> Vectors:
    """Weights float64[..., size] scaled to length 1; 0 stays 0.

    >>> directions(np.array([[3.0, -4.0], [0.0, 0.0]]))
    array([[ 0.6, -0.8],
           [ 0. ,  0. ]])
    """
    length = np.linalg.norm(weights, axis=-1, keepdims=True)
    return weights / np.where(length > 0, length, 1)


class HeuristicWeights:
    """The weights of a heuristic. Only their direction matters to a greedy player, so candidates have length 1."""

    spread = 1.0  # any would do

    def __init__(self, heuristic: Any, depth: int) -> None:
        self._spec, self._depth, self._known = heuristic, depth, heuristic_of(heuristic)
        self.size = len(names_of(self._known))

    def scaled(self, vectors: Vectors) -> Vectors:
        return directions(vectors)

    def player(self, candidate: Vectors) -> TetrisPlayer:
        return playing(weighted(self._known, candidate), self._depth)

    def arrays(self, candidate: Vectors) -> Arrays:
        return {"weights": directions(candidate)}

    def network(self) -> dict[str, Any]:
        return {"heuristic": self._spec, "names": names_of(self._known), "depth": self._depth}

    def base(self) -> None:
        return None


class LastLayer:
    """The weights of a value network's last layer: how much each unit of the layer before counts.

    A candidate holds their differences to those of a trained network, in units of the root mean square of these.
    """

    def __init__(self, spec: Options, arrays: Arrays, spread: float, config: Config) -> None:
        known = {"env_id": config.env_id} | {name: config.env_kwargs[name] for name in ("cols", "reward")}
        found = {"env_id": spec["env_id"]} | {name: spec["env_kwargs"].get(name) for name in ("cols", "reward")}
        layers = len(arrays) // 2
        if "inputs" not in spec["network"] or layers < 2 or found != known:
            raise ValueError(
                f"warm_start: the run is one of {spec['algorithm']}, {found}; expected one of afterstate with a hidden "
                f"layer, {known}"
            )
        self.spread, self._spec, self._arrays = spread, spec, arrays
        self._name = f"weight{layers - 1}"
        self.size = arrays[self._name].size

    def scaled(self, vectors: Vectors) -> Vectors:
        return vectors

    def player(self, candidate: Vectors) -> TetrisPlayer:
        return AgentTetris(self._spec, self.arrays(candidate))

    def arrays(self, candidate: Vectors) -> Arrays:
        before = self._arrays[self._name]
        after = before + np.sqrt(np.mean(before**2)) * candidate.reshape(before.shape)
        return {**self._arrays, self._name: after.astype(np.float32)}

    def network(self) -> dict[str, Any]:
        return dict(self._spec["network"])

    def base(self) -> dict[str, Any]:
        return {"spec": dict(self._spec), "arrays": dict(self._arrays)}
