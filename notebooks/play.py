"""Draw README.md's pictures: play.gif, games of 2048 and Tetris, and environments.png, a board of each environment.

    python notebooks/play.py

It takes about a minute and needs the extra `render` (`pip install -e ".[render]"`).
"""

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from mergefall.games import game_of
from mergefall_baselines import make
from PIL import Image, ImageDraw, ImageFont

FRAMES, FPS, LAST_SECONDS = 64, 8, 1.5
HEIGHT, MARGIN, CAPTION = 420, 12, 34  # pixels
COLOURS = 128
CAPTIONS = ("2048: n-tuple network + expectimax", "Tetris: trained agent, no search")
INK, PAPER = (40, 40, 46), (255, 255, 255)
SHOWN_BY = {
    "mergefall/Game2048-v0": "2048/expectimax",
    "mergefall/Tetris-v0": "tetris/bcts",
    "mergefall/SZTetris-v0": "tetris/sz-afterstate",
    "mergefall/Quintris-v0": "quintris/expectimax",
    "mergefall/TetrisKeys-v0": "tetris/keys",
    "mergefall/TetrisVersus-v0": "tetris/keys",
}
STEPS = {"2048": 500, "tetris": 100, "keys": 400, "versus": 400}  # actions before a picture


def frames_2048(seed: int) -> list[Any]:
    """The moves that lead to a tile of 16384, and a few after it."""
    player = make("2048/ntuple", network="strong", downgrade=16384, depth=2)
    env = gym.make("mergefall/Game2048-v0", render_mode="rgb_array")
    obs, info = env.reset(seed=seed)
    states: deque[Any] = deque(maxlen=FRAMES)
    left = 12  # moves shown after the merge
    while left:
        states.append(env.unwrapped.clone_state())  # pyright: ignore[reportAttributeAccessIssue]
        obs, _, terminated, _, info = env.step(int(player.act(obs)))
        left -= info["max_tile"] >= 16384
        assert not terminated, f"seed {seed} ends at {info['max_tile']}; choose another"
    return [frame_of(env, state) for state in states]


def frames_tetris(seed: int) -> list[Any]:
    """The pieces after the first thirty."""
    player = make("tetris/afterstate")
    env = gym.make("mergefall/Tetris-v0", rows=12, render_mode="rgb_array")
    obs, _ = env.reset(seed=seed)
    frames = []
    for pieces in range(30 + FRAMES):
        if pieces >= 30:
            frames.append(env.render())
        obs, _, terminated, _, _ = env.step(int(player.act(obs)))
        assert not terminated, f"seed {seed} ends after {pieces} pieces; choose another"
    return frames


def board(env_id: str, player: str, kwargs: dict[str, Any], options: dict[str, Any]) -> Any:
    """A picture of a player's first game after some steps, or of its end if it ends before."""
    env = gym.make(env_id, render_mode="rgb_array", **kwargs)
    playing: Any = make(player, **options).with_rules(env.unwrapped.rules.__dict__)  # pyright: ignore
    observation, _ = env.reset(seed=0)
    state, over, step = playing.start(0), False, 0
    while not over and step < STEPS[game_of(env_id).name]:
        action, state = playing.predict(observation, state)
        observation, _, terminated, truncated, _ = env.step(int(action))
        over, step = terminated or truncated, step + 1
    return env.render()


def row(pictures: Sequence[Any], captions: Sequence[str], height: int, letters: int) -> Image.Image:
    """Pictures at the same height, each above its caption."""
    parts = [Image.fromarray(np.asarray(picture)) for picture in pictures]
    parts = [
        part.resize((round(part.width * height / part.height), height), Image.Resampling.LANCZOS) for part in parts
    ]
    width = sum(part.width for part in parts) + MARGIN * (len(parts) + 1)
    page = Image.new("RGB", (width, height + 2 * MARGIN + CAPTION), PAPER)
    draw, font, x = ImageDraw.Draw(page), ImageFont.load_default(size=letters), MARGIN
    for part, caption in zip(parts, captions, strict=True):
        page.paste(part, (x, MARGIN))
        draw.text((x + part.width / 2, height + MARGIN + CAPTION / 2), caption, INK, font, anchor="mm")
        x += part.width + MARGIN
    return page


def frame_of(env: Any, state: Any) -> Any:
    env.unwrapped.restore_state(state)
    return env.render()


def main() -> None:
    folder = Path(__file__).parent
    boards = [board(env_id, player, {}, {}) for env_id, player in SHOWN_BY.items()]
    strip = row(boards, [env_id.partition("/")[2] for env_id in SHOWN_BY], 300, 26)
    strip.quantize(COLOURS // 2).save(folder / "environments.png", optimize=True)
    pictures = [
        row(pair, CAPTIONS, HEIGHT, 17) for pair in zip(frames_2048(seed=1), frames_tetris(seed=1), strict=True)
    ]
    some = np.concatenate([np.asarray(picture) for picture in pictures[::7]])  # no frame has all colours
    palette = Image.fromarray(some).quantize(COLOURS)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    times = [1000 // FPS] * (len(frames) - 1) + [round(1000 * LAST_SECONDS)]
    gif = folder / "play.gif"
    frames[0].save(gif, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)


if __name__ == "__main__":
    main()
