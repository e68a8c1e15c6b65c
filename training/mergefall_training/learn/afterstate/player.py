"""Value networks as players: models of `mergefall train afterstate`.

The player maximizes r + γV(s′) over the actions, with s′ the board that an action leaves. Only chance acts between an
action and the next decision, so the values of afterstates are all that a choice needs. `train.py` learns V with
PyTorch; the players here run the same network compiled, in whole episodes too, and need no PyTorch.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from mergefall.checks import number
from mergefall.kernels import kernel
from mergefall.tetris.game import columns_in, queued
from mergefall.tetris.placements import action_of, list_placements
from mergefall.tetris.rules import Rules
from mergefall.typing import Array, Arrays, Ints, Kernel, Options
from mergefall_baselines import Player
from mergefall_baselines.kernel_player import KernelPlayer
from mergefall_baselines.tetris.player import FORM

from mergefall_training.learn.afterstate.inputs import INPUTS, SCRATCH, outcome, rules_for, tetris_inputs, write_tetris
from mergefall_training.learn.agents import counted_by, of_file

U = np.uint64
F = np.float32


class Layers(NamedTuple):
    """A network of rectified layers, and scratch memory."""

    sizes: Ints  # of the layers, the inputs first and 1 last
    parameters: Array  # layer by layer: weights [inputs, outputs], then biases
    here: Array  # scratch, as wide as the widest layer
    there: Array  # the same
    inputs: Array  # of an afterstate, filled by the caller


@kernel
def network_value(x, layers):
    """The output of a network for inputs x float32[sizes[0]].

    A pass takes four inputs, because each pass writes all outputs; it is left out if all four are 0.
    """
    sizes, parameters, here, there, _ = layers
    at, last = U(0), sizes.size - 2
    for i in range(U(sizes[0])):
        here[i] = x[i]
    for layer in range(sizes.size - 1):
        n_in, n_out, four, i = U(sizes[layer]), U(sizes[layer + 1]), U(4), U(0)
        bias = at + n_in * n_out
        for j in range(n_out):
            there[j] = parameters[bias + j]
        while i + four <= n_in:
            v0, v1, v2, v3 = here[i], here[i + U(1)], here[i + U(2)], here[i + U(3)]
            if v0 != 0 or v1 != 0 or v2 != 0 or v3 != 0:
                w0 = at + i * n_out
                w1, w2, w3 = w0 + n_out, w0 + U(2) * n_out, w0 + U(3) * n_out
                for j in range(n_out):
                    there[j] += (v0 * parameters[w0 + j] + v1 * parameters[w1 + j]) + (
                        v2 * parameters[w2 + j] + v3 * parameters[w3 + j]
                    )
            i += four
        while i < n_in:
            for j in range(n_out):
                there[j] += here[i] * parameters[at + i * n_out + j]
            i += U(1)
        at = bias + n_out
        if layer < last:
            for j in range(n_out):
                here[j] = max(there[j], F(0))
    return there[U(0)]


def layers_of(arrays: Arrays, inputs: int) -> Layers:
    """The network in a model's arrays; raises ValueError for arrays that are no network of so many `inputs`."""
    layers = range(len(arrays) // 2)
    sizes = [inputs, *(arrays[f"bias{i}"].size for i in layers if f"bias{i}" in arrays)]
    expected = {}
    for i, (wide, narrow) in enumerate(pairwise(sizes)):
        expected |= {f"weight{i}": f"float32{[narrow, wide]}", f"bias{i}": f"float32{[narrow]}"}  # as PyTorch has them
    found = {name: f"{array.dtype}{list(array.shape)}" for name, array in arrays.items()}
    if sizes[-1] != 1 or found != expected:
        raise ValueError(f"a network's arrays are {found}; expected float32 layers from {inputs} inputs to one value")
    parameters = [part for i in layers for part in (arrays[f"weight{i}"].T.ravel(), arrays[f"bias{i}"])]
    here, there = (np.empty(max(sizes), F) for _ in range(2))
    return Layers(np.array(sizes), np.concatenate(parameters), here, there, np.empty(inputs, F))


@kernel
def decide_tetris(state, memory, values, settings):
    """Value each placement at r + γV(afterstate), a fatal one at −inf; the first legal one wins if all are fatal."""
    (rows, first, slides, reach, clear_first), payments, gamma, layers, after, terms, placements = settings
    columns, piece, chosen, highest = columns_in(state), first + queued(state, 0), -1, -np.inf
    values[:] = -np.inf
    for placement in placements[: list_placements(columns, piece, slides, reach, placements)]:
        action = action_of(placement)
        lines, over = outcome(columns, piece, placement, rows, clear_first, after)
        if not over:
            write_tetris(after, rows, terms, layers.inputs)
            values[action] = payments[lines] + gamma * network_value(layers.inputs, layers)
        if chosen < 0 or values[action] > highest:
            chosen, highest = placement, values[action]
    return chosen


class AgentTetris(KernelPlayer):
    """Plays the placement of the highest r + γV(afterstate); a fatal one is worth −inf.

    It plays on as many columns as it was trained on, by any other rules. `rewards` and `gamma` are for searches.
    """

    form = FORM
    sees_next = False

    def __init__(self, spec: Options, arrays: Arrays) -> None:
        trained: Options = spec["env_kwargs"]
        super().__init__(cols=trained["cols"])
        self._layers = layers_of(arrays, tetris_inputs(trained["cols"]))
        self._payments = Rules(reward=trained["reward"]).payments()
        self.rewards, self.gamma = counted_by(spec), float(spec["network"]["gamma"])

    def _make_decider(self, way: Rules, exact: bool) -> tuple[Kernel, Any]:
        layers = Layers._make(map(np.copy, self._layers))  # scratch memory of its own
        scratch = np.empty(way.cols, U), np.zeros(SCRATCH), np.empty(way.n_actions, np.int64)
        return decide_tetris, (rules_for(way), self._payments, F(self.gamma), layers, *scratch)


def player(spec: Options, arrays: Arrays) -> Player:
    """The player of a model.

    Args:
        spec: the model's; its ``network`` has ``gamma`` and the name of its ``inputs`` (`inputs.INPUTS`).
        arrays: float32, ``weight0`` [outputs, inputs], ``bias0`` [outputs], ``weight1`` … of its layers, from the
            inputs to one value, with rectifiers between. Values are in units of the environment's reward.

    Raises ValueError if the arrays do not fit.
    """
    network = spec["network"]
    if network.get("inputs") != INPUTS:
        raise ValueError(f"the model's inputs are {network.get('inputs')!r}; this release has {INPUTS!r}")
    number("gamma", network.get("gamma"), 0, 1)
    return of_file(AgentTetris(spec, arrays), spec)
