
// The replays of a page: each section has two panes, which show two games at the same step.
// A pane shows a recorded game, or one that the reader plays by hand from the same seed.

const YOU = "you";
const KEYFRAME = 250; // steps between the copies of a game from which the page goes on

/* Bytes of compressed base64 text. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function element(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

function plain(number) {
  const size = Math.abs(number);
  if (size >= 1e9 || (size > 0 && size < 0.001)) return number.toExponential(3);
  return number.toLocaleString("en", { maximumFractionDigits: size >= 1000 ? 0 : size >= 10 ? 1 : 3 });
}

/* Calls `pass(steps)` with the steps that have passed since the last call, at `rate()` steps a second. */
class Clock {
  constructor(rate, pass) {
    Object.assign(this, { rate, pass, timer: null });
  }

  start() {
    if (this.timer) return;
    let before = performance.now(), due = 0; // a fraction included
    this.timer = setInterval(() => {
      const now = performance.now();
      due += ((now - before) / 1000) * this.rate();
      before = now;
      const steps = Math.floor(due);
      due -= steps;
      if (steps) this.pass(steps);
    }, 1000 / 60);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
  }
}

// -- boards -----------------------------------------------------------------------------------------------------------

function sized(canvas, width, height) {
  const scale = 2; // sharp on screens with fine pixels
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const style = getComputedStyle(document.documentElement);
  const [board, empty, ink] = ["--board", "--empty", "--ink"].map((name) => style.getPropertyValue(name));
  return { pen, board, empty, ink };
}

function box(pen, x, y, width, height, radius, colour) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.roundRect(x, y, width, height, radius);
  pen.fill();
}

function draw2048(canvas, game, colours) {
  const gap = 8, side = (352 - gap) / Math.max(game.rows, game.cols) - gap;
  const at = (i) => gap + i * (side + gap);
  const { pen, board, empty } = sized(canvas, at(game.cols), at(game.rows));
  box(pen, 0, 0, at(game.cols), at(game.rows), 8, board);
  game.cells.forEach((rank, i) => {
    const x = at(i % game.cols), y = at(Math.floor(i / game.cols));
    const [tile, ink] = rank ? colours[Math.min(rank, colours.length) - 1] : [empty];
    box(pen, x, y, side, side, 6, tile);
    if (!rank) return;
    const word = String(2 ** rank);
    pen.fillStyle = ink;
    pen.font = `700 ${Math.min(side * 0.44, (side * 1.5) / word.length)}px system-ui, "DejaVu Sans", sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(word, x + side / 2, y + side / 2 + 1);
    if (i === game.fresh) {
      pen.strokeStyle = "#2f6fb5";
      pen.lineWidth = 3;
      pen.strokeRect(x + 1.5, y + 1.5, side - 3, side - 3);
    }
  });
}

/* `aim`: the cells in which the piece is aimed that is number `choice` of those that can be placed; null for a replay. */
function drawTetris(canvas, game, colours, aim, choice = 0) {
  const { rows, cols, storage, first } = game.rules, { falling } = game;
  const cell = Math.min(24, 300 / Math.max(cols, rows * 0.6)), gap = 8, left = cols * cell + 3 * gap;
  const shown = falling ? Math.min(2, storage) : aim || game.over ? storage : 0; // rows above the field
  const panel = panelOf(game, cell), height = (rows + shown) * cell + 2 * gap, side = 3 * cell + gap;
  const { pen, board, empty, ink } = sized(canvas, left + side, Math.max(height, panel.at(-1).top + gap, 10 * cell));
  const colourOf = (filled) => (filled === GARBAGE ? colours.at(-1) : colours[filled - 1])[0];
  const square = (r, c, colour, scale = cell, x = gap, y = gap) =>
    box(pen, x + c * scale + 1, y + r * scale + 1, scale - 2, scale - 2, 2, colour);
  const inSight = (cells) => cells.map(([r, c]) => [r - storage + shown, c]).filter(([r]) => r >= 0);
  const outline = (cells, colour, inset) => {
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    for (const [r, c] of inSight(cells)) {
      pen.strokeRect(gap + c * cell + inset, gap + r * cell + inset, cell - 2 * inset, cell - 2 * inset);
    }
  };
  const frame = falling ? shown * cell : 0; // pieces appear above the frame
  box(pen, 0, frame, cols * cell + 2 * gap, height - frame, 8, board);
  for (let r = 0; r < rows + shown; r++) {
    for (let c = 0; c < cols; c++) {
      const filled = game.cells[(r + storage - shown) * cols + c];
      if (filled || r >= shown) square(r, c, filled ? colourOf(filled) : empty);
    }
  }
  const colour = colourOf(1 + first + (game.choices ?? game.queue)[choice]);
  if (falling) {
    const cells = game.cellsAt(falling), risen = Math.min(game.pending, rows) * cell;
    if (!game.over) {
      outline(game.fallen(cells), colour, 3);
      pen.globalAlpha = 0.4; // because purple is as dark as the field
      outline(game.fallen(cells), "#fffcf5", 3);
      pen.globalAlpha = 1;
    }
    for (const [r, c] of inSight(cells)) square(r, c, colour);
    box(pen, 2, height - gap - risen, 4, risen, 2, "#e0524c");
  } else if (aim) {
    pen.globalAlpha = 0.55;
    for (const [r, c] of inSight(aim)) square(r, c, colour);
    pen.globalAlpha = 1;
  } else if (game.last) outline(game.last, "#fffcf5", 2);
  const write = (text, y) => {
    pen.fillStyle = ink;
    pen.font = '13px system-ui, "DejaVu Sans", sans-serif';
    pen.fillText(text, left, y, side);
  };
  for (const { label, id, scale, top } of panel) {
    if (label) write(label, top - 5);
    pen.globalAlpha = label === "hold" && falling?.byHold ? 0.4 : 1; // it cannot be exchanged any more
    const cells = id === undefined ? [] : game.rules.pieces[id].rotations[0];
    for (const [r, c] of cells) square(r, c, colourOf(1 + first + id), scale, left, top);
    pen.globalAlpha = 1;
  }
  if (falling) notes(game).forEach((word, i, { length }) => write(word, height - gap - (length - 1 - i) * 18));
}

/* The pieces beside a field, from the top: each with its label, if it is the first, and the size of a cell. */
function panelOf(game, cell) {
  const { pieces, hold, preview } = game.rules, [current, ...next] = game.queue, large = 0.6 * cell;
  const groups = game.falling ? [] : [["piece", [current], large]];
  if (hold) groups.push(["hold", [game.held ?? undefined], large]);
  if (preview) groups.push(["next", next, game.falling ? large : 0.45 * cell]);
  const tall = Math.max(...pieces.map(({ rotations }) => 1 + rotations[0].at(-1)[0])), placed = [];
  let top = 8;
  for (const [label, ids, scale] of groups) {
    top += 15;
    for (const [i, id] of ids.entries()) {
      placed.push({ label: i ? "" : label, id, scale, top });
      top += tall * scale + 8;
    }
  }
  return [...placed, { label: "", top }];
}

/* What has happened in a game by keys, a line each. */
function notes(game) {
  const cleared = game.rules.clears[game.cleared].replace("perfect clear", "perfect").split(" ");
  const combo = game.combo > 1 ? [`combo ${game.combo - 1}`] : [];
  return [...cleared, ...combo, ...(game.chain ? ["back-to-back"] : []), ...(game.over ? ["game over"] : [])].filter(Boolean);
}

const keyOf = ({ key }) => (key.length === 1 ? key.toLowerCase() : key);

// -- by hand ----------------------------------------------------------------------------------------------------------

/* By game: how a position is drawn; the steps a second that a replay can be watched at, the second of which it begins
   with; the keys with which a pane is played by hand; its buttons, as what is written on them and their key; and what
   the keys do, in words. */
const BY_HAND = {
  2048: {
    draw: draw2048,
    speeds: [2, 5, 20, 100, 1000],
    keys: { ArrowLeft: (pane) => pane.play(LEFT), ArrowUp: (pane) => pane.play(UP), ArrowDown: (pane) => pane.play(DOWN), ArrowRight: (pane) => pane.play(RIGHT) },
    buttons: [["←", "ArrowLeft"], ["↑", "ArrowUp"], ["↓", "ArrowDown"], ["→", "ArrowRight"]],
    hint: "arrow keys move",
  },
  tetris: {
    draw: drawTetris,
    speeds: [2, 5, 20, 100, 1000],
    keys: { ArrowLeft: (pane) => pane.turn(0, -1), ArrowUp: (pane) => pane.turn(1, 0), ArrowDown: (pane) => pane.drop(), ArrowRight: (pane) => pane.turn(0, 1), " ": (pane) => pane.drop(), c: (pane) => pane.turn(0, 0, true) },
    buttons: [["←", "ArrowLeft"], ["→", "ArrowRight"], ["turn", "ArrowUp"], ["drop", " "], ["hold", "c"]],
    hint: "← → move the piece, ↑ turns it, space drops it",
  },
  keys: {
    draw: drawTetris,
    speeds: [15, 60, 120, 300, 1200],
    keys: Object.fromEntries(Object.entries({ ArrowLeft: KEY.LEFT, ArrowRight: KEY.RIGHT, ArrowUp: KEY.CLOCKWISE, x: KEY.CLOCKWISE, z: KEY.COUNTERCLOCKWISE, ArrowDown: KEY.SOFT_DROP, " ": KEY.HARD_DROP, c: KEY.HOLD, a: KEY.HALF_TURN })
      .map(([key, action]) => [key, (pane) => pane.act(action)])),
    buttons: [["←", "ArrowLeft"], ["→", "ArrowRight"], ["↓", "ArrowDown"], ["↻", "ArrowUp"], ["↺", "z"], ["180°", "a"], ["drop", " "], ["hold", "c"], ["pause", "p"]],
    hint: "← → ↓ move the piece, ↑ or X and Z turn it, space drops it",
  },
};

// -- panes ------------------------------------------------------------------------------------------------------------

class Pane {
  constructor(viewer, index) {
    Object.assign(this, { viewer, index, section: viewer.section, frames: [], actions: [], turns: [], step: 0, aim: null });
    this.clock = new Clock(() => 60, (steps) => this.pass(steps));
    Object.assign(this, { due: [], held: new Map() }); // actions that are still to be played, and keys held down
    this.kind = GAMES[this.section.game];
    this.hands = BY_HAND[this.section.game];
    const labels = this.section.players.map((player) => player.label);
    this.who = element("select", { ariaLabel: "player" }, ...[...labels, YOU].map((label, value) => element("option", { value }, label)));
    this.which = element("select", { ariaLabel: "game" });
    this.canvas = element("canvas", { tabIndex: 0, ariaLabel: "board" });
    this.figures = element("p", { className: "figures" });
    this.thoughts = element("div", { className: "thoughts" });
    this.hand = element("div", { className: "hand" });
    this.root = element("div", { className: "pane" },
      element("div", { className: "choose" }, this.who, this.which), this.canvas, this.figures, this.hand, this.thoughts);
    this.who.addEventListener("change", () => this.choosePlayer().then(() => viewer.show()));
    this.which.addEventListener("change", () => this.chooseGame().then(() => viewer.show()));
    this.canvas.addEventListener("keydown", (event) => this.pressed(event));
    this.canvas.addEventListener("keyup", (event) => this.held.delete(keyOf(event)));
    this.root.addEventListener("focusout", ({ relatedTarget }) => this.root.contains(relatedTarget) || this.pause());
  }

  get byHand() {
    return Number(this.who.value) === this.section.players.length;
  }

  /* The games of the chosen player; those that the reader can play are all seeds of the section. */
  get choices() {
    if (!this.byHand) return this.section.players[this.who.value].replays;
    const all = this.section.players.flatMap((player) => player.replays);
    return [...new Map(all.map((replay) => [replay.seed, { seed: replay.seed, stream: replay.stream }])).values()];
  }

  async choosePlayer() {
    const before = this.replay?.seed;
    this.which.replaceChildren(
      ...this.choices.map(({ seed, note, result }) => {
        const about = result === undefined ? "" : `: ${this.section.headline} ${plain(result)}${note ? `, its ${note}` : ""}`;
        return element("option", { value: seed }, `seed ${seed}${about}`);
      }),
    );
    if (this.choices.some((replay) => replay.seed === before)) this.which.value = before;
    await this.chooseGame();
  }

  async chooseGame() {
    const replay = this.choices.find(({ seed }) => seed === Number(this.which.value));
    this.pause();
    Object.assign(this, { replay, aim: null, actions: [], turns: [], values: null });
    this.frames = [new this.kind(this.section.rules, replay.stream)];
    if (!this.byHand) {
      const packed = [replay.actions, replay.values?.data];
      const [bytes, values] = await Promise.all(packed.map((data) => data && unpacked(data)));
      if (this.replay !== replay) return; // another game was chosen meanwhile
      this.actions = replay.wide ? new Uint16Array(bytes) : new Uint8Array(bytes);
      if (values) this.values = new Float32Array(values);
    }
    this.hand.replaceChildren(...(this.byHand ? this.handButtons() : []));
  }

  get length() {
    return this.actions.length;
  }

  /* The game after `step` actions, played on from the last copy before it. */
  at(step) {
    while (this.frames.length <= Math.floor(step / KEYFRAME)) {
      const game = this.frames.at(-1).copy(), from = (this.frames.length - 1) * KEYFRAME;
      for (let i = 0; i < KEYFRAME; i++) game.step(this.actions[from + i]);
      this.frames.push(game);
    }
    const start = Math.floor(step / KEYFRAME), game = this.frames[start].copy();
    for (let i = start * KEYFRAME; i < step; i++) game.step(this.actions[i]);
    return game;
  }

  show(step) {
    this.step = Math.min(step, this.length);
    const game = this.at(this.step);
    if (this.byHand && this.section.game === "tetris" && !game.over) this.aim ??= { rotation: 0, column: 0, choice: 0 };
    const aimed = this.aim && !game.over ? game.resting(this.aimed(game)) : null;
    this.hands.draw(this.canvas, game, this.section.colours, this.byHand ? (aimed ?? []) : null, this.aim?.choice);
    this.canvas.role = this.byHand ? "application" : "img";
    this.figures.ariaLive = this.byHand && !this.timed ? "polite" : "off"; // a replay says too much
    const last = this.step === this.length;
    const figures = Object.entries(game.figures).map(([name, value]) => `${name} ${plain(value)}`);
    const end = !this.byHand && last
      ? (this.replay.length > this.length ? `; its record ends here, the game had ${plain(this.replay.length)} actions`
        : this.replay.terminated ? "; over" : "; cut off here")
      : game.over ? "; over" : "";
    this.figures.textContent = `step ${plain(this.step)} of ${plain(this.length)}: ${figures.join(", ")}${end}`;
    this.root.dataset.score = game.score;
    this.think(game);
  }

  /* The row of the values that belong to a step; -1 if there are none. */
  row(step) {
    let row = 0;
    for (const [from, to] of this.replay.values?.ranges ?? []) {
      if (step >= from && step < to) return row + step - from;
      row += to - from;
    }
    return -1;
  }

  /* What the player thought of the actions, best first. */
  think(game) {
    const row = this.byHand || this.step === this.length ? -1 : this.row(this.step), lines = [];
    if (row >= 0 && this.values) {
      const legal = game.legal();
      const count = legal.length, chosen = this.actions[this.step];
      const values = [...this.values.subarray(row * count, (row + 1) * count)];
      const actions = [...values.keys()].filter((action) => legal[action] && Number.isFinite(values[action]));
      actions.sort((a, b) => values[b] - values[a]);
      const likely = this.replay.values.kind === "probability";
      const best = values[actions[0]], worst = values[actions.at(-1)];
      lines.push(element("div", { className: "head" }, likely ? "probability of each action" : "value of each action"));
      for (const action of actions.slice(0, 6)) {
        const share = likely ? Math.exp(values[action]) : best > worst ? (values[action] - worst) / (best - worst) : 1;
        const word = likely ? `${(100 * share).toFixed(1)} %` : plain(values[action]);
        lines.push(...this.bar(this.section.actions[action], share, word, action === chosen));
      }
    }
    this.thoughts.replaceChildren(...lines);
  }

  bar(name, share, word, chosen) {
    const fill = element("i");
    fill.style.width = `${100 * share}%`;
    return [
      element("span", { className: chosen ? "chosen" : "" }, name),
      element("span", { className: "bar" }, fill),
      element("span", {}, word),
    ];
  }

  // -- by hand

  handButtons() {
    const { hold, keys } = this.section.rules, there = { a: keys > KEY.HALF_TURN, c: Boolean(hold), p: this.timed };
    const shown = this.hands.buttons.filter(([, key]) => there[key] ?? true);
    return [...shown, ["undo", "u"]].map(([sign, key]) => element("button", { type: "button", onclick: () => this.press(key) }, sign));
  }

  pressed(event) {
    const key = keyOf(event);
    if (!this.byHand || event.altKey || event.ctrlKey || event.metaKey || !this.keys[key]) return;
    event.preventDefault();
    event.stopPropagation();
    if (this.timed && event.repeat) return;
    this.held.set(key, 0);
    this.press(key);
  }

  get keys() {
    return { ...this.hands.keys, u: () => this.undo(), p: () => this.pause() };
  }

  press(key) {
    this.keys[key](this);
  }

  play(action) {
    const game = this.at(this.length);
    if (!game.legal()[action]) return;
    this.push(game, action);
    this.viewer.go(this.length);
  }

  push(game, action) {
    this.turns.push(this.timed ? game.pieces : this.length);
    this.actions.push(action);
    game.step(action);
  }

  /* Take back the last action; of a game in which time passes, all of the turn in which a key was last pressed. */
  undo() {
    this.pause();
    let last = this.length - 1;
    while (this.timed && last > 0 && this.actions[last] === KEY.WAIT) last--;
    this.actions.length = this.turns.length = Math.max(0, this.turns.indexOf(this.turns[last]));
    this.frames.length = Math.min(this.frames.length, 1 + Math.floor(this.length / KEYFRAME));
    if (this.aim) this.turn(0, 0); // the piece before may be wider
    else this.viewer.go(this.length);
  }

  // -- by hand, a game in which time passes: 60 steps a second, from the first key on

  get timed() {
    return this.byHand && this.section.rules.timed;
  }

  act(action) {
    if (action >= this.section.rules.keys) return;
    if (!this.timed) this.play(action);
    else {
      this.due.push(action);
      this.clock.start();
    }
  }

  pause() {
    this.clock.stop();
    this.due = [];
    this.held.clear();
  }

  /* Play the steps that have passed, of a long break only the last quarter of a second. */
  pass(steps) {
    const game = this.at(this.length);
    for (let i = 0; i < Math.min(steps, 15) && !game.over; i++) {
      this.repeat();
      this.push(game, this.due.shift() ?? KEY.WAIT);
    }
    if (game.over) this.pause();
    this.viewer.go(this.length);
  }

  /* Press the keys again that have been held down for so many steps, every second step. */
  repeat() {
    const after = { ArrowLeft: 10, ArrowRight: 10, ArrowDown: 2 };
    for (const [key, steps] of this.held) {
      this.held.set(key, steps + 1);
      if (steps >= after[key] && steps % 2 === 0) this.press(key);
    }
  }

  aimed(game) {
    return game.dropping(this.aim.rotation, this.aim.column, this.aim.choice);
  }

  turn(rotations, columns, other = false) {
    const game = this.at(this.length), choice = other && game.rules.hold ? 1 - this.aim.choice : this.aim.choice;
    const shapes = game.rules.pieces[game.choices[choice]].rotations;
    const rotation = (this.aim.rotation + rotations) % shapes.length;
    const width = 1 + Math.max(...shapes[rotation].map(([, c]) => c));
    const column = Math.max(0, Math.min(game.rules.cols - width, this.aim.column + columns));
    this.aim = { rotation, column, choice };
    this.viewer.go(this.length);
  }

  drop() {
    const action = this.aimed(this.at(this.length)), { column } = this.aim;
    this.aim = { rotation: 0, column, choice: 0 };
    this.play(action);
    this.turn(0, 0);
  }
}

// -- viewers ----------------------------------------------------------------------------------------------------------

class Viewer {
  constructor(root, section) {
    const { speeds, hint } = BY_HAND[section.game], { hold, timed } = section.rules;
    Object.assign(this, { root, section, step: 0 });
    this.clock = new Clock(() => Number(this.speed.value), (steps) => {
      this.go(this.step + steps);
      if (this.step >= this.last) this.toggle();
    });
    const button = (sign, label, act) => element("button", { type: "button", title: label, ariaLabel: label, onclick: act }, sign);
    this.slider = element("input", { type: "range", min: 0, max: 0, value: 0, ariaLabel: "step" });
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.playing = button("▶", "play", () => this.toggle());
    this.speed = element("select", { ariaLabel: "speed" },
      ...speeds.map((speed, i) => element("option", { value: speed, selected: i === 1 }, `${speed} a second`)));
    const controls = element("div", { className: "controls" },
      button("«", "to the start", () => this.go(0)), button("‹", "a step back", () => this.go(this.step - 1)), this.playing,
      button("›", "a step on", () => this.go(this.step + 1)), button("»", "to the end", () => this.go(Infinity)), this.slider, this.speed);
    this.panes = [0, 1].map((index) => new Pane(this, index));
    root.append(controls, element("div", { className: "panes" }, ...this.panes.map((pane) => pane.root)),
      element("p", { className: "hint" },
        "Keys: space plays, ← and → step, Home and End jump. To play by hand, choose “you” as a player and click on its board: "
        + `${hint}${hold ? ", C holds it" : ""}${timed ? ", P pauses" : ""}, U takes a move back.`));
    root.addEventListener("keydown", (event) => this.press(event));
  }

  async begin() {
    this.panes[1].who.selectedIndex = 1; // the second player, or you
    for (const pane of this.panes) await pane.choosePlayer();
    this.show();
  }

  get last() {
    return Math.max(...this.panes.map((pane) => pane.length));
  }

  go(step) {
    this.step = Math.max(0, Math.min(step, this.last));
    this.show();
  }

  show() {
    this.step = Math.min(this.step, this.last);
    this.slider.max = this.last;
    this.slider.value = this.step;
    for (const pane of this.panes) pane.show(this.step);
  }

  toggle() {
    if (this.clock.timer) {
      this.clock.stop();
    } else {
      if (this.step >= this.last) this.go(0);
      this.clock.start();
    }
    this.playing.textContent = this.clock.timer ? "⏸" : "▶";
    this.playing.title = this.playing.ariaLabel = this.clock.timer ? "pause" : "play";
  }

  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("select, input")) return;
    const keys = { " ": () => this.toggle(), ArrowLeft: () => this.go(this.step - 1), ArrowRight: () => this.go(this.step + 1),
      Home: () => this.go(0), End: () => this.go(Infinity) };
    if (!keys[event.key] || (event.key === " " && event.target.closest("button"))) return;
    event.preventDefault();
    keys[event.key]();
  }
}

/* The address of a page may name what to show: #section=0&a=LABEL&b=LABEL&seed=3&step=100, or step=end. */
async function showAddress(viewers) {
  const asked = new URLSearchParams(location.hash.slice(1)), viewer = viewers[Number(asked.get("section") ?? -1)];
  if (!viewer) return;
  for (const [index, name] of ["a", "b"].entries()) {
    const pane = viewer.panes[index];
    const player = [...viewer.section.players.map(({ label }) => label), YOU].indexOf(asked.get(name));
    if (player >= 0) pane.who.value = player;
    await pane.choosePlayer();
    if ([...pane.which.options].some(({ value }) => value === asked.get("seed"))) pane.which.value = asked.get("seed");
    await pane.chooseGame();
  }
  viewer.go(asked.get("step") === "end" ? Infinity : Number(asked.get("step") ?? 0));
  viewer.root.scrollIntoView();
}

async function start() {
  const sections = JSON.parse(document.getElementById("data").textContent), viewers = [];
  for (const root of document.querySelectorAll(".replay")) {
    const section = sections[Number(root.dataset.section)];
    section.players = section.players.filter((player) => player.replays.length);
    if (!section.players.length) continue;
    section.actions = JSON.parse(new TextDecoder().decode(await unpacked(section.actions)));
    const viewer = new Viewer(root, section);
    await viewer.begin();
    viewers[Number(root.dataset.section)] = viewer;
  }
  await showAddress(viewers);
  addEventListener("hashchange", () => showAddress(viewers));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => viewers.forEach((viewer) => viewer.show()));
  document.documentElement.dataset.ready = Math.round(performance.now()); // milliseconds from the first byte
}

start();
