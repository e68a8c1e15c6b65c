"""Environments with a searcher in them, and curricula: `regret`, `adversary`, `with_starts`.

Each function takes a single environment or a batched one and returns it wrapped.
"""

from mergefall_training.wrappers.adversary import adversary
from mergefall_training.wrappers.regret import regret
from mergefall_training.wrappers.starts import load_starts, with_starts
from mergefall_training.wrappers.wrapping import wrapped

__all__ = ["adversary", "load_starts", "regret", "with_starts", "wrapped"]
