"""Watch a player's game in the terminal, in a window or as a video; play by hand with the keyboard."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.error import DependencyNotInstalled
from mergefall.games import GAMES
from mergefall.typing import Options
from mergefall_baselines import Player, make
from mergefall_baselines.player import takes_masks
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from mergefall_training.play.records import Episode, read_records
from mergefall_training.play.workers import Task, environment, task

ARROWS = {"A": 82, "B": 81, "C": 79, "D": 80}  # last letter of a terminal's ESC sequence -> SDL scancode of the arrow
SDL = 1 << 30  # added to a scancode, it gives the SDL key code


@dataclass(frozen=True)
class Show:
    """One game of a player; `record` is the recorded episode if the game is played again."""

    task: Task
    title: str
    seed: int
    record: Episode | None = None

    @classmethod
    def of(cls, player: str, options: Options, env: str, kwargs: Options, cap: int | None, seed: int) -> Show:
        """The game that a player plays from a seed."""
        return cls(task(make(player, **options), env, kwargs, cap), player, seed)

    @classmethod
    def recorded(cls, path: Path, seed: int | None) -> Show:
        """A recorded game, for the same player to play again; without a seed the one with the lowest result.

        Raises ValueError for a seed that is not in the file.
        """
        header, episodes = read_records(path)
        if seed is None and episodes:
            seed = min(episodes, key=lambda episode: episode.result).seed
        record = next((episode for episode in episodes if episode.seed == seed), None)
        if record is None:
            raise ValueError(f"{path} has no game from seed {seed}; it has seeds {[e.seed for e in episodes]}")
        header.check_no_import()
        player = make(header.player, **header.options)
        job = task(player, header.env_id, header.env_kwargs, header.max_episode_steps, header.adversary)
        return cls(job, header.title, record.seed, record)

    def moves(self, env: gym.Env[Any, Any]) -> Iterator[dict[str, Any]]:
        """Play the game in `env`; yields `info`, with the number of `moves`, at the start and after each move."""
        player = self.task.player
        assert isinstance(player, Player)
        observation, info = env.reset(seed=self.seed)
        state, moves, over, masked = player.start(self.seed), 0, False, takes_masks(player)
        yield info | {"moves": moves}
        while not over:
            masks = {"action_masks": info["action_mask"].astype(bool)} if masked else {}
            action, state = player.predict(observation, state, **masks)
            observation, _, terminated, truncated, info = env.step(int(action))
            moves, over = moves + 1, terminated or truncated
            yield info | {"moves": moves}

    def in_terminal(self, fps: float) -> None:
        """Show the game as text that is redrawn; if the output is no terminal, print only the end."""
        env, info = self._make("ansi"), {}
        with Live(console=Console(), auto_refresh=False) as live:
            for info in self.moves(env):
                live.update(_frame(env, self._status(info)), refresh=True)
                if live.console.is_terminal:
                    time.sleep(1 / fps)
        self._check(info)

    def in_window(self, fps: float) -> None:
        """Show the game in a window of the environment."""
        env = self._make("human")
        env.unwrapped.metadata = {**env.unwrapped.metadata, "render_fps": fps}
        info = deque(self.moves(env), maxlen=1).pop()
        time.sleep(2)  # time to look at the last board
        env.close()
        print(self._status(info))
        self._check(info)

    def film(self, path: Path, fps: float) -> None:
        """Write the game as a video, .mp4 or .gif; the file appears when it is complete."""
        if path.suffix not in (".mp4", ".gif"):
            raise ValueError(f"{path}: expected a file name that ends in .mp4 or .gif")
        try:
            import imageio.v2 as imageio
        except ModuleNotFoundError as error:
            raise DependencyNotInstalled("videos need imageio: pip install 'mergefall[render]'") from error
        # libx264 needs even sizes; by default imageio scales to multiples of 16.
        style = {"fps": fps, "macro_block_size": 2} if path.suffix == ".mp4" else {"duration": 1000 / fps, "loop": 0}
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, env, last = path.with_name(f".{path.stem}.part{path.suffix}"), self._make("rgb_array"), {}
        try:
            with imageio.get_writer(temporary, **style) as film:
                for info in self.moves(env):
                    film.append_data(env.render())  # pyright: ignore[reportAttributeAccessIssue]
                    last = info
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        print(f"{self._status(last)}; written to {path}")
        self._check(last)

    def _make(self, render_mode: str) -> gym.Env[Any, Any]:
        job = self.task
        steps = job.max_episode_steps
        return job.opposed(gym.make(job.env_id, max_episode_steps=steps, render_mode=render_mode, **job.env_kwargs))

    def _status(self, info: Options) -> str:
        return f"{self.title}, seed {self.seed}: {_figures(info)}"

    def _check(self, info: Options) -> None:
        record = self.record
        headline = record.game.headline if record else ""
        if record and (info[headline], info["moves"]) != (record.result, record.length):
            raise ValueError(
                f"this game ended with {headline} {info[headline]} after {info['moves']} moves, the recorded one with "
                f"{record.result} after {record.length}: the player or the game has changed since"
            )


def _frame(env: gym.Env[Any, Any], status: str) -> Group:
    return Group(Text.from_ansi(str(env.render())), Text(status))


def _figures(info: Options) -> str:
    names = (*dict.fromkeys(name for game in GAMES.values() for name in game.figures), "moves")
    return ", ".join(f"{name.replace('_', ' ')} {info[name]}" for name in names if name in info)


# -- play by hand -----------------------------------------------------------------------------------------------------


def play_in_window(env_id: str, kwargs: Options, seed: int | None) -> None:
    """Play with the keyboard in a window, by `gymnasium.utils.play`."""
    env = _playable(env_id, kwargs, "rgb_array")
    from gymnasium.utils.play import play

    play(env, seed=seed, wait_on_player=True)


def _playable(env_id: str, kwargs: Options, render_mode: str) -> gym.Env[Any, Any]:
    env = environment(env_id, kwargs, render_mode=render_mode)
    if not hasattr(env.unwrapped, "get_keys_to_action"):
        raise ValueError(f"{env_id} has no keys to play with")
    return env


def play_in_terminal(env_id: str, kwargs: Options, seed: int | None) -> None:
    """Play with the keyboard in the terminal: the environment's own keys; Q quits."""
    env = _playable(env_id, kwargs, "ansi")
    if not sys.stdin.isatty():
        raise ValueError("playing in the terminal needs a keyboard, but standard input is not one")
    game: Any = env.unwrapped
    actions: dict[tuple[int, ...], int] = game.get_keys_to_action()
    _, info = env.reset(seed=seed)
    over = False
    with Live(console=Console(), auto_refresh=False) as live, closing(keys()) as pressed:
        live.update(_frame(env, f"{_figures(info)} (arrows or W A S D; Q quits)"), refresh=True)
        for key in pressed:
            if key == ord("q"):
                break
            if (key,) not in actions:
                continue
            _, _, terminated, truncated, info = env.step(actions[(key,)])
            over = terminated or truncated
            live.update(_frame(env, f"{_figures(info)}{', game over' if over else ''}"), refresh=True)
            if over:
                break


def keys() -> Generator[int]:
    """Pressed keys: the code point of a letter, or the SDL key code of an arrow, as in Gymnasium's key tables."""
    if sys.platform == "win32":
        import msvcrt

        arrows = dict(zip("HPMK", ARROWS.values(), strict=True))
        while True:
            key = msvcrt.getwch()
            yield SDL | arrows.get(msvcrt.getwch(), 0) if key in "\x00\xe0" else ord(key.lower())
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        while pressed := os.read(keyboard, 64).decode(errors="ignore"):
            for key in re.findall(r"\x1b\[[A-D]|[^\x1b]", pressed):
                yield SDL | ARROWS[key[-1]] if len(key) > 1 else ord(key.lower())
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
