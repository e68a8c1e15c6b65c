"""How a worker measures: for about a second."""

import time

SECONDS = 1.0


def rate(chunk, size):
    """Steps per second of `chunk`, which plays `size` steps and returns the seconds they took."""
    steps, seconds = 0, 0.0
    while seconds < SECONDS:
        seconds += chunk()
        steps += size
    return steps / seconds


def batched(env_id, size, moves, **kwargs):
    """A native batch, random legal actions, `moves` at a time; observations, masks, rewards and infos in every step.

    A game that ends begins anew within the step, as in the peers: each step is a move.
    """
    import gymnasium as gym
    import mergefall  # noqa: F401
    import numpy as np

    envs = gym.make_vec(env_id, num_envs=size, autoreset_mode="SameStep", **kwargs)
    _, infos = envs.reset(seed=0)
    noise = np.random.default_rng(0).random((8, size, int(envs.single_action_space.n)))
    steps = max(1, moves // size)

    def chunk():
        nonlocal infos
        seconds = 0.0
        for i in range(steps):
            actions = (infos["action_mask"] * noise[i % 8]).argmax(axis=1)
            start = time.perf_counter()
            *_, infos = envs.step(actions)
            seconds += time.perf_counter() - start
        return seconds

    chunk()
    return lambda: rate(chunk, steps * size)
