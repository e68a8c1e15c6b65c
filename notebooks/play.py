"""Draw notebooks/play.gif, the animated picture of the README: a searcher plays 2048, a trained agent plays Tetris.

    python notebooks/play.py [--out notebooks/play.gif]

It takes about a minute and needs the extra `render` (`pip install -e ".[render]"`).
"""

from __future__ import annotations

import argparse
from collections import deque
from pathlib import Path
from typing import Any

import gymnasium as gym
import mergefall  # noqa: F401  (registers the environments)
import numpy as np
from mergefall_baselines import make
from PIL import Image, ImageDraw, ImageFont

FRAMES, FPS, LAST_SECONDS = 64, 8, 1.5
HEIGHT, MARGIN, CAPTION = 420, 12, 34  # pixels
COLOURS = 128
CAPTIONS = ("2048: n-tuple network + expectimax", "Tetris: trained agent, no search")
INK, PAPER = (40, 40, 46), (255, 255, 255)


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


def frame_of(env: Any, state: Any) -> Any:
    env.unwrapped.restore_state(state)
    return env.render()


def side_by_side(left: Any, right: Any) -> Image.Image:
    """Two frames at the same height, each above its caption."""
    parts = [Image.fromarray(np.asarray(frame)) for frame in (left, right)]
    parts = [
        part.resize((round(part.width * HEIGHT / part.height), HEIGHT), Image.Resampling.LANCZOS) for part in parts
    ]
    width = sum(part.width for part in parts) + 3 * MARGIN
    picture = Image.new("RGB", (width, HEIGHT + 2 * MARGIN + CAPTION), PAPER)
    draw, font, x = ImageDraw.Draw(picture), ImageFont.load_default(size=17), MARGIN
    for part, caption in zip(parts, CAPTIONS, strict=True):
        picture.paste(part, (x, MARGIN))
        draw.text((x + part.width / 2, HEIGHT + MARGIN + CAPTION / 2), caption, INK, font, anchor="mm")
        x += part.width + MARGIN
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".gif"))
    asked = parser.parse_args()
    pictures = [side_by_side(*pair) for pair in zip(frames_2048(seed=1), frames_tetris(seed=1), strict=True)]
    some = np.concatenate([np.asarray(picture) for picture in pictures[::7]])  # no frame has all colours
    palette = Image.fromarray(some).quantize(COLOURS)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    times = [1000 // FPS] * (len(frames) - 1) + [round(1000 * LAST_SECONDS)]
    frames[0].save(asked.out, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)
    print(f"{asked.out}: {pictures[0].size}, {len(frames)} frames, {asked.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
