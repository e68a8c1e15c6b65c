"""Games that are watched in a terminal or a window, filmed, or played by hand with undo and a searcher's advice.

A game by hand is its seed and its actions. So taking a move back plays the game again without its last action, and a
finished game can be kept as a record, which `mergefall verify` proves and `mergefall report` shows.
"""

import math
import os
import re
import secrets
import select
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import gymnasium as gym
import numpy as np
from mergefall import __version__, draw
from mergefall.draw import PAGE, short_number
from mergefall.env import ARROWS as ARROW_CODES
from mergefall.games import game_of
from mergefall.imports import import_extra
from mergefall.rules import GameRules
from mergefall.text import action_names
from mergefall.typing import Bytes, Dict, Options
from mergefall_baselines import make
from mergefall_baselines.player import Choose, chosen_by, recorded, steps
from mergefall_baselines.registry import player_of
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mergefall_training.play.advice import choices_of
from mergefall_training.play.evaluation import SEEDS
from mergefall_training.play.match import Match
from mergefall_training.play.records import Episode, Header, RecordFile, actions_of, played, read_records
from mergefall_training.play.workers import task
from mergefall_training.progress import console, printable, progress_bar

ARROWS = ("up", "down", "right", "left")
CODES = dict(zip(("up", "right", "down", "left"), ARROW_CODES, strict=True)) | {"space": ord(" ")}
GAP = 16  # pixels between two pictures
NARROW = 26  # columns that text beside a board needs


def side_by_side(pictures: Sequence[Bytes]) -> Bytes:
    """Pictures in a row, as one: uint8[height, width, 3]."""
    pages = []
    for picture in pictures:
        page = np.full((max(map(len, pictures)), picture.shape[1] + GAP, 3), PAGE, np.uint8)
        page[: len(picture), :-GAP] = picture
        pages.append(page)
    return np.hstack(pages)[:, :-GAP]


class Terminal(ExitStack):
    """The terminal. If the output is no terminal, only the last picture is printed, and no keys are read."""

    render_mode = "ansi"

    def __init__(self) -> None:
        super().__init__()
        self._live = Live(console=console(), auto_refresh=False)
        self.interactive = sys.stdin.isatty() and self._live.console.is_terminal

    def __enter__(self) -> Self:
        if not self._live.console.is_terminal:
            self.callback(self._live.console.print)
        if self.interactive and sys.platform != "win32":  # each key comes at once
            import termios
            import tty

            keyboard = sys.stdin.fileno()
            self.callback(termios.tcsetattr, keyboard, termios.TCSADRAIN, termios.tcgetattr(keyboard))
            tty.setcbreak(keyboard, termios.TCSADRAIN)
        self.enter_context(self._live)
        return self

    def show(self, pictures: Sequence[Any], lines: Sequence[str]) -> None:
        """Draw the boards, which are text, and lines below them; beside them if there is no room below."""
        boards = [Text.from_ansi(part.rstrip()) for picture in pictures for part in picture.split("\nopponent\n")]
        row, below, screen = Table.grid(padding=(0, 4, 0, 0)), [Text(line) for line in lines], self._live.console
        sizes = [max(line.cell_len for line in board.split()) for board in boards]
        for size in sizes:
            row.add_column(no_wrap=True, overflow="crop", min_width=size if size == sizes[0] else None)
        high = max((len(board.split()) for board in boards), default=0) + len(lines) > screen.height
        if high and sum(sizes) + 4 * len(sizes) + NARROW <= screen.width:
            boards, below = [*boards, Text("\n\n".join(filter(None, ["", "", *lines])))], []
            row.add_column()
        row.add_row(*boards)
        self._live.update(Group(row, *below), refresh=True)

    def read(self, timeout: float | None = None) -> list[str]:
        """Keys that were pressed: `up`, `right`, `down`, `left`, `space`, or a letter; `q` if the input is closed.

        Waits for a key, but at most `timeout` seconds. Without a keyboard there are none.
        """
        if not self.interactive:
            if self._live.console.is_terminal or self.render_mode != "ansi":
                time.sleep(timeout or 0)
            return []
        return _windows_keys(timeout) if sys.platform == "win32" else _posix_keys(timeout)


def _posix_keys(timeout: float | None) -> list[str]:
    keyboard = sys.stdin.fileno()
    if not select.select([keyboard], [], [], timeout)[0]:
        return []
    pressed = os.read(keyboard, 64).decode(errors="ignore")
    # Other sequences are keys such as F2.
    found = re.findall(r"\x1b[\[O]([A-D])|\x1b\[[0-9;?]*[@-~]|\x1bO.|([^\x1b])", pressed)
    keys = [ARROWS["ABCD".index(arrow)] if arrow else _name(key) for arrow, key in found if arrow or key]
    return keys if pressed else ["q"]


def _windows_keys(timeout: float | None) -> list[str]:
    import msvcrt

    kbhit, getwch = (getattr(msvcrt, name) for name in ("kbhit", "getwch"))
    end = None if timeout is None else time.monotonic() + timeout
    while not kbhit():
        if end is not None and time.monotonic() >= end:
            return []
        time.sleep(0.01)
    key = getwch()
    return [dict(zip("HPMK", ARROWS, strict=True)).get(getwch(), "") if key in "\x00\xe0" else _name(key)]


def _name(key: str) -> str:
    return "space" if key in " \n\r" else key.lower()


class Window(Terminal):
    """Pictures in a window; text and keys stay in the terminal."""

    render_mode = "rgb_array"
    _window: draw.Window | None = None

    def show(self, pictures: Sequence[Any], lines: Sequence[str]) -> None:
        page = draw.pygame().surfarray.make_surface(side_by_side(pictures).swapaxes(0, 1))
        if self._window is None:
            self._window = draw.Window("mergefall", 0, page.get_size())
            self.callback(self._window.close)
        self._window.show(page)
        super().show([], lines)

    def read(self, timeout: float | None = None) -> list[str]:
        return ["q"] if draw.pygame().event.get(draw.pygame().QUIT) else super().read(timeout)


# -- watching ----------------------------------------------------------------------------------------------------------

WATCHING = "space pauses, + and - change the speed, right takes a step, Q quits"
FASTER = 1.5  # what a press of + multiplies the speed by


@dataclass(frozen=True)
class Show:
    """One game, to be played once: who plays it, its seed, and its actions."""

    header: Header
    seed: int
    choose: Choose

    @classmethod
    def of(cls, player: str, options: Dict, match: Match, seed: int) -> "Show":
        """The game that a player plays from a seed."""
        header = Header(player=player, options=options, package=__version__, **match.said())
        return cls(header, seed, chosen_by(task(make(player, **options), match).player, seed))

    @classmethod
    def recorded(cls, path: Path, seed: int | None) -> "Show":
        """A recorded game up to its last recorded action; without a seed the one with the lowest result."""
        header, episodes = read_records(path)
        of_seed = [episode for episode in episodes if seed in (None, episode.seed)]
        record = min(of_seed, key=lambda episode: episode.result, default=None)
        if record is None:
            seeds = f", from seeds {episodes[0].seed} to {episodes[-1].seed}" if episodes else ""
            raise ValueError(f"{path} has no game from seed {seed}; it has {len(episodes)} games{seeds}")
        return cls(header, record.seed, recorded(actions_of(record.actions, record.length).tolist()))

    def status(self, info: Options, moves: int) -> str:
        """Title, seed, figures, and the number of moves so far in one line."""
        figures = figures_of(game_of(self.header.env_id), info)
        return f"{self.header.title}, seed {self.seed}: {figures}, moves {moves}"


def figures_of(game: type[GameRules], info: Options) -> str:
    """The figures of a game in its environment's `info` as text."""
    return ", ".join(f"{name.replace('_', ' ')} {info[name]}" for name in game.figures)


def together(shows: Sequence[Show], envs: Sequence[gym.Env[Any, Any]]) -> Iterator[list[str]]:
    """Play games side by side; yields the status of each at the start and after each move, until all games are over."""
    status = [""] * len(shows)
    games = (steps(env, show.seed, show.choose) for show, env in zip(shows, envs, strict=True))
    for moves, now in enumerate(zip_longest(*games)):
        all_three = zip(shows, now, status, strict=True)
        status = [show.status(step.info, moves) if step else last for show, step, last in all_three]
        yield status


def watch(shows: Sequence[Show], screen: Terminal, fps: float | None) -> None:
    """Show games side by side, `fps` moves a second, until they are over or somebody presses Q.

    `fps`: None: as the first game's `metadata["render_fps"]` says.
    """
    envs = [show.header.make(render_mode=screen.render_mode) for show in shows]
    pace, status = _pace(screen, fps or envs[0].metadata["render_fps"]), []
    with screen:
        for status in together(shows, envs):
            screen.show([env.render() for env in envs], [*status, WATCHING] if screen.interactive else [])
            if not next(pace):
                return
        screen.show([env.render() for env in envs], status)
        screen.read(2 if screen.render_mode == "rgb_array" else 0)  # time to look at the last board


def _pace(screen: Terminal, fps: float) -> Iterator[bool]:
    """Waits until the next position is due, as keys have it; yields False if somebody pressed Q."""
    paused = False
    while True:
        end, waiting = time.monotonic() + 1 / fps, True
        while waiting:
            keys = screen.read(None if paused else max(0.0, end - time.monotonic()))
            for key in keys:
                if key == "q":
                    yield False
                paused ^= key == "space"
                fps *= {"+": FASTER, "=": FASTER, "-": 1 / FASTER}.get(key, 1)
            waiting = "right" not in keys and (paused or (bool(keys) and time.monotonic() < end))
        yield True


def film(shows: Sequence[Show], path: Path, fps: float | None) -> None:
    """Write games side by side as a video, .mp4 or .gif; the file appears when it is complete.

    `fps`: as for `watch`.
    """
    if path.suffix not in (".mp4", ".gif"):
        raise ValueError(f"{path}: expected a file name that ends in .mp4 or .gif")
    imageio: Any = import_extra("imageio.v2")
    envs, status = [show.header.make(render_mode="rgb_array") for show in shows], []
    rate: float = fps or envs[0].metadata["render_fps"]
    # libx264 needs even sizes; by default imageio scales to multiples of 16.
    style = {"fps": rate, "macro_block_size": 2} if path.suffix == ".mp4" else {"duration": 1000 / rate, "loop": 0}
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        film = Path(folder, path.name)
        with imageio.get_writer(film, **style) as writer, progress_bar(f"{path.name}: pictures", None) as done:
            for pictures, status in enumerate(together(shows, envs), start=1):  # noqa: B007
                writer.append_data(side_by_side([env.render() for env in envs]))
                done(pictures, "")
        film.replace(path)
    print(printable("\n".join([*status, f"written to {path}"])))


# -- playing by hand ---------------------------------------------------------------------------------------------------

BY_HAND = "by hand"  # the player's name in records
SLIDING: tuple[Dict, str] = (
    {"player": "2048/expectimax", "heuristic": "nneonneo", "depth": 3},
    "arrows or W A S D slide the tiles",
)
PRESSING: tuple[Dict, str] = (
    {"player": "tetris/keys", "of": {"player": "tetris/two-tetrad", "heuristic": "bcts"}},
    "left, right, down move the piece, up and Z turn it, space drops it, C holds it",
)
GAMES = {"2048": SLIDING, "keys": PRESSING, "versus": PRESSING}  # who is asked for hints, and what keys do
PLAYING = "H asks for a hint, U takes a move back, R restarts, Q quits"
WAIT, LONGEST = 0, 0.25  # the action while time passes; seconds that are caught up
LONGEST_ROUTE = 100  # keys of a hint


class Session:
    """A game in play: the environment, its seed and the actions so far. The arguments are those of `play`.

    In a timed game, steps of `WAIT` pass while nobody presses a key, from the first key on.
    """

    def __init__(self, env_id: str, kwargs: Options, seed: int | None, adviser: str | Options | None = None) -> None:
        self.game = game_of(env_id)
        self.match = Match.read(env_id, kwargs)
        self.env: Any = self.match.make(render_mode="ansi").unwrapped
        if self.game.name not in GAMES:
            there = "by hand play mergefall/TetrisKeys-v0, or as 'you' on a page of `mergefall report`"
            raise ValueError(f"{self.match.env_id} has no keys, because an action places a piece; {there}")
        usual, self._controls = GAMES[self.game.name]
        self._adviser = player_of(adviser or usual, "adviser").with_rules(self.game.rules_of(self.match.env_kwargs))
        self._keys: dict[tuple[int, ...], int] = self.env.get_keys_to_action()
        self._second = self.env.metadata["render_fps"] if self.env.rules.timed else 0  # steps that pass in one
        self.begin(secrets.randbelow(SEEDS) if seed is None else seed)

    def begin(self, seed: int) -> None:
        """Begin the game from a seed."""
        self.seed, self._began = seed, time.perf_counter()
        self._replay([])

    def _replay(self, actions: Sequence[int]) -> None:
        self.actions: list[int] = []
        self._turns: list[int] = []  # of each action the turn that it was a part of
        self._passed: float | None = None  # when the last step passed; None: time stands still
        self._game = steps(self.env, self.seed, lambda step: self.actions[-1])
        for action in (None, *actions):
            self._play(action)

    def _play(self, action: int | None) -> None:
        """Play an action; None: show the first position."""
        if action is not None:
            self._turns.append(self.step.info.get(self.game.turns, len(self.actions)))
            self.actions.append(action)
        self.step, self.hint = next(self._game), ""

    def press(self, key: str) -> bool:
        """Do what a key says; False if it ends the session."""
        match key:
            case "u" if self.actions:
                self._take_back()
            case "r":
                self.begin(self.seed)
            case _ if key == "q" or self.step.terminated:
                return key != "q"
            case "p":
                self._passed = None
            case "h":
                self._passed = None
                self.hint = self._route() if self.game.by_keys else self._choices()
            case _:
                code = CODES.get(key) or (ord(key) if len(key) == 1 else 0)
                action = self._keys.get((code,))
                if action is not None and self.step.info["action_mask"][action]:
                    self._play(action)
                    if self._second and self._passed is None:
                        self._passed = time.monotonic()
        return True

    def _take_back(self) -> None:
        """Return to the beginning of the turn in which the last key was pressed."""
        kept = len(self.actions)
        while self._second and kept and self.actions[kept - 1] == WAIT:
            kept -= 1
        self._replay(self.actions[: self._turns.index(self._turns[kept - 1]) if kept else 0])

    def _choices(self) -> str:
        """The action that the adviser prefers, and what others are worth."""
        mask = self.step.info["action_mask"]
        best, *others = choices_of(self._adviser, self.step.observation, mask, self.env.rules)
        return "; ".join([best.name, *(f"{one.name} is {_less(best.value, one.value)}" for one in others[:2])])

    def _route(self) -> str:
        """The keys that the adviser would press until the turn ends."""
        names, keys, state = action_names(self.env.rules), [], None
        env = self.match.make().unwrapped  # not `self.env`, which draws what it plays
        env.restore_state(self.env.clone_state())
        observation, info = self.step.observation, self.step.info
        while info[self.game.turns] == self.step.info[self.game.turns] and len(keys) < LONGEST_ROUTE:
            action, state = self._adviser.predict(observation, state)
            keys.append(names[int(action)])
            observation, *_, info = env.step(int(action))
        return ", ".join(keys)

    def due(self) -> float | None:
        """Seconds until the next step passes by itself; None: never."""
        if self._passed is None or self.step.terminated:
            return None
        return max(0.0, self._passed + 1 / self._second - time.monotonic())

    def pass_time(self) -> None:
        """Play the steps that have passed by themselves; of a long break only its last quarter of a second."""
        longest = time.monotonic() - LONGEST
        while self._passed is not None and self.due() == 0:
            self._play(WAIT)
            self._passed = max(self._passed, longest) + 1 / self._second

    def lines(self) -> list[str]:
        """What is written below the picture: figures, a hint, and the keys."""
        figures = f"{figures_of(self.game, self.step.info)}, moves {len(self.actions)}, seed {self.seed}"
        figures += "; paused" * bool(self._second and self._passed is None and not self.step.terminated)
        advice = f"{self._adviser.name} prefers {self.hint}" if self.hint else ""
        others = "P pauses, " * bool(self._second) + PLAYING
        return [figures + "; game over" * self.step.terminated, advice, self._controls, others]

    def record(self) -> Episode:
        """The finished game as the record of an episode."""
        figures = {name: self.step.info[name] for name in self.game.figures}
        actions, seconds = np.array(self.actions, np.uint16), time.perf_counter() - self._began
        return played(self.seed, actions, len(actions), True, seconds, figures)


def _less(best: float, value: float) -> str:
    """How much less an action is worth than the best one; −∞ is fatal."""
    return "as good" if value == best else "fatal" if math.isinf(value) else f"{short_number(best - value)} less"


def play(
    env_id: str, kwargs: Options, seed: int | None, *, adviser: str | Options | None = None, out: Path | None = None
) -> None:
    """Play by hand until Q; the arguments are those of `mergefall play`.

    With `out`, Q, R and Ctrl-C after a game's end keep the game, and R then begins one from another seed. Before its
    end, Q asks.

    Raises ValueError if the file `out` holds other games, or the game of this seed already.
    """
    session, screen = Session(env_id, kwargs, seed, adviser), Terminal()
    if not screen.interactive:
        raise ValueError("playing in the terminal needs a keyboard and a screen, but standard input or output is none")
    header = Header(player=BY_HAND, options={}, package=__version__, **session.match.said())
    with nullcontext() if out is None else RecordFile(out, header) as file, ExitStack() as opened:
        if file is not None and session.seed in file.episodes:
            raise ValueError(f"{out} holds the game from seed {session.seed} already; choose another seed")
        opened.enter_context(screen)
        going, asked = True, False
        try:
            while going:
                asking = ["This game is not over, and would not be kept. Q again: quit; any other key: go on."] * asked
                screen.show([session.env.render()], [*session.lines(), *asking])
                for key in screen.read(None if asked else session.due()):
                    over = session.step.terminated
                    if file is not None and over and key == "r":
                        file.append(session.record())
                        session.begin(max(file.episodes) + 1)  # of which the file has no game
                    elif file is not None and key == "q" and session.actions and not over and not asked:
                        session.press("p")
                        asked = True
                        continue
                    elif not (going := session.press(key)):
                        break
                    asked = False
                session.pass_time()
        finally:  # Ctrl-C ends the session, too
            if file is not None and session.step.terminated:
                file.append(session.record())
    if file is not None:
        print(f"{out} holds {len(file.episodes)} finished games")
