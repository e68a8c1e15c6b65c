"""YAML as options and suites are written in, with one difference from PyYAML: 1e-4 and -.5 are numbers."""

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which by itself takes what YAML 1.2 calls floats, not YAML 1.1, for text."""


MOST_PARTS = 100_000  # of a text, its aliases written out

# YAML 1.2's floats (section 10.3.2), less those that are integers.
_FLOAT = re.compile(r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def load_yaml(text: str) -> Any:
    """The plain values that a YAML text holds; raises ValueError for what is no YAML.

    >>> load_yaml("[1e-4, 1.5E3, -.5, 3, 1e, v1e4, '1e4']")
    [0.0001, 1500.0, -0.5, 3, '1e', 'v1e4', '1e4']
    """
    try:
        value = yaml.load(text, _Loader)
        if (parts := _parts(value, {})) > MOST_PARTS:
            raise ValueError(f"its aliases (*name) make {parts:,} parts; expected at most {MOST_PARTS:,}")
        return value
    except (ValueError, RecursionError, yaml.YAMLError) as error:  # ValueError: a date of the month 13
        raise ValueError(f"this is no YAML: {' '.join(str(error).split())}") from error


def _parts(value: Any, known: dict[int, int]) -> int:
    """The number of values in nested data; `known`: by the values' ids, for aliases share them."""
    if id(value) not in known:
        known[id(value)] = 1
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        known[id(value)] += sum(_parts(part, known) for part in parts)
    return known[id(value)]
