"""The heuristics of a game by name: those of `mergefall`, and a user's own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from mergefall.checks import choice, known
from mergefall.imports import imported, is_import, name_of, strings_in
from mergefall.typing import Options
from mergefall.weighted import WeightedSum

W = TypeVar("W", bound=WeightedSum)


class Library(Generic[W]):
    """The heuristics of one game.

    - `game`: the game's name, as in `2048/expectimax`.
    - `base`: the class of its heuristics.
    - `known`: name -> heuristic. What is added to it, by `register` or directly, is known by name.
    - `of_function`: makes a heuristic of (function, name).
    """

    def __init__(self, game: str, base: type[W], known: dict[str, W], of_function: Callable[[Any, str], W]) -> None:
        self.game, self.base, self.known, self._of_function = game, base, known, of_function
        self._own = frozenset(known)

    def read(self, spec: str | Options | W | Callable[..., Any]) -> W:
        """A heuristic from its name, from a mapping of `name` and weights, or from a function of a board.

        Args:
            spec: one of

                - a name in `HEURISTICS`; default weights: the published ones.
                - ``"module:name"``, a function or a heuristic in a module that can be imported.
                - a mapping of such a ``name`` and the weights that differ; ``weights`` names one of the heuristic's
                  `vectors`, if it has some. In Tetris a function has the weight `lines`, what each row counts that a
                  placement clears; default: 0.
                - a function: it receives ranks int64[rows, cols] (log2 of the tiles, 0 for empty cells), in Tetris the
                  board after clearing, 0 and 1, row 0 on top. It returns a finite number. Searches call a Python
                  function for each leaf, which is slow, and run a Numba function (`numba.njit`) at compiled speed.
                - a heuristic, which is returned.

        Raises ValueError for anything else, and for an unknown name or weight.

        >>> from mergefall.game2048 import heuristic
        >>> heuristic({"name": "nneonneo", "sum": -12}).to_json()["sum"]
        -12
        >>> heuristic(lambda board: (board == 0).sum())([[1, 0], [0, 0]])
        3.0
        >>> heuristic("snake")
        Traceback (most recent call last):
        ValueError: no heuristic 'snake'; there are tile-order, monotone-smooth, prairie-fire, nneonneo, and functions as 'module:name'
        """  # noqa: E501
        if isinstance(spec, Mapping):
            options = dict(spec)
            chosen = self._named(options.pop("name", None))
            if chosen.vectors and "weights" in options:
                weights = choice(f"weights of {chosen.name}", options.pop("weights"), chosen.vectors)
                options = {**chosen.vectors[weights], **options}
            known(chosen.name, options, chosen.option_names)
            return replace(chosen, **options) if options else chosen
        if isinstance(spec, str):
            return self._named(spec)
        return self._made(spec, name_of(spec) if callable(spec) else "")

    def register(self, name: str, heuristic: Any) -> None:
        """Make a heuristic or a function of a board known by a name, wherever heuristics have names.

        Worker processes of `evaluate` and `compare` get what was registered. The same function or class may be
        registered again after a change, as a notebook does.

        Args:
            name: without a colon; for a heuristic its class's `name`.
            heuristic: a function of a board, see `read`; a heuristic; or a class of them.

        Raises ValueError if the name is taken.

        >>> from mergefall.game2048 import HEURISTICS, register_heuristic
        >>> register_heuristic("empty-cells", lambda board: (board == 0).sum())
        >>> HEURISTICS.pop("empty-cells")([[1, 0], [0, 0]])
        3.0
        """
        function = isinstance(heuristic, self.base) and hasattr(heuristic, "function")
        made: Any = replace(cast(Any, heuristic), label=name) if function else self._made(heuristic, name)
        if made.name != name:
            raise ValueError(f"name is {name!r}; expected {made.name!r}, the name of the heuristic's class")
        if is_import(name) or not name or not isinstance(name, str):
            raise ValueError(f"name is {name!r}; expected text without a colon")
        if name in self._own or (name in self.known and name_of(origin(self.known[name])) != name_of(origin(made))):
            raise ValueError(f"there is a heuristic {name!r} already")
        self.known[name] = made

    def added(self) -> dict[str, W]:
        """The heuristics that were added to those of `mergefall`."""
        return {name: heuristic for name, heuristic in self.known.items() if name not in self._own}

    def adopt(self, added: Mapping[str, W]) -> None:
        """Take over what `added` returned in another process."""
        for name, heuristic in added.items():
            self.known.setdefault(name, heuristic)

    def _named(self, name: Any) -> W:
        if is_import(name):
            return self._made(imported(name), name)
        if not isinstance(name, str) or name not in self.known:
            there = f"there are {', '.join(self.known)}, and functions as 'module:name'"
            raise ValueError(f"no {self.base.kind} {name!r}; {there}")
        return self._made(self.known[name], name)

    def _made(self, value: Any, name: str) -> W:
        if isinstance(value, type) and issubclass(value, self.base):
            value = value()
        if isinstance(value, self.base):
            return value
        if callable(value) and not isinstance(value, type | WeightedSum):
            return self._of_function(value, name)
        expected = "a name, a mapping of its name and weights, a function of a board, or a heuristic of this game"
        raise ValueError(f"{self.base.kind} {value!r}; expected {expected}")


def origin(heuristic: Any) -> Any:
    """The function or class that a heuristic is made of."""
    return getattr(heuristic, "function", type(heuristic))


def holds_function(value: Any) -> bool:
    """Whether an option holds a function, or a function's heuristic, which JSON types can only name."""
    if isinstance(value, Mapping | list | tuple):
        return any(map(holds_function, value.values() if isinstance(value, Mapping) else value))
    return hasattr(value, "function") if isinstance(value, WeightedSum) else callable(value)


def to_json(value: Any) -> Any:
    """An option as JSON types: a heuristic or a function becomes a mapping of its name and weights.

    >>> to_json({"heuristic": origin})
    {'heuristic': {'name': 'mergefall.library:origin'}}
    """
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {name: to_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(part) for part in value]
    return {"name": name_of(value)} if callable(value) else value


def recorded(value: Any) -> Any:
    """An option as an environment's spec records it: JSON types, unless it holds a function that cannot be imported.

    >>> recorded(origin), callable(recorded(lambda board: 0.0))
    ({'name': 'mergefall.library:origin'}, True)
    """
    plain = to_json(value)
    return value if any("<" in text for text in strings_in(plain)) else plain
