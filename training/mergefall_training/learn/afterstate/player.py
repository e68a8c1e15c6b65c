"""Afterstate learning: V(s′) of the board that an action leaves, and the player that maximizes r + γV(s′).

What happens between an action and the next decision is chance alone, so a value of afterstates is all that a choice
needs, and one network learns from every piece or tile. It is learnt by PyTorch (`afterstate_td.py`); the players here
run the same network compiled, within whole episodes too, and need no PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from mergefall.checks import number
from mergefall.game2048 import Game2048Env, board
from mergefall.kernels import kernel
from mergefall.tetris.rules import Rules
from mergefall_baselines import Player
from mergefall_baselines.game2048.player import Boards, Player2048
from mergefall_baselines.tetris.player import RULES, TetrisPlayer
from numpy.typing import NDArray

from mergefall_training.learn.afterstate.inputs import INPUTS, SCRATCH, inputs_of, outcome, write_2048, write_tetris

U = np.uint64
F = np.float32
SHOWN = ("cols", "rows", "preview")  # rules that an observation shows


@kernel
def network_value(x, sizes, parameters, here, there):
    """The output of a network of rectified layers for inputs x float32[sizes[0]].

    `sizes` int64 are those of the layers, the inputs' first and 1 last; `parameters` float32 are, layer by layer, the
    weights [inputs, outputs] and the biases; `here` and `there` float32 are scratch memory for the widest layer.
    Four inputs a pass, for a pass writes all outputs; none where all four are 0.
    """
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


class Network:
    """The arrays of a model, checked."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], inputs: int) -> None:
        layers = len(arrays) // 2
        weights = [arrays.get(f"weight{i}", np.empty(0)) for i in range(layers)]  # [outputs, inputs], as PyTorch's
        biases = [arrays.get(f"bias{i}", np.empty(0)).ravel() for i in range(layers)]
        sizes = [inputs, *(len(bias) for bias in biases)]
        expected = list(zip(sizes[1:], sizes, strict=False))
        fits = layers and [weight.shape for weight in weights] == expected and sizes[-1] == 1 and not len(arrays) % 2
        if not fits or any(array.dtype != F for array in arrays.values()):
            found = {name: f"{array.dtype}{list(array.shape)}" for name, array in arrays.items()}
            raise ValueError(
                f"a network's arrays are {found}; expected float32 layers from {inputs} inputs to one value"
            )
        parameters = [part for w, b in zip(weights, biases, strict=True) for part in (w.T.ravel(), b)]
        self._sizes, self._parameters = np.array(sizes), np.concatenate(parameters).astype(F)

    @property
    def kernel(self) -> tuple[NDArray[Any], ...]:
        """(sizes, parameters, here, there, inputs) for `network_value`, the last three new scratch memory."""
        here, there = (np.empty(self._sizes.max(), F) for _ in range(2))
        return self._sizes, self._parameters, here, there, np.empty(self._sizes[0], F)


@kernel
def decide_tetris(columns, queue, memory, values, settings):
    """Each live placement is worth its reward and γ times its afterstate; the first is taken if none lives."""
    (first, rows, slides, clear_first), payments, gamma, network, (after, terms) = settings
    sizes, parameters, here, there, x = network
    piece, chosen, highest = first + (np.int64(queue) & 15), -1, -np.inf
    for action in range(values.size):
        values[action] = -np.inf
        placement, lines, over = outcome(columns, piece, action, slides, rows, clear_first, after)
        if placement < 0:
            continue
        if not over:
            write_tetris(after, rows, terms, x)
            values[action] = payments[lines] + gamma * network_value(x, sizes, parameters, here, there)
        if chosen < 0 or values[action] > highest:
            chosen, highest = placement, values[action]
    return chosen


class OfFile:
    """A Tetris player of a model file, mixed into the class that says how it plays; rules are no options of a file."""

    def with_rules(self: Any, rules: Mapping[str, Any]) -> Player:
        player = super().with_rules(rules)  # pyright: ignore[reportAttributeAccessIssue]
        player.options = self.options  # those of the file, which rules are none of
        return player


class TetrisAgent(OfFile, TetrisPlayer):
    """Plays the placement of the highest r + γV(afterstate); a fatal one is worth −∞.

    It plays on as many columns as it has learnt for, by any other rules; those that an observation does not show are
    the ones it was trained with, unless `evaluate` or `play` knows better.
    """

    def __init__(self, spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        trained: Mapping[str, Any] = spec["env_kwargs"]
        super().__init__(cols=trained["cols"])
        self.defaults = {name: trained[name] for name in RULES if name not in SHOWN}
        self._network = Network(arrays, inputs_of(Rules(cols=trained["cols"])))
        self._payments = Rules(reward=trained["reward"]).payments()
        self._gamma = F(spec["network"]["gamma"])

    def _make_decider(self, rules: Rules, exact: bool) -> tuple[Any, Any]:
        numbers = rules.piece_set.first, rules.rows, rules.placements == "slide", rules.overflow == "clear_first"
        scratch = np.empty(rules.cols, U), np.zeros(SCRATCH)
        return decide_tetris, (numbers, self._payments, self._gamma, self._network.kernel, scratch)


@kernel
def decide_2048(cells, memory, values, settings):
    """Each legal move is worth its reward and γ times its afterstate."""
    rows, cols, log2, gamma, network, after = settings
    sizes, parameters, here, there, x = network
    for action in range(4):
        for c in range(cells.size):
            after[c] = cells[c]
        gain = board.move_cells(after, rows, cols, action)
        values[action] = -np.inf
        if gain >= 0:
            write_2048(after, after.size + 1, x)
            reward = np.log2(1.0 + gain) if log2 else np.float64(gain)
            values[action] = reward + gamma * network_value(x, sizes, parameters, here, there)


class Agent2048(Player2048):
    """Plays the move of the highest r + γV(afterstate), on boards of the size it was trained on."""

    def __init__(self, spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        trained: Mapping[str, Any] = spec["env_kwargs"]
        super().__init__(trained["rows"], trained["cols"])
        self._network = Network(arrays, inputs_of(Game2048Env(trained["rows"], trained["cols"]).rules))
        self._numbers = trained["rows"], trained["cols"], trained["reward"] == "log2", F(spec["network"]["gamma"])

    def _make_decider(self, rules: Boards, exact: bool) -> tuple[Any, Any]:
        return decide_2048, (*self._numbers, self._network.kernel, np.empty(rules.rows * rules.cols, np.uint8))


def player(spec: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Player:
    """The player of a model: the arrays weight0, bias0, … of its layers, and γ as ``gamma`` in its spec's ``network``.

    The arrays are float32: weights [outputs, inputs] and biases [outputs] from the inputs (`inputs.py`) to one value,
    with rectifiers between. Values are in units of the environment's reward. Arrays that do not fit are a ValueError.
    """
    network = spec["network"]
    if network.get("inputs") != INPUTS:
        raise ValueError(f"the model's inputs are {network.get('inputs')!r}; this release has {INPUTS!r}")
    number("gamma", network.get("gamma"), 0, 1)
    return (Agent2048 if "2048" in spec["env_id"] else TetrisAgent)(spec, arrays)
