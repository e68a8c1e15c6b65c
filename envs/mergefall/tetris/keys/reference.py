"""The rules of Tetris by keys in plain Python: slow, obvious. Everything fast is tested against this.

A board is a set of (row, column) cells, row 0 the floor. A falling piece is its name, its rotation, and where the lower
left corner of its bounding box is. Pieces and garbage holes come from the caller, who draws them.

Source: the Tetris Guideline (SRS, scoring, lock delay, T-spins); attack: Jstris.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from mergefall.tetris.srs import box, kicks

KEYS = ("wait", "left", "right", "clockwise", "counterclockwise", "soft drop", "hard drop", "hold", "half turn")
TURNS = {"clockwise": 1, "half turn": 2, "counterclockwise": 3}
SIDES = {"I": 4, "O": 2}  # of the bounding boxes; the others have 3
POINTS = {"": (0, 100, 300, 500, 800), "mini": (100, 200, 400), "full": (400, 800, 1200, 1600)}
ATTACKS = {"": (0, 0, 1, 2, 4), "mini": (0, 0, 4), "full": (0, 2, 4, 6)}
PERFECT_POINTS = (0, 800, 1200, 1800, 2000)
COMBO_ATTACKS = (0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5)

Cells = set[tuple[int, int]]


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
    resets: int = 0  # of the lock delay

    def cells(self) -> Cells:
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
    board: Cells = field(default_factory=set)
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
        name = self.queue[0]
        width = {"I": 4, "O": 2}.get(name, 3)
        y = self.rows - {"I": 2, "O": 0}.get(name, 1)
        self.falling = Falling(name, 0, (self.cols - width) // 2, y, held=held)
        self.over |= not self.free(self.falling)

    def moved(self, key: str) -> Falling | None:
        """The falling piece after a key that moves it; None if it cannot move."""
        piece, spin = self.falling, ""
        steps = {"left": (-1, 0), "right": (1, 0), "soft drop": (0, -1)}
        tests = (steps[key],) if key in steps else kicks(piece.name, piece.rotation, TURNS[key])
        if key in TURNS and piece.name == "O":
            return None
        for test, (dx, dy) in enumerate(tests):
            rotation = (piece.rotation + TURNS.get(key, 0)) % 4
            if key in TURNS:
                spin = "kicked" if test == 4 else "turned"
            there = replace(piece, rotation=rotation, x=piece.x + dx, y=piece.y + dy, spin=spin)
            if self.free(there):
                return there
        return None

    def below(self) -> Falling | None:
        there = replace(self.falling, y=self.falling.y - 1, spin="", grounded=0)
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
            if not self.queue[0]:
                self.queue = [*self.queue[1:], self.draw()]
            self.appear(held=True)
        elif key not in ("hold", "wait") and (there := self.moved(key)):
            if key == "soft drop":
                there, self.score = replace(there, grounded=0), self.score + 1
            elif there.grounded and there.resets < self.lock_resets:
                there = replace(there, grounded=0, resets=there.resets + 1)
            self.falling = there
        if self.gravity and not self.over:
            self.tick()

    def tick(self) -> None:
        rows, phase = divmod(self.falling.phase + self.gravity, 1 << 16)
        for _ in range(rows):
            self.falling = self.below() or self.falling
        self.falling = replace(self.falling, phase=phase)
        if not self.below():
            self.falling = replace(self.falling, phase=0, grounded=self.falling.grounded + 1)
            if self.falling.grounded > self.lock_delay:
                self.lock()

    def kind_of_spin(self) -> str:
        piece = self.falling
        corners = [(piece.y + 2, piece.x), (piece.y + 2, piece.x + 2), (piece.y, piece.x + 2), (piece.y, piece.x)]
        full = [r < 0 or not 0 <= c < self.cols or (r, c) in self.board for r, c in corners]  # clockwise
        if piece.name != "T" or not piece.spin or sum(full) < 3:
            return ""
        front = full[piece.rotation] and full[(piece.rotation + 1) % 4]
        return "full" if front or piece.spin == "kicked" else "mini"

    def lock(self) -> None:
        spin, cells = self.kind_of_spin(), self.falling.cells()
        self.over |= all(r >= self.rows for r, _ in cells)
        self.board |= cells
        height = 1 + max(r for r, _ in self.board)
        full = [r for r in range(height) if all((r, c) in self.board for c in range(self.cols))]
        self.board = {(r - sum(f < r for f in full), c) for r, c in self.board if r not in full}
        lines = len(full)
        points, attack = POINTS[spin][lines], ATTACKS[spin][lines]
        if lines:
            hard = bool(spin) or lines == 4
            if hard and self.chain:
                points, attack = points * 3 // 2, attack + bool(attack)
            if not self.board:
                points += 3200 if self.chain and lines == 4 else PERFECT_POINTS[lines]
                attack = 10
            points += 50 * self.row
            attack += COMBO_ATTACKS[min(self.row, 12)]
            self.chain = hard
        self.row = self.row + 1 if lines else 0
        self.score, self.lines, self.attack = self.score + points * self.level, self.lines + lines, self.attack + attack
        cancelled = min(self.pending, attack)
        self.pending, self.sent = self.pending - cancelled, self.sent + attack - cancelled
        if not lines:
            for _ in range(self.pending):
                holes = self.hole()
                self.board = {(r + 1, c) for r, c in self.board} | {(0, c) for c in range(self.cols) if c not in holes}
            self.over |= any(r >= self.rows + 4 for r, _ in self.board)
            self.pending = 0
        self.owed += self.garbage
        self.pending, self.owed = self.pending + self.owed // (1 << 16), self.owed % (1 << 16)
        self.queue = [*self.queue[1:], self.draw()]
        self.appear()
