"""n-tuple networks in plain Python: a dictionary keyed by pattern and the ranks on its cells."""


def images(board):
    """The board under all symmetries of its rectangle: eight of a square, four of others."""
    turned = [board, tuple(zip(*board, strict=True))] if len(board) == len(board[0]) else [board]
    mirrored = [one for b in turned for one in (b, tuple(row[::-1] for row in b))]
    return [one for b in mirrored for one in (b, b[::-1])]


class ReferenceNetwork:
    """A network of patterns in text; `entries` holds the entries that are not `untouched`."""

    def __init__(self, patterns, untouched=0.0):
        self.patterns = [[int(cell, 16) for cell in word] for word in patterns.split()]
        self.untouched = untouched
        self.entries = {}

    def keys(self, board):
        """The entries whose sum is the board's value, one for each image and pattern."""
        for image in images(board):
            cells = [rank for row in image for rank in row]
            for i, pattern in enumerate(self.patterns):
                yield i, tuple(min(cells[cell], self.radix(cells) - 1) for cell in pattern)

    @staticmethod
    def radix(cells):
        """The number of ranks that can arise on so many cells, at most the 16 of a packed board."""
        return min(16, len(cells) + 2)

    def value(self, board):
        return sum(self.entries.get(key, self.untouched) for key in self.keys(board))

    def adjust(self, board, step):
        """Add to each entry in turn; an entry that occurs twice gets it twice."""
        for key in list(self.keys(board)):
            self.entries[key] = self.entries.get(key, self.untouched) + step

    def fill(self, weights, cells):
        """Take over a network's weights for boards of so many cells; ranks are the digits of an entry's index."""
        radix = self.radix(range(cells))
        sizes = [radix ** len(pattern) for pattern in self.patterns]
        for place in weights.nonzero()[0].tolist():
            rest, pattern = place, 0
            while rest >= sizes[pattern]:
                rest -= sizes[pattern]
                pattern += 1
            count = len(self.patterns[pattern])
            ranks = tuple(rest // radix ** (count - 1 - i) % radix for i in range(count))
            self.entries[pattern, ranks] = float(weights[place])
