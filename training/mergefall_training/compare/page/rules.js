"use strict";

// The rules of both games, as the environments have them: a game from the same random stream is the same game.
// A game has `score`, `steps`, `over`, `legal()` (an array of booleans by action), `step(action)` (whether it was
// legal), and `copy()`. tests/browser holds this file against Python.

/* SplitMix64, the random stream of mergefall/words.py. A draw is the upper and the lower half of 64 bits. */
class Stream {
  constructor(state) {
    this.state = BigInt(state);
  }

  draw() {
    this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
    let z = this.state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    z ^= z >> 31n;
    return [Number(z >> 32n), Number(z & 0xffffffffn)];
  }
}

/* A number from 0 to count - 1 from the upper half of a draw. */
const below = (upper, count) => Math.floor((upper * count) / 2 ** 32);

const UP = 0, RIGHT = 1, DOWN = 2, LEFT = 3;

class Game2048 {
  /* rules: {rows, cols, goal, four}: `goal` is the rank that ends the game, 0 for none, and a draw whose lower half is
     below `four` makes the new tile a 4; stream: the state of a stream, as text. */
  constructor(rules, stream) {
    Object.assign(this, rules);
    this.stream = new Stream(stream);
    this.cells = new Uint8Array(this.rows * this.cols); // ranks, row by row
    Object.assign(this, { score: 0, steps: 0, fresh: -1 });
    this.newTile();
    this.newTile();
  }

  copy() {
    const twin = Object.assign(Object.create(Game2048.prototype), this);
    twin.stream = new Stream(this.stream.state);
    twin.cells = this.cells.slice();
    return twin;
  }

  newTile() {
    const empty = [...this.cells.keys()].filter((i) => !this.cells[i]);
    const [upper, lower] = this.stream.draw();
    this.fresh = empty[below(upper, empty.length)];
    this.cells[this.fresh] = lower < this.four ? 2 : 1;
  }

  /* {cells, score} after an action and before the new tile; score -1 if nothing moves. */
  slid(action) {
    const across = action === LEFT || action === RIGHT;
    const [lines, length] = across ? [this.rows, this.cols] : [this.cols, this.rows];
    let stride = across ? 1 : this.cols;
    const between = across ? this.cols : 1;
    const backwards = action === RIGHT || action === DOWN;
    const cells = new Uint8Array(this.cells.length);
    let score = 0, moved = false;
    for (let line = 0; line < lines; line++) {
      const start = line * between + (backwards ? (length - 1) * stride : 0);
      const step = backwards ? -stride : stride;
      let target = start, waiting = 0;
      for (let i = 0; i < length; i++) {
        const from = start + i * step, rank = this.cells[from];
        if (!rank) continue;
        if (rank === waiting) {
          cells[target - step] = rank + 1;
          score += 2 ** (rank + 1);
          waiting = 0;
          moved = true;
        } else {
          cells[target] = rank;
          moved ||= target !== from;
          waiting = rank;
          target += step;
        }
      }
    }
    return { cells, score: moved ? score : -1 };
  }

  legal() {
    if (this.goal && Math.max(...this.cells) >= this.goal) return [false, false, false, false];
    return [UP, RIGHT, DOWN, LEFT].map((action) => this.slid(action).score >= 0);
  }

  get over() {
    return !this.legal().includes(true);
  }

  step(action) {
    const { cells, score } = this.slid(action);
    this.steps++;
    if (score < 0) return false;
    this.cells = cells;
    this.score += score;
    this.newTile();
    return true;
  }

  get figures() {
    const top = Math.max(...this.cells);
    return { score: this.score, "largest tile": top ? 2 ** top : 0 };
  }
}

class Tetris {
  /* rules: {cols, rows, preview, slides, turns, clearFirst, randomizer, copies, lineScores, storage, first, drawn,
     pieces}. `pieces` holds each id's name and rotations as lists of [row, column]; `drawn` the ids that appear; `first`
     the number of id 0; `slides` the columns that each slide moves by; `turns` the rotations that actions have room for;
     `copies` the most of a piece in a hidden multiset. */
  constructor(rules, stream) {
    this.rules = rules;
    this.stream = new Stream(stream);
    this.height = rules.rows + rules.storage;
    this.cells = new Uint8Array(this.height * rules.cols); // 0 empty, else 1 + a piece's number; storage rows on top
    Object.assign(this, { score: 0, lines: 0, pieces: 0, steps: 0, over: false, bag: [], last: null });
    if (rules.randomizer === "hidden") {
      while (!this.bag.some((count) => count)) {
        this.bag = Array(7).fill(0);
        for (const id of [...rules.drawn].sort((a, b) => a - b)) this.bag[id] = below(this.stream.draw()[0], rules.copies + 1);
      }
    }
    this.queue = Array.from({ length: 1 + rules.preview }, () => this.newPiece());
  }

  copy() {
    const twin = Object.assign(Object.create(Tetris.prototype), this);
    twin.stream = new Stream(this.stream.state);
    twin.cells = this.cells.slice();
    twin.bag = [...this.bag];
    twin.queue = [...this.queue];
    return twin;
  }

  newPiece() {
    const { randomizer, drawn } = this.rules, upper = this.stream.draw()[0];
    if (randomizer === "hidden") {
      let left = below(upper, this.bag.reduce((a, b) => a + b)), id = 0;
      while (left >= this.bag[id]) left -= this.bag[id++];
      return id;
    }
    if (randomizer === "bag7") {
      if (!this.bag.length) this.bag = [...drawn].sort((a, b) => a - b);
      return this.bag.splice(below(upper, this.bag.length), 1)[0];
    }
    return drawn[below(upper, drawn.length)];
  }

  get actionCount() {
    return this.rules.slides.length * this.rules.turns * this.rules.cols;
  }

  free(cells) {
    const { cols } = this.rules;
    return cells.every(
      ([r, c]) => c >= 0 && c < cols && r < this.height && (r < 0 || !this.cells[r * cols + c]),
    );
  }

  fallen(cells) {
    for (;;) {
      const lower = cells.map(([r, c]) => [r + 1, c]);
      if (!this.free(lower)) return cells;
      cells = lower;
    }
  }

  /* The cells in which an action's piece comes to rest; null if there is no such placement. */
  resting(action) {
    const { cols, slides, turns } = this.rules;
    const step = slides[Math.floor(action / (turns * cols))];
    const rotation = Math.floor(action / cols) % turns, column = action % cols;
    const shape = this.rules.pieces[this.queue[0]].rotations[rotation];
    if (!shape) return null;
    let cells = shape.map(([r, c]) => [r - 9, c + column]);
    if (!this.free(cells)) return null;
    cells = this.fallen(cells);
    if (step) {
      cells = cells.map(([r, c]) => [r, c + step]);
      return this.free(cells) ? this.fallen(cells) : null;
    }
    return cells;
  }

  /* The cells of each legal action, null for the others: an action that repeats an earlier one's cells is illegal. */
  placements() {
    const seen = new Set();
    return Array.from({ length: this.actionCount }, (_, action) => {
      const cells = this.over ? null : this.resting(action);
      const name = String(cells);
      if (!cells || seen.has(name)) return null;
      seen.add(name);
      return cells;
    });
  }

  legal() {
    return this.placements().map((cells) => cells !== null);
  }

  step(action) {
    const { cols, storage, clearFirst } = this.rules;
    this.steps++;
    if (this.over) return false;
    const cells = this.rules.slides.length > 1 ? this.placements()[action] : this.resting(action);
    if (!cells) return false;
    this.last = cells;
    for (const [r, c] of cells) this.cells[r * cols + c] = 1 + this.rules.first + this.queue[0];
    let lines = 0;
    if (!clearFirst && Math.min(...cells.map(([r]) => r)) < storage) {
      this.over = true;
    } else {
      lines = this.clear();
      this.over = this.cells.subarray(0, storage * cols).some((cell) => cell);
    }
    this.pieces++;
    this.lines += lines;
    this.score += this.rules.lineScores[lines];
    this.queue.shift();
    this.queue.push(this.newPiece());
    return true;
  }

  clear() {
    const { cols } = this.rules, kept = [];
    for (let r = 0; r < this.height; r++) {
      const row = this.cells.subarray(r * cols, (r + 1) * cols);
      if (row.includes(0)) kept.push(row);
    }
    const lines = this.height - kept.length;
    if (lines) {
      const cells = new Uint8Array(this.cells.length);
      kept.forEach((row, i) => cells.set(row, (lines + i) * cols));
      this.cells = cells;
      this.last = null;
    }
    return lines;
  }

  get figures() {
    return { lines: this.lines, pieces: this.pieces, score: this.score };
  }
}

const GAMES = { 2048: Game2048, tetris: Tetris };
