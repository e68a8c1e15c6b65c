"""What is measured, one name each; `bench.py` starts a process for each and asks for a figure line by line.

    python workers.py NAME [SIZE]

Each measures about a second and prints its figure (steps or moves per second) for every line it reads. Actions are
chosen outside the time taken, except in a `scan`, where pgx chooses and steps in one compiled loop.
"""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SECONDS = 1.0
GAME, TETRIS, KEYS = "mergefall/Game2048-v0", "mergefall/Tetris-v0", "mergefall/TetrisKeys-v0"


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
    import mergefall  # noqa: F401  (registers the environments)

    return gym.make(env_id, **kwargs)


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


def single_peer():
    import gymnasium as gym
    import gymnasium_2048  # noqa: F401

    return single(gym.make("gymnasium_2048/TwentyFortyEight-v0"))


def single_legal(env, steps, and_also=lambda: None):
    """One environment, random legal actions from its masks, reset where an episode ends; `and_also` after each step."""
    noise = np.random.default_rng(0)
    _, info = env.reset(seed=0)

    def chunk():
        nonlocal info
        seconds = 0.0
        for _ in range(steps):
            action = int(noise.choice(np.flatnonzero(info.get("action_mask", np.ones(env.action_space.n)))))
            start = time.perf_counter()
            _, _, terminated, truncated, info = env.step(action)
            and_also()
            if terminated or truncated:
                _, info = env.reset()
            seconds += time.perf_counter() - start
        return steps, seconds

    return measured(chunk)


def tetris_afterstates():
    env = made(TETRIS)
    return single_legal(env, 2000, env.unwrapped.afterstates)


def tetris_peer():
    import gymnasium as gym
    from tetris_gymnasium.envs import Tetris
    from tetris_gymnasium.wrappers.grouped import GroupedActionsObservations

    gym.register("Peer-v0", Tetris)
    return single_legal(GroupedActionsObservations(gym.make("Peer-v0")), 50)


def keys_peer():
    import gymnasium as gym
    from tetris_gymnasium.envs import Tetris

    gym.register("Peer-v0", Tetris)
    return single(gym.make("Peer-v0"))


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
    env = made(env_id, render_mode="rgb_array")
    return single_legal(env, 100, env.render)


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


def batched(env_id, size, moves, **kwargs):
    """A native batch, `moves` at a time; observations, masks, rewards and infos in every step.

    A game that ends begins anew within the step, as in the peers: each step is a move.
    """
    import gymnasium as gym
    import mergefall  # noqa: F401

    envs = gym.make_vec(env_id, num_envs=size, autoreset_mode="SameStep", **kwargs)
    _, infos = envs.reset(seed=0)

    def step(actions):
        nonlocal infos
        *_, infos = envs.step(actions)

    n_actions = int(envs.single_action_space.n)
    return legal_steps(size, max(1, moves // size), n_actions, lambda: infos["action_mask"], step)


def stable_baselines(env_id, size, native):
    """Batches as Stable-Baselines3 steps them: our adapter, or `DummyVecEnv` of single ones."""
    from mergefall_training.learn.sb3.vec_env import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv

    envs = make_vec_env(env_id, size) if native else DummyVecEnv([lambda: made(env_id)] * size)
    envs.seed(0)
    envs.reset()
    steps = max(1, (100_000 if native else 4_000) // size)
    return legal_steps(size, steps, envs.action_space.n, lambda: np.stack(envs.env_method("action_masks")), envs.step)


def jax_steps(size, state, choose, step):
    """A batch in JAX: `choose(state, key)` gives its actions, `step(state, actions)` the next state."""
    import jax

    def chunk():
        nonlocal state
        seconds = 0.0
        for i in range(32):
            actions = jax.block_until_ready(choose(state, jax.random.key(i)))
            start = time.perf_counter()
            state = jax.block_until_ready(step(state, actions))
            seconds += time.perf_counter() - start
        return 32 * size, seconds

    return measured(chunk)


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
    if not scan:
        jitted = jax.jit(step)
        choose = jax.jit(lambda s, key: (s.legal_action_mask * jax.random.uniform(key, (size, 4))).argmax(axis=1))
        return jax_steps(size, state, choose, lambda state, actions: jitted(state, actions, keys))

    def one(state, keys):
        return step(state, state.legal_action_mask.argmax(axis=1), keys), None

    many = jax.jit(lambda state, keys: jax.lax.scan(one, state, jnp.broadcast_to(keys, (32, size)))[0])

    def chunk():
        nonlocal state
        start = time.perf_counter()
        state = jax.block_until_ready(many(state, keys))
        return 32 * size, time.perf_counter() - start

    return measured(chunk)


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
            board, _ = packed.move(board, action, lines)
            board = packed.add_tile(board, bits)
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
    folder = tempfile.TemporaryDirectory()
    program = Path(folder.name) / "greedy"
    source = Path(__file__).with_name("greedy.c")
    subprocess.run(["cc", "-O3", "-march=native", "-o", program, source], check=True)
    seeds = itertools.count()

    def measure():
        command = [program, "300000", str(next(seeds))]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0])

    measure.folder = folder  # kept as long as the measuring
    return measure


# -- learners ---------------------------------------------------------------------------------------------------------


def learner(algorithm, env_id, changed=None):
    """Steps/s of a learner by its preset, evaluations aside; `changed` are hyper-parameters."""
    from mergefall_training.learn import trainer
    from mergefall_training.learn.presets import configure
    from mergefall_training.learn.sb3 import train as sb3
    from stable_baselines3.common.logger import configure as logger

    config = configure(algorithm, env_id, changed=changed)
    size = {"maskable-ppo": 20_480, "dqn": 12_800}.get(algorithm, 16_384)
    ours = trainer(algorithm).Learner(config, "auto")
    if isinstance(ours, sb3.Learner):
        model = ours.model
        model.set_logger(logger(None, []))
        model.learn(config.hyperparameters.get("learning_starts", 0) + size // 4)
        return measured(lambda: (size, timed(lambda: model.learn(size, reset_num_timesteps=False))))

    def chunk():
        first, start = ours.step, time.perf_counter()
        while ours.step < first + size:
            ours.learn()
        return ours.step - first, time.perf_counter() - start

    return measured(chunk)


def own_network(algorithm, env_id):
    """`learner` with Stable-Baselines3's own policy: two layers of 64 units on the flat observation."""
    policy = "MultiInputPolicy" if env_id == TETRIS else "MlpPolicy"
    return learner(algorithm, env_id, {"policy": policy, "policy_kwargs": {}, "mixed_precision": False})


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
    "single-ours": lambda _: single(made(GAME)),
    "single-peer": lambda _: single_peer(),
    "batched-ours-1": lambda size: batched(GAME, size, 100_000, threads=1),
    "batched-ours-2": lambda size: batched(GAME, size, 100_000, threads=2),
    "batched-pgx": lambda size: batched_pgx(size, scan=False),
    "batched-pgx-scan": lambda size: batched_pgx(size, scan=True),
    "rules": lambda _: rules(),
    "tetris-single-ours": lambda _: single_legal(made(TETRIS), 2000),
    "tetris-single-afterstates": lambda _: tetris_afterstates(),
    "tetris-single-peer": lambda _: tetris_peer(),
    "tetris-batched-1": lambda size: batched(TETRIS, size, 20_000, threads=1, rows=10),
    "tetris-batched-2": lambda size: batched(TETRIS, size, 20_000, threads=2, rows=10),
    "tetris-batched-jumanji": batched_jumanji,
    "tetris-greedy": lambda _: player("tetris/bcts", TETRIS, 300_000),
    "tetris-greedy-c": lambda _: greedy_c(),
    "tetris-deep-drop": lambda _: player("tetris/two-tetrad", TETRIS, 300),
    "tetris-deep-slide": lambda _: player("tetris/two-tetrad", TETRIS, 100, placements="slide"),
    "tetris-quintris": lambda _: player("quintris/expectimax", "mergefall/Quintris-v0", 20, {"depth": 2}),
    "keys-single-ours": lambda _: single(made(KEYS)),
    "keys-single-peer": lambda _: keys_peer(),
    "keys-batched-1": lambda size: batched(KEYS, size, 100_000, threads=1),
    "keys-batched-2": lambda size: batched(KEYS, size, 100_000, threads=2),
    "keys-reachable": lambda _: reachable(),
    "draw-cartpole": lambda _: pictures("CartPole-v1"),
    "draw-2048": lambda _: pictures(GAME),
    "draw-tetris": lambda _: pictures(TETRIS),
}
WORKERS["learn-2048-ntuple"] = lambda _: learner("ntuple", GAME)
for game, env_id in (("2048", GAME), ("tetris", TETRIS)):
    WORKERS[f"sb3-{game}-native"] = lambda size, env_id=env_id: stable_baselines(env_id, size, native=True)
    WORKERS[f"sb3-{game}-dummy"] = lambda size, env_id=env_id: stable_baselines(env_id, size, native=False)
    WORKERS[f"learn-{game}-one-file"] = lambda _, env_id=env_id: one_file(env_id)
    for algorithm in ("maskable-ppo", "dqn", "distill", "kickstart"):
        WORKERS[f"learn-{game}-{algorithm}"] = lambda _, what=(algorithm, env_id): learner(*what)
        WORKERS[f"learn-{game}-{algorithm}-own"] = lambda _, what=(algorithm, env_id): own_network(*what)

if __name__ == "__main__":
    measure = WORKERS[sys.argv[1]](int(sys.argv[2]))
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(measure()), flush=True)
