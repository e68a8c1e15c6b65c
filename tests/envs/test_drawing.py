"""Pictures: what is kept between frames changes no pixel."""

import gymnasium as gym
import mergefall.game2048.render
import mergefall.tetris.render
import numpy as np
import pygame as pg
import pytest
from mergefall import draw

RENDERERS = {"mergefall/Game2048-v0": mergefall.game2048.render}  # else that of Tetris
CONFIGURATIONS = [
    ("mergefall/Game2048-v0", {}),
    ("mergefall/Game2048-v0", {"rows": 2, "cols": 3}),
    ("mergefall/Tetris-v0", {"cols": 6, "rows": 7, "preview": 5}),
    ("mergefall/Tetris-v0", {"pieces": "five", "rows": 30, "preview": 0}),
    ("mergefall/TetrisKeys-v0", {"cols": 5, "rows": 6, "garbage": {"rows": 1}, "gravity": 1, "levels": True}),
]


def plain_text(text, colour, width, height):
    """The slow twin of `draw.fitting`: a new font and a new surface for each text."""
    word = draw.pygame().font.Font(None, draw.TALL * draw.FINE).render(text, True, colour)
    word = word.subsurface(word.get_bounding_rect())
    scale = min(width / word.get_width(), height / word.get_height())
    return draw.pygame().transform.smoothscale(
        word, (round(word.get_width() * scale), round(word.get_height() * scale))
    )


def plain_pixels(surface):
    """The slow twin of `draw.pixels`."""
    return np.ascontiguousarray(draw.pygame().surfarray.array3d(surface).swapaxes(0, 1))


def frames(env_id, kwargs, count=60):
    """Frames of a random game from its start to its end, and of the next."""
    env = gym.make(env_id, render_mode="rgb_array", **kwargs)
    _, info = env.reset(seed=3)
    env.action_space.seed(3)
    for _ in range(count):
        yield env.render()
        _, _, terminated, _, info = env.step(env.action_space.sample(info["action_mask"]))
        if terminated:
            yield env.render()
            _, info = env.reset()


@pytest.mark.parametrize(("env_id", "kwargs"), CONFIGURATIONS)
def test_frames_are_those_drawn_from_nothing(env_id, kwargs, monkeypatch):
    """Each frame equals the one that is drawn without kept text and fonts."""
    fast = list(frames(env_id, kwargs))
    renderer = RENDERERS.get(env_id, mergefall.tetris.render)
    monkeypatch.setattr(renderer, "fitting", plain_text)
    monkeypatch.setattr(renderer, "pixels", plain_pixels)
    kept = [function for function in vars(renderer).values() if hasattr(function, "cache_clear")]
    for function in kept:
        function.cache_clear()
    slow = list(frames(env_id, kwargs))
    for function in kept:  # nothing of this test stays behind
        function.cache_clear()
    assert len(fast) == len(slow) >= 60
    for mine, theirs in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert not np.array_equal(fast[0], fast[1])
    assert [side % 2 for side in fast[0].shape[:2]] == [0, 0]  # as films need
    assert len({frame.shape for frame in fast}) == 1


def test_text_is_drawn_after_pygame_was_closed():
    before = np.array(draw.pixels(draw.fitting("4711", draw.DARK, 100, 20)))
    pg.quit()
    draw.fitting.cache_clear()
    np.testing.assert_array_equal(draw.pixels(draw.fitting("4711", draw.DARK, 100, 20)), before)


@pytest.mark.parametrize("depth", [24, 32])
@pytest.mark.parametrize("size", [(3, 2), (7, 5)])
def test_pixels_of_surfaces_of_any_depth(depth, size):
    surface = pg.Surface(size, depth=depth)
    for x in range(size[0]):
        for y in range(size[1]):
            surface.set_at((x, y), (10 * x, 20 * y, 30))
    np.testing.assert_array_equal(draw.pixels(surface), plain_pixels(surface))
    assert draw.pixels(surface)[1, 2].tolist() == [20, 20, 30]
