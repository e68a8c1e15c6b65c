"""Drawing: pixels as pygame's own copy has them, numbers that fit, and pictures that do not change what is kept."""

import numpy as np
import pytest

pytest.importorskip("pygame")
import pygame
from mergefall.draw import DARK, number, pixels
from mergefall.draw import pygame as ready
from mergefall.game2048.render import draw


def test_pixels_are_those_of_the_surface():
    surface = ready().Surface((13, 7))
    for x in range(13):
        for y in range(7):
            surface.set_at((x, y), (20 * x, 30 * y, (x * y) % 256))
    found = pixels(surface)
    np.testing.assert_array_equal(found, pygame.surfarray.array3d(surface).swapaxes(0, 1))
    found[:] = 0  # a copy
    assert surface.get_at((12, 6))[:3] == (240, 180, 72)


@pytest.mark.parametrize("value", [0, 7, 1234567890])
def test_a_number_is_as_high_as_asked_or_fits_the_width(value):
    ready()
    free = number(value, DARK, 1000, 26)
    assert free.get_height() == 26
    assert free.get_bounding_rect().height >= 24
    narrow = number(value, DARK, free.get_width() // 2, 26)
    assert narrow.get_width() <= free.get_width() // 2
    assert narrow.get_height() < 26


def test_numbers_tell_their_digits_apart():
    ready()
    drawn = {str(value): pixels(number(value, (255, 255, 255), 1000, 26)).tobytes() for value in range(100)}
    assert len(set(drawn.values())) == 100


def test_a_picture_leaves_what_is_kept_as_it_was():
    board = np.arange(16).reshape(4, 4)
    first = draw(board, score=1234)
    draw(board.T, score=99)
    np.testing.assert_array_equal(draw(board, score=1234), first)
