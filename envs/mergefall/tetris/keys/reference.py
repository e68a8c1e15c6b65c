"""The rules of Tetris by keys in plain Python: slow, obvious. Everything fast is tested against this.

A board is a set of (row, column) cells, row 0 the floor. A falling piece is its name, its rotation, and where the lower
left corner of its bounding box is. Pieces and garbage holes come from the caller, who draws them.
Source: the Tetris Guideline (SRS, scoring, lock delay, T-spins); attack: Jstris.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mergefall.tetris.srs import box, kicks

TURNS = {"clockwise": 1, "half turn": 2, "counterclockwise": 3}
MOVES = {"left": (-1, 0), "right": (1, 0), "soft drop": (0, -1)}
SIDES = {"I": 4, "O": 2}  # of the bounding boxes; the others have 3
POINTS = {"": (0, 100, 300, 500, 800), "mini": (100, 200, 400), "full": (400, 800, 1200, 1600)}
ATTACKS = {"": (0, 0, 1, 2, 4), "mini": (0, 0, 4), "full": (0, 2, 4, 6)}
PERFECT_POINTS = (0, 800, 1200, 1800, 2000)
COMBO_ATTACKS = (0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5)


@dataclass(frozen=True)
class Falling:
    name: str
    rotation: int
    x: int
    y: int
    spin: str = ""  # how the last move turned it: "turned", "kicked" by the fifth test, or not at all
    held: bool = False  # whether it came by the key "hold"
    phase: int = 0  # 65536ths of a row that gravity still owes
    grounded: int = 0  # steps at rest
    resets: int = 0  # of the lock delay, by moves and turns after landing
    lowest: int = 0  # row that it has reached

    def cells(self) -> set[tuple[int, int]]:
        side = SIDES.get(self.name, 3)
        return {(self.y + side - 1 - row, self.x + column) for row, column in box(self.name, self.rotation)}


@dataclass
class Game:
    """A game; `draw` gives the next piece, `hole` the columns of the hole in the next row of garbage."""

    draw: Callable[[], str]
    hole: Callable[[], set[int]]
    queue: list[str]  # the current piece, then the following ones
    cols: int = 10
    rows: int = 20
    gravity: int = 0  # 65536ths of a row
    lock_delay: int = 30
    lock_resets: int = 15
    garbage: int = 0  # 65536ths of a row for each piece
    board: set[tuple[int, int]] = field(default_factory=set)
    hold: str = ""
    score: int = 0
    lines: int = 0
    level: int = 1
    attack: int = 0
    sent: int = 0
    row: int = 0  # locks in a row that cleared lines
    chain: bool = False
    owed: int = 0
    pending: int = 0
    over: bool = False

    def free(self, piece: Falling) -> bool:
        return all(0 <= c < self.cols and r >= 0 and (r, c) not in self.board for r, c in piece.cells())

    def appear(self, held: bool = False) -> None:
        piece = Falling(self.queue[0], 0, (self.cols - SIDES.get(self.queue[0], 3)) // 2, 0, held=held)
        self.falling = replace(piece, y=self.rows - min(row for row, _ in piece.cells()), lowest=self.rows)
        self.over |= not self.free(self.falling)

    def moved(self, key: str) -> Falling | None:
        """The falling piece after a key that moves it; None if it cannot move."""
        piece, turn = self.falling, TURNS.get(key, 0)
        tests = kicks(piece.name, piece.rotation, turn) if turn else (MOVES[key],)
        spins = ("turned", "turned", "turned", "turned", "kicked") if turn else ("",)
        after = replace(piece, rotation=(piece.rotation + turn) % 4)
        places = (replace(after, x=after.x + x, y=after.y + y, spin=s) for (x, y), s in zip(tests, spins, strict=False))
        return None if turn and piece.name == "O" else next(filter(self.free, places), None)  # O looks always the same

    def below(self) -> Falling | None:
        there = replace(self.falling, y=self.falling.y - 1, spin="")
        return there if self.free(there) else None

    def step(self, key: str, may_hold: bool = True) -> None:
        if self.over:
            return
        if key == "hard drop":
            while there := self.below():
                self.falling, self.score = there, self.score + 2
            return self.lock()
        if key == "hold" and may_hold and not self.falling.held:
            self.hold, self.queue[0] = self.queue[0], self.hold
            self.queue = self.queue if self.queue[0] else [*self.queue[1:], self.draw()]
            self.appear(held=True)
        elif key not in ("hold", "wait") and (there := self.moved(key)):
            self.score += key == "soft drop"
            if key != "soft drop" and (there.grounded or there.resets) and there.resets < self.lock_resets:
                there = replace(there, grounded=0, resets=there.resets + 1)
            self.falling = there
        if self.over or not self.gravity:
            return
        rows, phase = divmod(self.falling.phase + self.gravity, 1 << 16)
        for _ in range(rows):
            self.falling = self.below() or self.falling
        rests, piece, row = not self.below(), self.falling, min(row for row, _ in self.falling.cells())
        piece = replace(piece, lowest=row, grounded=0, resets=0) if row < piece.lowest else piece
        self.falling = replace(piece, phase=0 if rests else phase, grounded=piece.grounded + rests)
        if self.falling.grounded > self.lock_delay or (rests and 0 < self.lock_resets <= piece.resets):
            self.lock()

    def kind_of_spin(self) -> str:
        piece = self.falling
        corners = [(piece.y + 2, piece.x), (piece.y + 2, piece.x + 2), (piece.y, piece.x + 2), (piece.y, piece.x)]
        full = [r < 0 or not 0 <= c < self.cols or (r, c) in self.board for r, c in corners]  # clockwise
        if piece.name != "T" or not piece.spin or sum(full) < 3:
            return ""
        front = full[piece.rotation] and full[(piece.rotation + 1) % 4]  # beside the stub
        return "full" if front or piece.spin == "kicked" else "mini"

    def lock(self) -> None:
        spin, cells = self.kind_of_spin(), self.falling.cells()
        self.over |= all(r >= self.rows for r, _ in cells)
        self.board |= cells
        full = [r for r in {r for r, _ in cells} if all((r, c) in self.board for c in range(self.cols))]
        self.board = {(r - sum(f < r for f in full), c) for r, c in self.board if r not in full}
        lines = len(full)
        points, attack = POINTS[spin][lines], ATTACKS[spin][lines]
        if lines:
            chained, self.chain = self.chain, bool(spin) or lines == 4
            if chained and self.chain:
                points, attack = points * 3 // 2, attack + bool(attack)
            if not self.board:
                points, attack = points + (3200 if chained and lines == 4 else PERFECT_POINTS[lines]), 10
            points, attack = points + 50 * self.row, attack + COMBO_ATTACKS[min(self.row, 12)]
        self.row = self.row + 1 if lines else 0
        self.score, self.lines, self.attack = self.score + points * self.level, self.lines + lines, self.attack + attack
        cancelled = min(self.pending, attack)
        self.pending, self.sent = self.pending - cancelled, self.sent + attack - cancelled
        rises = 0 if lines else self.pending
        for _ in range(rises):
            holes = self.hole()
            self.board = {(r + 1, c) for r, c in self.board} | {(0, c) for c in range(self.cols) if c not in holes}
        self.over |= any(r >= self.rows + 4 for r, _ in self.board)
        more, self.owed = divmod(self.owed + self.garbage, 1 << 16)
        self.pending += more - rises
        self.queue = [*self.queue[1:], self.draw()]
        self.appear()
