"""Players side by side on the same seeds: suites, tables, plots."""

from mergefall_training.compare.comparison import compare
from mergefall_training.compare.suite import load_suite

__all__ = ["compare", "load_suite"]
