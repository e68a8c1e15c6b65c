"""Watch one or two games in the terminal, in a window or as a video."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.error import DependencyNotInstalled
from mergefall.games import GAMES
from mergefall.typing import Options
from mergefall_baselines import Player, make

from mergefall_training.files import check_folder
from mergefall_training.play.records import RECORDED, Episode, Header, actions_of, read_records
from mergefall_training.play.screens import Screen, side_by_side
from mergefall_training.play.steps import chosen_by, recorded, steps
from mergefall_training.play.workers import environment, task
from mergefall_training.progress import printable, progress_bar
from mergefall_training.wrappers.adversary import adversary as with_adversary

HELP = "space pauses, + and - change the speed, right takes a step, Q quits"
FASTER = 1.5  # what a press of + multiplies the speed by


@dataclass(frozen=True)
class Show:
    """One game: `player` plays it, or if that is None its recorded `actions`; `record`: the episode as recorded."""

    header: Header
    seed: int
    player: Player | None = None
    actions: Sequence[int] = ()
    record: Episode | None = None

    @classmethod
    def of(cls, header: Header, seed: int, record: Episode | None = None) -> Show:
        """The game that a header's player plays from a seed; `record`: as it was recorded."""
        player = make(header.player, **header.options)
        job = task(player, header.env_id, header.env_kwargs, header.max_episode_steps, header.adversary)
        game = job.env_id, job.env_kwargs, job.max_episode_steps, header.package, job.adversary
        return cls(Header(header.player, header.options, *game), seed, job.player, record=record)

    @classmethod
    def recorded(cls, path: Path, seed: int | None) -> Show:
        """A recorded game; without a seed the one with the lowest result. The player plays if actions are missing."""
        header, episodes = read_records(path)
        if seed is None and episodes:
            seed = min(episodes, key=lambda episode: episode.result).seed
        record = next((episode for episode in episodes if episode.seed == seed), None)
        if record is None:
            seeds = f", from seeds {episodes[0].seed} to {episodes[-1].seed}" if episodes else ""
            raise ValueError(f"{path} has no game from seed {seed}; it has {len(episodes)} games{seeds}")
        if record.length > RECORDED:
            header.check_player()
            return cls.of(header, record.seed, record)
        actions = actions_of(record.actions, record.length).tolist()
        return cls(header, record.seed, None, actions, record)

    def environment(self, render_mode: str) -> gym.Env[Any, Any]:
        """The environment of the game, with its adversary."""
        header, against = self.header, self.header.adversary
        shown = {"render_mode": render_mode, "max_episode_steps": header.max_episode_steps}
        env = environment(header.env_id, header.game_kwargs, **shown)
        return env if against is None else with_adversary(env, against["player"], against["rate"])

    def moves(self, env: gym.Env[Any, Any]) -> Iterator[dict[str, Any]]:
        """Play the game in `env`; yields `info`, with the number of `moves`, at the start and after each move."""
        choose = recorded(self.actions) if self.player is None else chosen_by(self.player, self.seed)
        for moves, step in enumerate(steps(env, self.seed, choose)):
            yield step.info | {"moves": moves}

    def status(self, info: Options) -> str:
        """Title, seed and figures in one line."""
        return f"{self.header.title}, seed {self.seed}: {figures_of(info)}"

    def check(self, info: Options) -> None:
        """Raises ValueError if the game ended otherwise than the recorded one."""
        if (record := self.record) is None:
            return
        headline = record.game.headline
        if (info[headline], info["moves"]) != (record.result, record.length):
            raise ValueError(
                f"this game ended with {headline} {info[headline]} after {info['moves']} moves, the recorded one with "
                f"{record.result} after {record.length}: the player or the game has changed since"
            )


def figures_of(info: Options) -> str:
    """The figures in an environment's `info` as text."""
    names = (*dict.fromkeys(name for game in GAMES.values() for name in game.figures), "moves")
    return ", ".join(f"{name.replace('_', ' ')} {info[name]}" for name in names if name in info)


def together(shows: Sequence[Show], envs: Sequence[gym.Env[Any, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Play games side by side; yields all infos at the start and after each move, until all games are over."""
    infos: Sequence[dict[str, Any]] = ()
    for step in zip_longest(*(show.moves(env) for show, env in zip(shows, envs, strict=True))):
        infos = [info or last for info, last in zip(step, infos or step, strict=True)]
        yield infos


def watch(shows: Sequence[Show], screen: Screen, fps: float) -> None:
    """Show games side by side, `fps` moves a second, until they are over or somebody presses Q."""
    envs = [show.environment(screen.render_mode) for show in shows]
    pace, infos, status = _pace(screen, fps), [], []
    with screen:
        for infos in together(shows, envs):
            status = [show.status(info) for show, info in zip(shows, infos, strict=True)]
            screen.show([env.render() for env in envs], [*status, HELP] if screen.interactive else [])
            if not next(pace):
                break
        else:
            screen.show([env.render() for env in envs], status)
            screen.read(2 if screen.render_mode == "rgb_array" else 0)  # time to look at the last board
            for show, info in zip(shows, infos, strict=True):
                show.check(info)
    if screen.render_mode == "rgb_array":
        print(printable("\n".join(status)))


def _pace(screen: Screen, fps: float) -> Iterator[bool]:
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


def film(shows: Sequence[Show], path: Path, fps: float) -> None:
    """Write games side by side as a video, .mp4 or .gif; the file appears when it is complete."""
    if path.suffix not in (".mp4", ".gif"):
        raise ValueError(f"{path}: expected a file name that ends in .mp4 or .gif")
    try:
        import imageio.v2 as imageio
    except ModuleNotFoundError as error:
        raise DependencyNotInstalled("videos need imageio: pip install 'mergefall[render]'") from error
    # libx264 needs even sizes; by default imageio scales to multiples of 16.
    style = {"fps": fps, "macro_block_size": 2} if path.suffix == ".mp4" else {"duration": 1000 / fps, "loop": 0}
    check_folder(path)
    temporary = path.with_name(f".{path.stem}.part{path.suffix}")
    envs, infos = [show.environment("rgb_array") for show in shows], []
    total = None if any(show.player for show in shows) else 1 + max(len(show.actions) for show in shows)
    try:
        with imageio.get_writer(temporary, **style) as writer, progress_bar(f"{path.name}: pictures", total) as done:
            for infos in together(shows, envs):
                pictures: list[Any] = [env.render() for env in envs]
                writer.append_data(side_by_side(pictures))  # pyright: ignore[reportAttributeAccessIssue]
                done(1 + max(info["moves"] for info in infos), "")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    status = [show.status(info) for show, info in zip(shows, infos, strict=True)]
    print(printable("\n".join([*status, f"written to {path}"])))
    for show, info in zip(shows, infos, strict=True):
        show.check(info)
