"""Kernels on single 64-bit words: bit counts by one machine instruction each, and the random stream."""

from typing import Any

import numpy as np
from numba import types  # pyright: ignore[reportPrivateImportUsage]
from numba.extending import intrinsic

from mergefall.kernels import kernel
from mergefall.typing import Words

U = np.uint64


def _of_word(instruction: str, *more: bool) -> Any:
    """LLVM's instruction of this name, which makes a number of a 64-bit word; `more`: its other arguments."""

    def number_of(typing_context, word):
        def codegen(context, builder, signature, args):
            others = [context.get_constant(types.boolean, value) for value in more]
            return getattr(builder, instruction)(args[0], *others)

        return types.int64(types.uint64), codegen

    return intrinsic(number_of)


popcount = _of_word("ctpop")  # the number of bits that are set
leading_zeros = _of_word("ctlz", False)  # zeros above the highest set bit, 64 for 0
trailing_zeros = _of_word("cttz", False)  # zeros below the lowest set bit, 64 for 0


def stream_from_seed(seed: int | None) -> np.uint64:
    """The random stream of a seed: a state of SplitMix64 that NumPy's SeedSequence mixes from the seed.

    `seed=None` takes fresh entropy from the operating system.
    """
    return np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]


@kernel
def next_bits(stream):
    """(the next state of the stream, 64 random bits), by SplitMix64 (Steele, Lea & Flood 2014)."""
    stream += U(0x9E3779B97F4A7C15)
    z = (stream ^ (stream >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return stream, z ^ (z >> U(31))


@kernel
def draw(state):
    """64 random bits from the stream that the first word of a state holds."""
    state[0], bits = next_bits(state[0])
    return bits


def split(stream: np.uint64, count: int) -> Words:
    """Streams of several games, uint64[count], from that of one, which is the first.

    >>> split(np.uint64(5), 2)[0]
    np.uint64(5)
    """
    streams = np.full(count, stream)
    streams[1:] = next_bits.py_func(streams[1:] ^ np.arange(1, count, dtype=U) * U(0x9E3779B97F4A7C15))[1]
    return streams


def stream_before(bits: Words) -> Words:
    """The states of the stream from which `next_bits` draws these bits: its inverse.

    >>> stream_before(next_bits.py_func(np.array([7], np.uint64))[1])
    array([7], dtype=uint64)
    """
    z = bits
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        z = z ^ z >> U(shift) ^ z >> U(2 * shift)  # undoes z ^= z >> shift; a third term would be 0
        z = z * U(pow(factor, -1, 1 << 64))
    return z - U(0x9E3779B97F4A7C15)


@kernel(inline="always")
def below(bits, count):
    """A number from 0 to count - 1, from the upper half of 64 random bits; uniform to within count / 2³²."""
    return np.int64(((bits >> U(32)) * U(count)) >> U(32))


@kernel
def nth_bit(bits, n):
    """The position of the n-th set bit, counted from 0 at the lowest."""
    position = 0
    while True:
        if bits >> position & 1:
            if n == 0:
                return position
            n -= 1
        position += 1


@kernel
def any_bit(state, bits):
    """The position of one of the set bits, each equally likely, by the stream that the first word of a state holds."""
    return nth_bit(bits, below(draw(state), popcount(U(bits))))
