"""What is measured of Tetris, as `workers.py` says."""

import itertools
import subprocess
import tempfile
import time
from pathlib import Path

from measuring import SECONDS, batched, rate

HERE = Path(__file__).parent


def single(env, steps, and_also=lambda: None):
    """One environment, random legal actions from its masks, reset where an episode ends."""
    import numpy as np

    noise = np.random.default_rng(0)
    _, info = env.reset(seed=0)

    def chunk():
        nonlocal info
        seconds = 0.0
        for _ in range(steps):
            action = int(noise.choice(np.flatnonzero(info["action_mask"])))
            start = time.perf_counter()
            _, _, terminated, truncated, info = env.step(action)
            and_also()
            if terminated or truncated:
                _, info = env.reset()
            seconds += time.perf_counter() - start
        return seconds

    chunk()
    return lambda: rate(chunk, steps)


def single_ours(afterstates):
    import gymnasium as gym
    import mergefall  # noqa: F401

    env = gym.make("mergefall/Tetris-v0")
    return single(env, 2000, *([env.unwrapped.afterstates] if afterstates else []))


def single_peer():
    import gymnasium as gym
    from tetris_gymnasium.envs import Tetris
    from tetris_gymnasium.wrappers.grouped import GroupedActionsObservations

    gym.register("Peer-v0", Tetris)
    return single(GroupedActionsObservations(gym.make("Peer-v0")), 50)


def batched_jumanji(size):
    """jumanji on all cores with its own auto-reset."""
    import jax
    import jax.numpy as jnp
    import jumanji
    from jumanji.wrappers import AutoResetWrapper, VmapWrapper

    env = VmapWrapper(AutoResetWrapper(jumanji.make("Tetris-v0")))
    state, timestep = jax.jit(env.reset)(jax.random.split(jax.random.key(0), size))
    step = jax.jit(env.step)

    @jax.jit
    def choose(mask, key):
        best = (mask.reshape(size, -1) * jax.random.uniform(key, (size, mask[0].size))).argmax(axis=1)
        return jnp.stack([best // mask.shape[2], best % mask.shape[2]], axis=1)

    def chunk():
        nonlocal state, timestep
        seconds = 0.0
        for i in range(32):
            actions = jax.block_until_ready(choose(timestep.observation.action_mask, jax.random.key(i)))
            start = time.perf_counter()
            state, timestep = jax.block_until_ready(step(state, actions))
            seconds += time.perf_counter() - start
        return seconds

    chunk()
    return lambda: rate(chunk, 32 * size)


def player(name, env_id, pieces, **kwargs):
    """A player's decisions in whole games of its compiled loop, capped."""
    from mergefall_baselines import make

    options = kwargs.pop("options", {})
    searcher = make(name, **options).with_rules(kwargs)
    seeds = itertools.count()

    def measure():
        moves, seconds = 0, 0.0
        while seconds < SECONDS:
            start = time.perf_counter()
            moves += len(searcher.play(env_id, next(seeds), kwargs, max_episode_steps=pieces))
            seconds += time.perf_counter() - start
        return moves / seconds

    measure()
    return measure


def greedy_c():
    """greedy.c, compiled for this machine."""
    folder = tempfile.TemporaryDirectory()
    program = Path(folder.name) / "greedy"
    subprocess.run(["cc", "-O3", "-march=native", "-o", program, HERE / "greedy.c"], check=True)
    seeds = itertools.count()

    def measure():
        command = [program, "300000", str(next(seeds))]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0])

    measure.folder = folder  # kept as long as the measuring
    return measure


WORKERS = {
    "tetris-single-ours": lambda size: single_ours(afterstates=False),
    "tetris-single-afterstates": lambda size: single_ours(afterstates=True),
    "tetris-single-peer": lambda size: single_peer(),
    "tetris-batched-1": lambda size: batched("mergefall/Tetris-v0", size, 20_000, threads=1, rows=10),
    "tetris-batched-2": lambda size: batched("mergefall/Tetris-v0", size, 20_000, threads=2, rows=10),
    "tetris-batched-jumanji": batched_jumanji,
    "tetris-greedy": lambda size: player("tetris/bcts", "mergefall/Tetris-v0", 300_000),
    "tetris-greedy-c": lambda size: greedy_c(),
    "tetris-deep-drop": lambda size: player("tetris/two-tetrad", "mergefall/Tetris-v0", 300),
    "tetris-deep-slide": lambda size: player("tetris/two-tetrad", "mergefall/Tetris-v0", 100, placements="slide"),
    "tetris-quintris": lambda size: player("quintris/expectimax", "mergefall/Quintris-v0", 20, options={"depth": 2}),
}
