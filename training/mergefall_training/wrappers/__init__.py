"""Environments with a searcher in them: `adversary`, and `wrapped` for a run's training environments."""

from collections.abc import Callable
from typing import Any

from mergefall.typing import Environment
from mergefall.wrappers import replace_illegal

from mergefall_training.wrappers.adversary import adversary

__all__ = ["adversary", "wrapped"]

WRAPPERS: dict[str, Callable[..., Any]] = {"adversary": adversary, "replace_illegal": replace_illegal}


def wrapped(env: Environment, specs: Any) -> Any:
    """A single or batched environment in the wrappers that `specs` lists, the innermost first; None: no wrapper.

    It is the hyper-parameter ``env_wrapper`` (rl_zoo3's key). Evaluations during training use the plain environment.
    In YAML::

        env_wrapper:
          - adversary: {player: 2048/minimax, rate: 0.1}
          - replace_illegal: {}

    Raises ValueError for an unknown wrapper or bad arguments.

    >>> import gymnasium as gym, mergefall
    >>> envs = gym.make_vec("mergefall/Tetris-v0", num_envs=2, preview=0)
    >>> wrapped(envs, [{"adversary": {"player": "tetris/bcts"}}]).num_envs
    2
    """
    try:
        for spec in specs or []:
            ((name, kwargs),) = spec.items()
            env = WRAPPERS[name](env, **kwargs)
    except (AttributeError, LookupError, TypeError) as error:
        expected = f"{{NAME: ARGUMENTS}}, with one of {', '.join(WRAPPERS)}"
        raise ValueError(f"env_wrapper is {specs!r}; expected a list of {expected} ({error})") from error
    return env
