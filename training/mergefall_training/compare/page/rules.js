"use strict";

// The rules of the games, as the environments have them: a game from the same random stream is the same game.
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

// The keys of Tetris by keys; those that move a piece also lead to the reachable placements.
const KEY = { WAIT: 0, LEFT: 1, RIGHT: 2, CLOCKWISE: 3, COUNTERCLOCKWISE: 4, SOFT_DROP: 5, HARD_DROP: 6, HOLD: 7, HALF_TURN: 8 };
const SHIFTS = { [KEY.LEFT]: [-1, 0], [KEY.RIGHT]: [1, 0], [KEY.SOFT_DROP]: [0, -1] }; // columns and rows
const QUARTERS = { [KEY.CLOCKWISE]: 1, [KEY.COUNTERCLOCKWISE]: 3, [KEY.HALF_TURN]: 2 }; // quarter turns clockwise

/* What both ways to play Tetris share: the board, the queue, and the places of pieces. */
class Field {
  /* rules: {cols, rows, preview, hold, randomizer, copies, storage, first, drawn, pieces, kicks}. `pieces` holds each id's
     name and rotations as sorted lists of [row, column]; `drawn` the ids that appear; `first` the number of id 0;
     `storage` the rows above the field; `copies` the most of a piece in a hidden multiset; `kicks` by piece, rotation,
     quarter turns and test how far a turn moves a place, if pieces turn while they fall. A place is a rotation, the
     piece's leftmost column, and y, the rows below its lowest cell. */
  constructor(rules, stream) {
    this.rules = rules;
    this.stream = new Stream(stream);
    this.height = rules.rows + rules.storage;
    this.cells = new Uint8Array(this.height * rules.cols); // 0 empty, else 1 + a piece's number; storage rows on top
    Object.assign(this, { score: 0, lines: 0, pieces: 0, steps: 0, over: false, bag: [], held: null, last: null });
    if (rules.randomizer === "hidden") {
      while (!this.bag.some((count) => count)) {
        this.bag = Array(7).fill(0);
        for (const id of [...rules.drawn].sort((a, b) => a - b)) this.bag[id] = below(this.stream.draw()[0], rules.copies + 1);
      }
    }
    this.queue = Array.from({ length: 1 + rules.preview }, () => this.newPiece());
  }

  copy() {
    const twin = Object.assign(Object.create(Object.getPrototypeOf(this)), this);
    twin.stream = new Stream(this.stream.state);
    twin.cells = this.cells.slice();
    twin.bag = [...this.bag];
    twin.queue = [...this.queue];
    return twin;
  }

  newPiece(upper = this.stream.draw()[0]) {
    const { randomizer, drawn } = this.rules;
    if (randomizer === "hidden") {
      let left = below(upper, this.bag.reduce((a, b) => a + b)), id = 0;
      while (left >= this.bag[id]) left -= this.bag[id++];
      return id;
    }
    if (randomizer === "bag7") {
      if (!this.bag.length) this.bag = [...drawn].sort((a, b) => a - b);
      return this.bag.splice(below(upper, this.bag.length), 1)[0];
    }
    if (randomizer !== "uniform") throw new Error(`unknown randomizer ${randomizer}`);
    return drawn[below(upper, drawn.length)];
  }

  nextPiece(upper) {
    this.queue.shift();
    this.queue.push(this.newPiece(upper));
  }

  /* Hold the current piece; the held one, or else the next one of the queue, takes its place. */
  exchange(upper) {
    const { held } = this;
    this.held = this.queue[0];
    if (held === null) this.nextPiece(upper);
    else this.queue[0] = held;
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

  /* The cells of a piece at a place. */
  cellsAt({ rotation, column, y }, id = this.queue[0]) {
    const { rotations } = this.rules.pieces[id], shape = rotations[rotation % rotations.length];
    const top = this.height - 1 - y - shape.at(-1)[0];
    return shape.map(([r, c]) => [top + r, column + c]);
  }

  /* Where a piece appears. */
  spawn(id = this.queue[0]) {
    const width = 1 + Math.max(...this.rules.pieces[id].rotations[0].map(([, c]) => c));
    return { rotation: 0, column: (this.rules.cols - width) >> 1, y: this.rules.rows };
  }

  /* The place to which a key moves a piece, with the test of a turn that found room; null if it cannot move. */
  moved(key, { rotation, column, y }, id = this.queue[0]) {
    const turn = QUARTERS[key] ?? 0;
    if (turn && this.rules.pieces[id].rotations.length === 1) return null;
    for (const [test, [right, up]] of (turn ? this.rules.kicks[id][rotation][turn] : [SHIFTS[key]]).entries()) {
      const place = { rotation: (rotation + turn) % 4, column: column + right, y: y + up };
      if (this.free(this.cellsAt(place, id))) return { ...place, test };
    }
    return null;
  }

  /* Lock the current piece in cells; those above the storage rows are lost, and the game is then over. */
  fill(cells) {
    const { cols, first } = this.rules;
    this.last = cells;
    for (const [r, c] of cells) if (r >= 0) this.cells[r * cols + c] = 1 + first + this.queue[0];
    this.pieces++;
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
    this.lines += lines;
    return lines;
  }

  get figures() {
    return { lines: this.lines, pieces: this.pieces, score: this.score };
  }
}

/* Tetris by placements. With hold there are twice as many actions: the second half places the piece of `choices[1]`. */
class Tetris extends Field {
  /* rules: those of a field, and {slides, turns, reach, overflow, lineScores}: the columns that each slide moves by,
     the rotations that actions have room for, and the rows that those of reachable placements name, else 0. */

  get actionCount() {
    const { slides, turns, cols, reach } = this.rules;
    return slides.length * turns * cols * (reach || 1);
  }

  /* The pieces that can be placed: the current one, and with hold the held one, or else the first of the queue. */
  get choices() {
    return this.rules.hold ? [this.queue[0], this.held ?? this.queue[1]] : [this.queue[0]];
  }

  /* The cells of a piece that is dropped from above everything; null if it does not fit there. */
  dropped(id, rotation, column) {
    const cells = this.rules.pieces[id].rotations[rotation]?.map(([r, c]) => [r - 9, c + column]);
    return cells && this.free(cells) ? this.fallen(cells) : null;
  }

  /* The action that drops a piece, the first of `choices` or the second; -1 if there is none. */
  dropping(rotation, column, choice = 0) {
    const { cols, reach } = this.rules, cells = this.dropped(this.choices[choice], rotation, column);
    if (!cells) return -1;
    const drop = rotation * cols + column, y = this.height - 1 - cells.at(-1)[0];
    return choice * this.actionCount + (reach ? drop * reach + y : drop);
  }

  /* The cells in which an action's piece comes to rest; null if there is no such placement. */
  resting(action) {
    const { cols, slides, turns, reach } = this.rules, id = this.choices[Math.floor(action / this.actionCount)];
    if (id === undefined) return null;
    const own = action % this.actionCount, drop = reach ? Math.floor(own / reach) : own;
    const rotation = Math.floor(drop / cols) % turns, column = drop % cols;
    const cells = this.dropped(id, rotation, column), step = slides[Math.floor(drop / (turns * cols))];
    if (reach) {
      const top = this.cells.findIndex((cell) => cell), y = own % reach;
      const isLow = top < 0 || this.height - Math.floor(top / cols) + 3 <= this.rules.rows; // free to turn and to move
      return cells && isLow && this.height - 1 - cells.at(-1)[0] === y ? cells : this.reachable(id)[own];
    }
    if (cells && step) {
      const there = cells.map(([r, c]) => [r, c + step]);
      return this.free(there) ? this.fallen(there) : null;
    }
    return cells;
  }

  /* By action the cells of all placements that keys lead a piece to while no time passes; null for the others. */
  reachable(id) {
    const { cols, reach, pieces } = this.rules, found = Array(this.actionCount).fill(null);
    const todo = [this.spawn(id)], seen = new Set();
    while (todo.length) {
      const place = todo.pop(), { rotation, column, y } = place, name = (rotation * cols + column) * 99 + y;
      if (seen.has(name)) continue;
      seen.add(name);
      const shape = rotation % pieces[id].rotations.length;
      const ways = [KEY.LEFT, KEY.RIGHT, KEY.CLOCKWISE, KEY.COUNTERCLOCKWISE, KEY.SOFT_DROP].map((key) => this.moved(key, place, id));
      if (!ways.at(-1)) found[(shape * cols + column) * reach + y] = this.cellsAt(place, id);
      todo.push(...ways.filter(Boolean));
    }
    return found;
  }

  /* The cells of each legal action, null for the others: an action that repeats an earlier one's cells is illegal. */
  placements() {
    return this.choices.flatMap((id, choice) => {
      if (this.over) return Array(this.actionCount).fill(null);
      if (this.rules.reach) return this.reachable(id);
      const seen = new Set();
      return Array.from({ length: this.actionCount }, (_, action) => {
        const cells = this.resting(choice * this.actionCount + action), name = String(cells);
        if (!cells || seen.has(name)) return null;
        seen.add(name);
        return cells;
      });
    });
  }

  legal() {
    return this.placements().map((cells) => cells !== null);
  }

  step(action) {
    const { cols, storage, overflow, slides } = this.rules;
    this.steps++;
    if (this.over) return false;
    const cells = slides.length > 1 ? this.placements()[action] : this.resting(action);
    if (!cells) return false;
    const halves = this.stream.draw(); // a piece each, if two are drawn
    if (action >= this.actionCount) {
      if (this.held === null) halves.reverse();
      this.exchange(halves[1]);
    }
    this.fill(cells);
    if (overflow === "strict" && Math.min(...cells.map(([r]) => r)) < storage) {
      this.over = true;
    } else {
      this.score += this.rules.lineScores[this.clear()];
      this.over = this.cells.subarray(0, storage * cols).some((cell) => cell);
    }
    this.nextPiece(halves[0]);
    return true;
  }
}

const CORNERS = [[2, 0], [2, 2], [0, 2], [0, 0]]; // of a T's box, clockwise from the top left: rows up, columns
const ONE = 1 << 16; // a row, in gravity and in rates of garbage
const GARBAGE = 255; // the number of its cells
const HOLE_STREAM = 0xa0761d6478bd642fn; // xor a game's random stream: where that of its holes begins

/* Tetris by keys, as mergefall/tetris/keys/reference.py states it. A step is a key, then a tick of the clock. */
class TetrisKeys extends Field {
  /* rules: those of a field, and {keys, falls, levelLines, lock_delay, lock_resets, garbage, clears, points, attacks,
     perfectPoints, perfectChained, perfectAttack, comboPoints, comboAttacks}. `keys` is their number; `falls` the
     gravity of each level; `garbage` null, or {rate, holes, moving}; `points` and `attacks` are by kind of spin and
     lines. */
  constructor(rules, stream) {
    super(rules, stream);
    Object.assign(this, { attack: 0, combo: 0, chain: false, pending: 0, owed: 0, hole: 0, cleared: 0 });
    this.holes = new Stream(BigInt(stream) ^ HOLE_STREAM);
    if (rules.garbage) this.hole = below(this.holes.draw()[0], rules.cols - rules.garbage.holes + 1);
    this.appear(false);
  }

  copy() {
    return Object.assign(super.copy(), { holes: new Stream(this.holes.state) });
  }

  get level() {
    return Math.min(1 + Math.floor(this.lines / this.rules.levelLines), this.rules.falls.length);
  }

  appear(byHold) {
    const place = this.spawn();
    this.falling = { ...place, spin: 0, byHold, phase: 0, grounded: 0, resets: 0, lowest: place.y };
    this.over ||= !this.free(this.cellsAt(place));
  }

  legal() {
    return Array.from({ length: this.rules.keys }, (_, key) => {
      if (this.over || key === KEY.WAIT || key === KEY.HARD_DROP) return !this.over;
      return key === KEY.HOLD ? this.rules.hold && !this.falling.byHold : this.moved(key, this.falling) !== null;
    });
  }

  step(key) {
    this.steps++;
    if (this.over) return false;
    if (key === KEY.HARD_DROP) {
      this.score += 2 * this.fall(Infinity);
      this.lock();
      return true;
    }
    const changes = this.press(key);
    if (!this.over) this.tick();
    return changes;
  }

  press(key) {
    if (key === KEY.WAIT) return true;
    if (key === KEY.HOLD) {
      if (!this.rules.hold || this.falling.byHold) return false;
      this.exchange();
      this.appear(true);
      return true;
    }
    const way = this.moved(key, this.falling);
    if (!way) return false;
    const { test, ...place } = way;
    const there = { ...this.falling, ...place, spin: QUARTERS[key] ? (test === 4 ? 2 : 1) : 0 };
    if (key === KEY.SOFT_DROP) {
      this.score++;
    } else if ((there.grounded || there.resets) && there.resets < this.rules.lock_resets) {
      there.grounded = 0;
      there.resets++;
    }
    this.falling = there;
    return true;
  }

  /* Let the piece fall at most so many rows; returns how many. */
  fall(most) {
    const { y } = this.falling, cells = this.cellsAt(this.falling);
    let rows = 0;
    while (rows < most && this.free(cells.map(([r, c]) => [r + rows + 1, c]))) rows++;
    if (rows) this.falling = { ...this.falling, y: y - rows, spin: 0 };
    return rows;
  }

  tick() {
    const gravity = this.rules.falls[this.level - 1], phase = this.falling.phase + gravity;
    if (!gravity) return;
    this.fall(Math.floor(phase / ONE));
    const f = (this.falling = { ...this.falling }), { lock_delay: delay, lock_resets: resets } = this.rules;
    if (f.y < f.lowest) Object.assign(f, { lowest: f.y, grounded: 0, resets: 0 });
    const rests = !this.moved(KEY.SOFT_DROP, f);
    f.phase = rests ? 0 : phase % ONE;
    f.grounded += rests;
    if (rests && (f.grounded > delay || (resets && f.resets >= resets))) this.lock();
  }

  /* The kind of spin with which the piece is about to lock: 0 none, 1 mini, 2 full. */
  get spin() {
    const { rotation, column, y, spin } = this.falling;
    if (this.rules.pieces[this.queue[0]].name !== "T" || !spin) return 0;
    const left = column - (rotation === 1), bottom = this.height - 1 - y + (rotation === 0);
    const filled = CORNERS.map(([up, right]) => !this.free([[bottom - up, left + right]]));
    if (filled.filter(Boolean).length < 3) return 0;
    return (filled[rotation] && filled[(rotation + 1) % 4]) || spin === 2 ? 2 : 1;
  }

  lock() {
    const { rules, spin, level } = this;
    let over = this.falling.y >= rules.rows;
    this.fill(this.cellsAt(this.falling));
    const lines = this.clear(), perfect = lines > 0 && !this.cells.some(Boolean);
    let points = rules.points[spin][lines], attack = rules.attacks[spin][lines];
    if (lines) {
      const hard = spin > 0 || lines === 4;
      if (hard && this.chain) {
        points += Math.floor(points / 2);
        attack += attack > 0;
      }
      if (perfect) {
        points += this.chain && lines === 4 ? rules.perfectChained : rules.perfectPoints[lines];
        attack = rules.perfectAttack;
      }
      points += rules.comboPoints * this.combo;
      this.combo++;
      attack += rules.comboAttacks[Math.min(this.combo, rules.comboAttacks.length - 1)];
      this.chain = hard;
    } else this.combo = 0;
    this.cleared = lines + 5 * spin + 15 * perfect;
    this.score += points * level;
    this.attack += attack;
    this.pending -= Math.min(this.pending, attack);
    if (!lines && this.pending) {
      over = this.rise(this.pending) || over;
      this.pending = 0;
    }
    this.owed += rules.garbage?.rate ?? 0;
    this.pending += Math.floor(this.owed / ONE);
    this.owed %= ONE;
    this.nextPiece();
    this.appear(false);
    this.over ||= over;
  }

  /* Push rows of garbage in from below; returns whether a cell was pushed out of the rows above the field. */
  rise(count) {
    const { cols, garbage } = this.rules;
    let out = false;
    for (; count; count--) {
      const [upper, lower] = this.holes.draw();
      if ((lower & (ONE - 1)) < garbage.moving) {
        const to = below(upper, cols - garbage.holes);
        this.hole = to + (to >= this.hole);
      }
      out ||= this.cells.subarray(0, cols).some(Boolean);
      this.cells.copyWithin(0, cols);
      const row = this.cells.subarray(-cols);
      row.fill(GARBAGE);
      row.fill(0, this.hole, this.hole + garbage.holes);
    }
    return out;
  }

  get figures() {
    const { level, rules } = this;
    return { ...super.figures, attack: this.attack, ...(rules.falls.length > 1 ? { level } : {}) };
  }
}

const GAMES = { 2048: Game2048, tetris: Tetris, keys: TetrisKeys };
