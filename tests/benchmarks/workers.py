"""What is measured, one name each; `bench.py` starts a process for each and asks for a figure line by line.

    python workers.py NAME [SIZE]

Each measures about a second and prints its figure (steps or moves per second) for every line it reads. Actions are
chosen outside the time taken, except in a `scan`, where pgx chooses and steps in one compiled loop.
"""

import json
import sys
import time
from pathlib import Path

import tetris_workers
from measuring import batched, rate


def single(name, register):
    """One environment through gym.make, random actions, reset where an episode ends."""
    import gymnasium as gym
    import numpy as np

    register(gym)
    env = gym.make(name)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 4, 2000).tolist()

    def chunk():
        step, start = env.step, time.perf_counter()
        for action in actions:
            _, _, terminated, truncated, _ = step(action)
            if terminated or truncated:
                env.reset()
        return time.perf_counter() - start

    chunk()
    return lambda: rate(chunk, len(actions))


def single_ours():
    return single("mergefall/Game2048-v0", lambda gym: __import__("mergefall"))


def single_peer():
    return single("gymnasium_2048/TwentyFortyEight-v0", lambda gym: __import__("gymnasium_2048"))


def single_noop():
    """An environment that does nothing: what gym.make's own wrappers leave."""

    def register(gym):
        class Noop(gym.Env):
            observation_space = action_space = gym.spaces.Discrete(4)

            def reset(self, *, seed=None, options=None):
                return 0, {}

            def step(self, action):
                return 0, 0.0, False, False, {}

        gym.register("Noop-v0", Noop)

    return single("Noop-v0", register)


def stable_baselines(size, env_id, native):
    """Batches as Stable-Baselines3 steps them, random legal actions: our adapter, or `DummyVecEnv` of single ones."""
    import gymnasium as gym
    import mergefall  # noqa: F401
    import numpy as np
    from mergefall_training.learn.sb3.vec_env import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv

    envs = make_vec_env(env_id, size) if native else DummyVecEnv([lambda: gym.make(env_id)] * size)
    envs.seed(0)
    envs.reset()
    noise = np.random.default_rng(0).random((8, size, envs.action_space.n))
    steps = max(1, (100_000 if native else 4_000) // size)

    def chunk():
        seconds = 0.0
        for i in range(steps):
            actions = (np.stack(envs.env_method("action_masks")) * noise[i % 8]).argmax(axis=1)
            start = time.perf_counter()
            envs.step(actions)
            seconds += time.perf_counter() - start
        return seconds

    chunk()
    return lambda: rate(chunk, steps * size)


def learner(algorithm, env_id, changed=None):
    """Steps/s of a learner by its preset, evaluations aside; `changed` are hyper-parameters."""
    from mergefall_training.learn import folder_of, trainer
    from mergefall_training.learn.presets import configure
    from stable_baselines3.common.logger import configure as logger

    config = configure(algorithm, env_id, changed=changed)
    size = {"maskable-ppo": 20_480, "dqn": 12_800}.get(algorithm, 16_384)
    if folder_of(algorithm) == "sb3":
        model, _ = trainer(algorithm).build(config, "auto")
        model.set_logger(logger(None, []))
        model.learn(config.hyperparameters.get("learning_starts", 0) + size // 4)
        return lambda: rate(lambda: timed(lambda: model.learn(size, reset_num_timesteps=False)), size)
    ours = trainer(algorithm).Learner(config, "auto")

    def learn():
        first = ours.step
        while ours.step < first + size:
            ours.learn()

    learn()
    return lambda: rate(lambda: timed(learn), size)


def one_file(env_id):
    """Steps/s of training/ppo.py by its defaults, in Tetris on 10×10 as the learners by their presets."""
    sys.path.append(str(Path(__file__).parents[2] / "training"))
    import ppo

    args = ppo.Args(env_id=env_id, env_kwargs={"rows": 10} if "Tetris" in env_id else {})
    trainer, rounds = ppo.Trainer(args), 10
    trainer.update(trainer.rollout())

    def learn():
        for _ in range(rounds):
            trainer.update(trainer.rollout())

    return lambda: rate(lambda: timed(learn), rounds * args.batch_size)


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def own_network(algorithm, env_id):
    """`learner` with Stable-Baselines3's own policy: two layers of 64 units on the flat observation."""
    policy = "MultiInputPolicy" if "Tetris" in env_id else "MlpPolicy"
    return learner(algorithm, env_id, {"policy": policy, "policy_kwargs": {}, "mixed_precision": False})


def batched_pgx(size, scan):
    """pgx on all cores with its own auto-reset; its state holds observation and mask."""
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental.wrappers import auto_reset

    env = pgx.make("2048")
    step = jax.vmap(auto_reset(env.step, env.init))
    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), size))
    keys = jax.random.split(jax.random.key(1), size)

    @jax.jit
    def choose(state, key):
        return (state.legal_action_mask * jax.random.uniform(key, (size, 4))).argmax(axis=1)

    def one(state, keys):
        return step(state, state.legal_action_mask.argmax(axis=1), keys), None

    many = jax.jit(lambda state, keys: jax.lax.scan(one, state, jnp.broadcast_to(keys, (32, size)))[0])
    jitted = jax.jit(step)

    def chunk():
        nonlocal state
        if scan:
            start = time.perf_counter()
            state = jax.block_until_ready(many(state, keys))
            return time.perf_counter() - start
        seconds = 0.0
        for i in range(32):
            actions = jax.block_until_ready(choose(state, jax.random.key(i)))
            start = time.perf_counter()
            state = jax.block_until_ready(jitted(state, actions, keys))
            seconds += time.perf_counter() - start
        return seconds

    chunk()
    return lambda: rate(chunk, 32 * size)


def rules():
    """Random legal play in a compiled loop, one core."""
    import numpy as np
    from mergefall.game2048.packed import lines_for
    from random_play import play

    lines, stream = lines_for(4, 4), np.uint64(1)

    def chunk():
        nonlocal stream
        start = time.perf_counter()
        stream = np.uint64(play(stream, 1_000_000, lines)[2])
        return time.perf_counter() - start

    chunk()
    return lambda: rate(chunk, 1_000_000)


def judged_moves(size, env_id, judge, **kwargs):
    """Rewards of moves, one in each position of a batch of games that random legal moves have played for a while."""
    import gymnasium as gym
    import mergefall  # noqa: F401
    import numpy as np
    from mergefall_baselines.registry import player_of
    from mergefall_training.play.puzzles import judged

    envs, rng, player = gym.make_vec(env_id, num_envs=size, **kwargs), np.random.default_rng(0), player_of(judge)
    observations, infos = envs.reset(seed=0)
    for _ in range(20):
        actions = (infos["action_mask"] * rng.random(infos["action_mask"].shape)).argmax(axis=1)
        observations, *_, infos = envs.step(actions)

    def chunk():
        start = time.perf_counter()
        judged(player, observations, actions)
        return time.perf_counter() - start

    chunk()
    return lambda: rate(chunk, size)


def read_answers(size):
    """Rewards of answers to puzzles, a sentence and a move in tags."""
    from itertools import islice

    from mergefall_training.play.puzzles import puzzles, reward

    found = list(islice(puzzles("mergefall/Game2048-v0", {"rows": 2, "cols": 3}), size))
    answers = [f"Merging keeps cells free, so I go there. <answer>{puzzle.names[0]}</answer>" for puzzle in found]

    def chunk():
        start = time.perf_counter()
        for puzzle, answer in zip(found, answers, strict=True):
            reward(puzzle, answer)
        return time.perf_counter() - start

    chunk()
    return lambda: rate(chunk, size)


def pictures(name):
    """Steps with a picture each, in random games."""
    import gymnasium as gym
    import mergefall  # noqa: F401
    import numpy as np

    env = gym.make(name, render_mode="rgb_array")
    random = np.random.default_rng(0)

    def chunk():
        _, info = env.reset(seed=0)
        start = time.perf_counter()
        for _ in range(100):
            mask = info.get("action_mask")
            actions = np.arange(env.action_space.n) if mask is None else np.flatnonzero(mask)
            _, _, terminated, _, info = env.step(int(random.choice(actions)))
            env.render()
            if terminated:
                _, info = env.reset()
        return time.perf_counter() - start

    chunk()
    return lambda: rate(chunk, 100)


WORKERS = {
    "single-ours": lambda size: single_ours(),
    "single-peer": lambda size: single_peer(),
    "single-noop": lambda size: single_noop(),
    "batched-ours-1": lambda size: batched("mergefall/Game2048-v0", size, 100_000, threads=1),
    "batched-ours-2": lambda size: batched("mergefall/Game2048-v0", size, 100_000, threads=2),
    "batched-pgx": lambda size: batched_pgx(size, scan=False),
    "batched-pgx-scan": lambda size: batched_pgx(size, scan=True),
    "rules": lambda size: rules(),
    "sb3-2048-native": lambda size: stable_baselines(size, "mergefall/Game2048-v0", native=True),
    "sb3-2048-dummy": lambda size: stable_baselines(size, "mergefall/Game2048-v0", native=False),
    "sb3-tetris-native": lambda size: stable_baselines(size, "mergefall/Tetris-v0", native=True),
    "sb3-tetris-dummy": lambda size: stable_baselines(size, "mergefall/Tetris-v0", native=False),
    "draw-cartpole": lambda _: pictures("CartPole-v1"),
    "draw-2048": lambda _: pictures("mergefall/Game2048-v0"),
    "draw-tetris": lambda _: pictures("mergefall/Tetris-v0"),
    "text-answers": read_answers,
    "text-table": lambda size: judged_moves(
        size, "mergefall/Game2048-v0", {"name": "2048/optimal", "rows": 2, "cols": 3}, rows=2, cols=3
    ),
    "text-ntuple": lambda size: judged_moves(size, "mergefall/Game2048-v0", "2048/ntuple"),
    "text-expectimax": lambda size: judged_moves(
        size, "mergefall/Game2048-v0", {"name": "2048/expectimax", "heuristic": "nneonneo", "depth": 3}
    ),
    "text-two-tetrad": lambda size: judged_moves(
        size, "mergefall/Tetris-v0", {"name": "tetris/two-tetrad", "heuristic": "bcts"}
    ),
} | tetris_workers.WORKERS
for game, env_id in (("2048", "mergefall/Game2048-v0"), ("tetris", "mergefall/Tetris-v0")):
    for algorithm in ("maskable-ppo", "dqn", "distill", "kickstart", "expert-iteration"):
        WORKERS[f"learn-{game}-{algorithm}"] = lambda _, what=(algorithm, env_id): learner(*what)
    WORKERS[f"learn-{game}-one-file"] = lambda _, env_id=env_id: one_file(env_id)
    for algorithm in ("maskable-ppo", "dqn"):
        WORKERS[f"learn-{game}-{algorithm}-own"] = lambda _, what=(algorithm, env_id): own_network(*what)

if __name__ == "__main__":
    measure = WORKERS[sys.argv[1]](int(sys.argv[2]))
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(measure()), flush=True)
