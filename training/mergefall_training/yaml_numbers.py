"""YAML as options and suites are written in, with one difference from PyYAML: 1e-4 and -.5 are numbers."""

from __future__ import annotations

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader, which by itself takes what YAML 1.2 calls floats, not YAML 1.1, for text."""


# YAML 1.2's floats (section 10.3.2), less those that are integers.
_FLOAT = re.compile(r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)$")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def load_yaml(text: str) -> Any:
    """The plain values that a YAML text holds; what is no YAML is a `yaml.YAMLError`.

    >>> load_yaml("[1e-4, 1.5E3, -.5, 3, 1e, v1e4, '1e4']")
    [0.0001, 1500.0, -0.5, 3, '1e', 'v1e4', '1e4']
    """
    try:
        return yaml.load(text, _Loader)
    except ValueError as error:  # a date of the month 13
        raise yaml.YAMLError(str(error)) from error
