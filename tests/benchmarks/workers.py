"""What is measured, one name each; `bench.py` starts a process for each and asks for a figure line by line.

    python workers.py NAME [SIZE]    SIZE: games of a batch

Each measures about a second and prints its figure (steps or moves per second) for every line it reads. Actions are
chosen outside the time taken, except in a `scan`, where pgx chooses and steps in one compiled loop.
"""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

SECONDS = 1.0
GAME, TETRIS, KEYS = "mergefall/Game2048-v0", "mergefall/Tetris-v0", "mergefall/TetrisKeys-v0"
PEER = "gymnasium_2048:gymnasium_2048/TwentyFortyEight-v0"


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measured(chunk):
    """Steps per second of `chunk`, which returns (steps, seconds); it is called once before, to compile."""
    chunk()

    def measure():
        steps, seconds = 0, 0.0
        while seconds < SECONDS:
            more, taken = chunk()
            steps, seconds = steps + more, seconds + taken
        return steps / seconds

    return measure


def made(env_id, **kwargs):
    import gymnasium as gym

    return gym.make(f"mergefall:{env_id}" if env_id.startswith("mergefall") else env_id, **kwargs)


# -- environments -----------------------------------------------------------------------------------------------------


def single(env):
    """One environment, random actions, reset where an episode ends."""
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, env.action_space.n, 2000).tolist()

    def play():
        step = env.step
        for action in actions:
            _, _, terminated, truncated, _ = step(action)
            if terminated or truncated:
                env.reset()

    return measured(lambda: (len(actions), timed(play)))


def single_legal(env, steps, and_also=""):
    """One environment, random legal actions from its masks, reset where an episode ends.

    `and_also`: the environment's method that is called after each step.
    """
    noise = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    method = getattr(env.unwrapped, and_also) if and_also else lambda: None

    def chunk():
        nonlocal info
        seconds = 0.0
        for _ in range(steps):
            action = int(noise.choice(np.flatnonzero(info.get("action_mask", np.ones(env.action_space.n)))))
            start = time.perf_counter()
            _, _, terminated, truncated, info = env.step(action)
            method()
            if terminated or truncated:
                _, info = env.reset()
            seconds += time.perf_counter() - start
        return steps, seconds

    return measured(chunk)


def tetris_peer(grouped=False):
    """Tetris-Gymnasium by keys, or by placements."""
    import gymnasium as gym
    from tetris_gymnasium.envs import Tetris
    from tetris_gymnasium.wrappers.grouped import GroupedActionsObservations

    gym.register("Peer-v0", Tetris)
    env = gym.make("Peer-v0")
    return single_legal(GroupedActionsObservations(env), 50) if grouped else single(env)


def reachable():
    """Searches for all reachable placements, of each piece on each board of the golden data in turn."""
    from mergefall.kernels import kernel
    from mergefall.tetris import reach
    from mergefall.tetris.field import columns_of
    from mergefall.tetris.rules import from_text

    texts = json.loads((Path(__file__).parents[1] / "golden" / "tetris.json").read_text())["boards"].values()
    boards = np.array([columns_of(from_text("/".join(one["rows"]))) for one in texts if len(one["rows"]) == 20])
    work = np.zeros((6, 4, 10), np.uint64)

    @kernel
    def all_boards(boards, work):
        for i in range(len(boards)):
            for piece in range(7):
                reach.search(boards[i], piece, 20, work)

    return measured(lambda: (7 * len(boards), timed(lambda: all_boards(boards, work))))


def pictures(env_id):
    """Steps with a picture each, in random games."""
    return single_legal(made(env_id, render_mode="rgb_array"), 100, "render")


def legal_steps(size, steps, n_actions, masks, step):
    """Random legal actions in a batch; `masks()` gives int[size, n_actions]."""
    noise = np.random.default_rng(0).random((8, size, n_actions))

    def chunk():
        seconds = 0.0
        for i in range(steps):
            actions = (masks() * noise[i % 8]).argmax(axis=1)
            start = time.perf_counter()
            step(actions)
            seconds += time.perf_counter() - start
        return steps * size, seconds

    return measured(chunk)


def batched(env_id, moves, size, **kwargs):
    """A native batch, `moves` at a time; observations, masks, rewards and infos in every step.

    A game that ends begins anew within the step, as in the peers: each step is a move.
    """
    import gymnasium as gym

    envs = gym.make_vec(f"mergefall:{env_id}", num_envs=size, autoreset_mode="SameStep", **kwargs)
    _, infos = envs.reset(seed=0)

    def step(actions):
        nonlocal infos
        *_, infos = envs.step(actions)

    n_actions = int(envs.single_action_space.n)
    return legal_steps(size, max(1, moves // size), n_actions, lambda: infos["action_mask"], step)


def stable_baselines(env_id, native, size):
    """Batches as Stable-Baselines3 steps them: our adapter, or `DummyVecEnv` of single ones."""
    from mergefall_training.learn.sb3.vec_env import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv

    envs = make_vec_env(env_id, size) if native else DummyVecEnv([lambda: made(env_id)] * size)
    envs.seed(0)
    envs.reset()
    steps = max(1, (100_000 if native else 4_000) // size)
    return legal_steps(size, steps, envs.action_space.n, lambda: np.stack(envs.env_method("action_masks")), envs.step)


def jax_steps(size, state, choose, step, steps=1):
    """A batch in JAX: `choose(state, key)` gives its actions, `step(state, actions)` the state after so many steps."""
    import jax

    def chunk():
        nonlocal state
        seconds = 0.0
        for i in range(32):
            actions = jax.block_until_ready(choose(state, jax.random.key(i)))
            start = time.perf_counter()
            state = jax.block_until_ready(step(state, actions))
            seconds += time.perf_counter() - start
        return 32 * steps * size, seconds

    return measured(chunk)


def batched_pgx(size, scan=False):
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

    def chosen(state, keys):
        return step(state, state.legal_action_mask.argmax(axis=1), keys), None

    one = jax.jit(lambda state, actions: step(state, actions, keys))
    many = jax.jit(lambda state, _: jax.lax.scan(chosen, state, jnp.broadcast_to(keys, (32, size)))[0])
    return jax_steps(size, state, choose, many if scan else one, 32 if scan else 1)


def batched_jumanji(size):
    """jumanji on all cores with its own auto-reset."""
    import jax
    import jax.numpy as jnp
    import jumanji
    from jumanji.wrappers import AutoResetWrapper, VmapWrapper

    env = VmapWrapper(AutoResetWrapper(jumanji.make("Tetris-v0")))
    step = jax.jit(env.step)

    @jax.jit
    def choose(state, key):
        mask = state[1].observation.action_mask
        best = (mask.reshape(size, -1) * jax.random.uniform(key, (size, mask[0].size))).argmax(axis=1)
        return jnp.stack([best // mask.shape[2], best % mask.shape[2]], axis=1)

    start = jax.jit(env.reset)(jax.random.split(jax.random.key(0), size))
    return jax_steps(size, start, choose, lambda state, actions: step(state[0], actions))


def rules():
    """Random legal play of 2048 in one compiled loop, one core: the rules alone."""
    from mergefall.game2048 import packed
    from mergefall.kernels import kernel
    from mergefall.words import below, next_bits

    # By action mask, twelve equally likely draws among its legal actions (twelve is divisible by 1, 2, 3 and 4).
    legal = [[action for action in range(4) if mask >> action & 1] or [0] for mask in range(16)]
    picks = np.array([[actions[k % len(actions)] for k in range(12)] for actions in legal])

    @kernel
    def play(stream, moves, lines):
        board, mask = np.uint64(0), 0
        for _ in range(moves):
            if mask == 0:
                stream, board = packed.two_tiles(stream)
                mask = packed.legal_mask(board)
            stream, bits = next_bits(stream)
            action = picks[mask, np.uint64(below(bits, 12))]
            stream, bits = next_bits(stream)
            slid, _ = packed.slide_one_way(packed.turned(board, action), action, lines)
            after = packed.turned(slid, action)
            board = packed.put_tile(after, packed.empties(after), bits)
            mask = packed.legal_mask(board)
        return stream

    lines, stream = packed.lines_for(4, 4), np.uint64(1)

    def work():
        nonlocal stream
        stream = np.uint64(play(stream, 1_000_000, lines))

    return measured(lambda: (1_000_000, timed(work)))


# -- players ----------------------------------------------------------------------------------------------------------


def player(name, env_id, pieces, options=None, **kwargs):
    """A player's decisions in whole games of its compiled loop, capped."""
    from mergefall_baselines import make

    searcher = make(name, **(options or {})).with_rules(kwargs)
    seeds = itertools.count()

    def chunk():
        start = time.perf_counter()
        moves = len(searcher.play(env_id, next(seeds), kwargs, max_episode_steps=pieces))
        return moves, time.perf_counter() - start

    return measured(chunk)


def greedy_c():
    """greedy.c, compiled for this machine."""
    program = Path(tempfile.mkdtemp()) / "greedy"
    subprocess.run(["cc", "-O3", "-march=native", "-o", program, Path(__file__).with_name("greedy.c")], check=True)
    seeds = itertools.count()
    return lambda: float(subprocess.check_output([program, "300000", str(next(seeds))]).split()[0])


# -- learners ---------------------------------------------------------------------------------------------------------


def learner(algorithm, env_id, own=False):
    """Steps/s of a learner by its preset, evaluations aside.

    `own`: with Stable-Baselines3's own policy, two layers of 64 units on the flat observation.
    """
    from mergefall_training.learn import trainer
    from mergefall_training.learn.presets import configure
    from stable_baselines3.common.logger import configure as logger

    policy = "MultiInputPolicy" if env_id == TETRIS else "MlpPolicy"
    changed = {"policy": policy, "policy_kwargs": {}, "mixed_precision": False} if own else None
    config = configure(algorithm, env_id, changed=changed)
    size = {"maskable-ppo": 20_480, "dqn": 12_800}.get(algorithm, 16_384)
    model = trainer(algorithm).Learner(config, "auto").model
    model.set_logger(logger(None, []))
    model.learn(config.hyperparameters.get("learning_starts", 0) + size // 4)
    return measured(lambda: (size, timed(lambda: model.learn(size, reset_num_timesteps=False))))


def one_file(env_id):
    """Steps/s of training/ppo.py by its defaults, in Tetris on 10×10 as the learners by their presets."""
    sys.path.append(str(Path(__file__).parents[2] / "training"))
    import ppo

    args = ppo.Args(env_id=env_id, env_kwargs={"rows": 10} if env_id == TETRIS else {})
    trainer, rounds = ppo.Trainer(args), 10

    def learn():
        for _ in range(rounds):
            trainer.update(trainer.rollout())

    return measured(lambda: (rounds * args.batch_size, timed(learn)))


WORKERS = {
    "single-ours": lambda: single(made(GAME)),
    "single-peer": lambda: single(made(PEER)),
    "batched-pgx": batched_pgx,
    "batched-pgx-scan": partial(batched_pgx, scan=True),
    "rules": rules,
    "tetris-single-ours": lambda: single_legal(made(TETRIS), 2000),
    "tetris-single-afterstates": lambda: single_legal(made(TETRIS), 2000, "afterstates"),
    "tetris-single-peer": partial(tetris_peer, grouped=True),
    "tetris-batched-jumanji": batched_jumanji,
    "tetris-greedy": partial(player, "tetris/bcts", TETRIS, 300_000),
    "tetris-greedy-c": greedy_c,
    "tetris-deep-drop": partial(player, "tetris/two-tetrad", TETRIS, 300),
    "tetris-deep-slide": partial(player, "tetris/two-tetrad", TETRIS, 100, placements="slide"),
    "tetris-quintris": partial(player, "quintris/expectimax", "mergefall/Quintris-v0", 20, {"depth": 2}),
    "keys-single-ours": lambda: single(made(KEYS)),
    "keys-single-peer": tetris_peer,
    "keys-reachable": reachable,
    "draw-cartpole": partial(pictures, "CartPole-v1"),
    "draw-2048": partial(pictures, GAME),
    "draw-tetris": partial(pictures, TETRIS),
}
for threads in (1, 2):
    WORKERS[f"batched-ours-{threads}"] = partial(batched, GAME, 100_000, threads=threads)
    WORKERS[f"tetris-batched-{threads}"] = partial(batched, TETRIS, 20_000, threads=threads, rows=10)
    WORKERS[f"keys-batched-{threads}"] = partial(batched, KEYS, 100_000, threads=threads)
for game, env_id in (("2048", GAME), ("tetris", TETRIS)):
    WORKERS[f"sb3-{game}-native"] = partial(stable_baselines, env_id, True)
    WORKERS[f"sb3-{game}-dummy"] = partial(stable_baselines, env_id, False)
    WORKERS[f"learn-{game}-one-file"] = partial(one_file, env_id)
    for algorithm in ("maskable-ppo", "dqn", "distill", "kickstart"):
        WORKERS[f"learn-{game}-{algorithm}"] = partial(learner, algorithm, env_id)
        WORKERS[f"learn-{game}-{algorithm}-own"] = partial(learner, algorithm, env_id, own=True)

if __name__ == "__main__":
    measure = WORKERS[sys.argv[1]](*(int(size) for size in sys.argv[2:] if size != "1"))
    for _ in sys.stdin:
        print(json.dumps(measure()), flush=True)
