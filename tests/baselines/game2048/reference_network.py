"""n-tuple networks in plain Python: a dictionary for each stage and pattern, keyed by the ranks on its cells."""

from collections.abc import Collection, Iterator

Ranks = tuple[tuple[int, ...], ...]
Key = tuple[int, int, tuple[int, ...]]  # stage, pattern, ranks


def images(board: Ranks) -> list[Ranks]:
    """The board under all symmetries of its rectangle: eight of a square, four of others."""
    turned = [board, tuple(zip(*board, strict=True))] if len(board) == len(board[0]) else [board]
    mirrored = [one for b in turned for one in (b, tuple(row[::-1] for row in b))]
    return [one for b in mirrored for one in (b, b[::-1])]


class ReferenceNetwork:
    """Patterns as text, stages as ranks; `entries` holds what is not `untouched` (in stages after the first: 0)."""

    def __init__(self, patterns: str, stages: tuple[int, ...] = (), untouched: float = 0.0) -> None:
        self.patterns = [[int(cell, 16) for cell in word] for word in patterns.split()]
        self.stages, self.untouched = stages, untouched
        self.entries: dict[Key, float] = {}

    def keys(self, board: Ranks) -> Iterator[Key]:
        """The entries whose sum is the board's value, one for each image and pattern."""
        stage = sum(max(map(max, board)) >= rank for rank in self.stages)
        for image in images(board):
            cells = [rank for row in image for rank in row]
            for i, pattern in enumerate(self.patterns):
                yield stage, i, tuple(min(cells[cell], self.radix(cells) - 1) for cell in pattern)

    @staticmethod
    def radix(cells: Collection[object]) -> int:
        """The ranks that can arise on so many cells; a packed board has 16."""
        return min(16, len(cells) + 2)

    def entry(self, key: Key) -> float:
        """An entry, or what it stands for while it is untouched: that of the stage before."""
        stage, pattern, ranks = key
        if stage == 0:
            return self.entries.get(key, self.untouched)
        return self.entries.get(key) or self.entry((stage - 1, pattern, ranks))

    def value(self, board: Ranks) -> float:
        return sum(self.entry(key) for key in self.keys(board))

    def adjust(self, board: Ranks, step: float) -> None:
        """Add to each entry in turn; one that is met twice takes it twice."""
        for key in list(self.keys(board)):
            self.entries[key] = self.entry(key) + step

    def fill(self, weights, cells: int) -> None:
        """Take over a network's weights for boards of so many cells: ranks are the digits of an entry's number."""
        radix = self.radix(range(cells))
        sizes = [radix ** len(pattern) for pattern in self.patterns]
        for place in weights.nonzero()[0].tolist():
            stage, rest = divmod(place, sum(sizes))
            pattern = 0
            while rest >= sizes[pattern]:
                rest -= sizes[pattern]
                pattern += 1
            count = len(self.patterns[pattern])
            ranks = tuple(rest // radix ** (count - 1 - i) % radix for i in range(count))
            self.entries[stage, pattern, ranks] = float(weights[place])
