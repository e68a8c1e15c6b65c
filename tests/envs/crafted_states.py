"""Puts random words into sound states, restores them and plays on: run by `test_states.py` in a process of its own.

Prints (states restored, states refused) of each game as JSON. A state that is restored must be playable, one that is
refused must leave the game as it was.

    python tests/envs/crafted_states.py 200 mergefall/Tetris-v0 '{"randomizer": "hidden"}'
"""

import json
import sys

import gymnasium as gym
import mergefall  # noqa: F401 (registers the ids)
import numpy as np

STEPS, GAMES = 200, 3


def craft(rng, state):
    """The state with one word, or a few, overwritten by a random, a small, a near or another state's value."""
    state = state.copy()
    for word in rng.integers(1, state.size, rng.choice([1, 1, 1, 2, 4])):  # word 0 may be any number
        old = int(state[word])
        state[word] = rng.choice(
            np.array(
                [
                    rng.integers(1 << 64, dtype=np.uint64),
                    rng.integers(64),
                    old ^ 1 << int(rng.integers(64)),
                    (old + int(rng.integers(-3, 4))) % (1 << 64),
                    state[rng.integers(state.size)],
                    1 << int(rng.integers(64)),
                ],
                dtype=np.uint64,
            )
        )
    return state


def play_on(rng, env, terms):
    """Two hundred steps, one in ten of them of any action; all that a state is asked for in between."""
    for step in range(STEPS):
        masks = np.atleast_2d(env.action_masks())
        legal = masks if rng.random() < 0.9 else np.ones_like(masks)
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in legal])
        if step % 20 == 0:
            env.afterstates()
            if terms:
                env.afterstate_terms("bcts")
        returned = env.step(actions if len(masks) > 1 else actions[0])
        if len(masks) == 1 and (returned[2] or returned[3]) and rng.random() < 0.5:
            env.reset()


def refusal(env, state):
    """The message with which a state is refused; None if it is restored."""
    try:
        env.restore_state(state)
    except ValueError as error:
        return str(error)
    return None


def main(env_id, kwargs, count):
    rng, outcomes = np.random.default_rng(count), [0, 0]
    terms = "Game2048" not in env_id
    envs = [gym.make(env_id, **kwargs).unwrapped, gym.make_vec(env_id, num_envs=GAMES, **kwargs).unwrapped]
    for i in range(count):
        env, batched = envs[i % 2], i % 2 == 1
        env.reset(seed=i)
        play_on(rng, env, terms) if i % 10 < 2 else None
        sound = env.clone_state()
        crafted, game = sound.copy(), int(rng.integers(GAMES))
        if batched:
            crafted[game] = craft(rng, sound[game])
        else:
            crafted = craft(rng, sound)
        message = refusal(env, crafted)
        assert message is None or message.startswith(f"state of game {game} " if batched else "state "), message
        assert (env.clone_state() == (crafted if message is None else sound)).all()
        outcomes[message is not None] += 1
        play_on(rng, env, terms)
    print(json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    for env_id, kwargs in zip(sys.argv[2::2], sys.argv[3::2], strict=True):
        main(env_id, json.loads(kwargs), int(sys.argv[1]))
