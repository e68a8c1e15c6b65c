"""Pictures of Tetris by keys: cells and colours against the reference, what stands beside the field, play by hand."""

from dataclasses import dataclass, field

import gymnasium as gym
import numpy as np
import pytest
from mergefall.tetris.keys import CLEARS, KEYS
from mergefall.tetris.keys.reference import Game

from .test_keys import CHANCES, ID, NAMES, reference_of, set_level


@dataclass
class Coloured(Game):
    """The reference with the names of the pieces that left the cells."""

    names: dict = field(default_factory=dict)

    def lock(self):
        before, lines, rises = self.lines, {}, self.pending
        self.names |= dict.fromkeys(self.falling.cells(), self.falling.name)
        for row, column in self.board | self.falling.cells():
            lines.setdefault(row, set()).add(column)
        full = [row for row, columns in lines.items() if len(columns) == self.cols]
        super().lock()
        up = 0 if self.lines > before else rises
        self.names = {(r - sum(f < r for f in full) + up, c): n for (r, c), n in self.names.items() if r not in full}


@pytest.mark.parametrize(
    "kwargs",
    [
        {"cols": 4, "rows": 8, "gravity": 0.5, "lock_delay": 2},
        {"cols": 5, "rows": 10, "garbage": {"rows": 0.4, "holes": 2}, "gravity": 1},
        {"cols": 4, "rows": 6, "garbage": {"rows": 1.5}, "preview": 0, "hold": False, "levels": True},
        {"pieces": "tetromino", "randomizer": "uniform", "gravity": 0},
    ],
)
def test_cells_are_those_of_the_reference_in_their_colours(kwargs):
    env = gym.make(ID, render_mode="ansi", rotate_180=True, **kwargs).unwrapped
    rng, seen = np.random.default_rng(0), {"lines": 0, "garbage": 0, "outlined": 0}
    for seed in range(30):
        env.reset(seed=seed)
        slow, _ = reference_of(seed, env.rules, Coloured)
        for _ in range(300):
            if env.rules.levels:
                set_level(slow)
            scene = env._canvas.scene(env._states[0])
            assert scene.cells.shape == (env.rules.rows + 2, env.rules.cols)
            expected = np.zeros((env.rules.rows + 8, env.rules.cols), int)
            for cell in slow.board:
                expected[cell] = 2 + NAMES.index(slow.names[cell]) if cell in slow.names else 1
                seen["garbage"] += cell not in slow.names
            outline = expected * 0
            lands = slow.falling
            while not slow.over and (there := slow.below()):
                slow.falling = there
            for cell in slow.falling.cells() - lands.cells() - slow.board:
                outline[cell] = 2 + NAMES.index(lands.name)
            slow.falling = lands
            for cell in lands.cells():
                expected[cell] = 2 + NAMES.index(lands.name)
            shown = slice(env.rules.rows + 1, None, -1)
            np.testing.assert_array_equal(scene.cells, expected[shown])
            np.testing.assert_array_equal(scene.aimed, outline[shown])
            assert scene.garbage == (slow.pending if "garbage" in kwargs else None)
            assert ("game over" in scene.notes) == slow.over
            seen["outlined"] += outline.any()
            if slow.over:
                break
            key = rng.choice(9, p=CHANCES)
            lines = slow.lines
            *_, info = env.step(key)
            slow.step(KEYS[key], env.rules.hold)
            seen["lines"] += slow.lines - lines
            if info["clear"]:
                assert env._canvas.scene(env._states[0]).notes[0] == CLEARS[info["clear"]]
    assert seen["outlined"] > 300
    assert seen["lines"] > (5 if env.rules.cols < 10 else -1)
    assert bool(seen["garbage"]) == ("garbage" in kwargs)


BOARD = "..../..../..../####/####/####/####".replace("####", "###.")
PLAYED = ("clockwise", "right", "right", "hard drop")  # I into the well on the right


def test_what_stands_beside_the_field():
    env = gym.make(ID, cols=4, rows=7, gravity=0, garbage={"rows": 2}, render_mode="ansi").unwrapped
    env.reset(seed=0, options={"board": BOARD, "piece": "I", "queue": list("OTSZJ")})
    canvas = env._canvas
    assert canvas.scene(env._states[0]).panel == [("hold", []), ("next", [NAMES.index(name) for name in "OTSZJ"])]
    for key in PLAYED:
        env.step(KEYS.index(key))
    scene = canvas.scene(env._states[0])
    assert scene.notes == ["perfect clear tetris", "", "back-to-back", ""]
    assert dict(scene.figures) == {"lines": 4, "score": 2810, "attack": 10}
    assert (scene.garbage, scene.panel[0]) == (2, ("hold", []))
    env.step(KEYS.index("hold"))
    assert canvas.scene(env._states[0]).panel[0] == ("hold", [NAMES.index("O")])
    lines = env.render().splitlines()
    assert lines[0] == "lines 4  score 2810  attack 10  perfect clear tetris  back-to-back"
    assert len(lines) == 1 + 2 + 7
    red = "\x1b[48;2;224;82;76m\x1b[38;2;224;82;76m "
    assert [line.startswith(red) for line in lines] == [False] * 8 + [True] * 2


def test_each_key_of_the_game_is_on_the_keyboard():
    for half in (False, True):
        env = gym.make(ID, rotate_180=half).unwrapped
        assert {0, *env.get_keys_to_action().values()} == set(range(env.action_space.n))
