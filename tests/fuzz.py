"""Hostile states, starts, actions and observations for every environment and player.

Each gets a normal result, or a ValueError that says what was expected.

    python tests/fuzz.py 20000               # so many cases, half of them of environments; WORKERS processes at once
    python tests/fuzz.py tetris/bcts 17      # one of them again, as a failure prints it

A subject is an environment's id or a player's name. All of a case follows from its subject and its number. The first
`SAME` cases of a subject are of its default rules, the next of others.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from functools import lru_cache

import gymnasium as gym
import numpy as np
from mergefall.games import ENVIRONMENTS, game_of, home_of, take
from mergefall_baselines import make, players
from mergefall_baselines.registry import environment_of, signature_of

BATCH, STEPS, SAME = 3, 20, 100
EXPECTED = re.compile("expected|there (are|is)|legal are|; it has|; see|made for|defined on")
EXTREMES = [
    *(2**n - below for n in (0, 3, 4, 6, 8, 10, 16) for below in (0, 1)),
    *(sign << n for n in (30, 31, 53, 63) for sign in (1, -1)),
]
NONSENSE = [None, "x", [], {}, [[1], [1, 2]], {"x": 1}, -1, 2.5, 10**30, float("nan"), b"", object()]


def refused(call, *named):
    """Whether a call is refused, by a ValueError that says what was expected, and one of the `named` texts.

    Any other exception passes on.
    """
    try:
        call()
    except ValueError as error:
        if not EXPECTED.search(str(error)) or (named and not any(name in str(error) for name in named)):
            raise AssertionError(f"this does not say what was expected of {named or 'what'}") from error
        return True
    return False


def changed(rng, array):
    """An array with some elements overwritten, as another kind of number now and then; or something quite different."""
    array = np.asarray(array)
    if rng.random() < 0.1:
        return NONSENSE[rng.integers(len(NONSENSE))]
    if rng.random() < 0.1:
        return array.astype([np.float64, np.bool_, np.str_, np.object_, np.int8][rng.integers(5)])
    if rng.random() < 0.1:
        return [array[None], array.T, array.reshape(-1), array[..., None], array.reshape(-1)[:-1], array.sum()][
            rng.integers(6)
        ]
    array = array.astype([array.dtype, np.int64, np.uint64][rng.integers(3)] if array.dtype != np.uint64 else np.uint64)
    flat = array.reshape(-1)
    for i in rng.integers(flat.size, size=rng.choice([1, 1, 1, 2, 4])) if flat.size else ():
        old, other = int(flat[i]), int(flat[rng.integers(flat.size)])
        values = [EXTREMES[rng.integers(len(EXTREMES))], int(rng.integers(1 << 63)) * 2 + 1, int(rng.integers(64))]
        values += [old + int(rng.integers(-3, 4)), old ^ 1 << int(rng.integers(64)), other]
        flat[i] = np.array(values[rng.integers(6)] % (1 << 64), np.uint64).astype(array.dtype)
    return array


def some_rules(env_id, rng):
    """Arguments that make a game: some of them an end of their range, or any value in it."""
    rules, chosen = game_of(env_id), {}
    for field in fields(rules):
        if field.metadata["range"]:
            low, high = field.metadata["range"][0], min(field.metadata["range"][1], 100)
            values = [low, high, int(rng.integers(low, high + 1))]
        else:
            others = {bool: [False, True], float: [0.0, 1.0], str: rules.choices(field.name)}
            values = [{"rows": 0.5}] if field.name == "garbage" else others.get(type(field.default))
        if values and rng.random() < 0.5:
            chosen[field.name] = values[rng.integers(len(values))]
    return chosen


def tried(rng, rules, build):
    """What `build` makes of some rules that it takes: of the given ones, the first time."""
    for kwargs in (rules(rng) for _ in range(50)):
        try:
            return build(kwargs)
        except ValueError:
            continue
    return build({})


@lru_cache(2)
def environments(env_id, which):
    def build(kwargs):
        return gym.make(env_id, **kwargs).unwrapped, gym.make_vec(env_id, num_envs=BATCH, **kwargs).unwrapped

    return tried(np.random.default_rng(which), lambda rng: some_rules(env_id, rng) if which else {}, build)


def stepped(env, rng, steps, legal=0.9):
    """Play on; yields after each step."""
    for _ in range(steps):
        masks = np.atleast_2d(env.action_masks())
        masks = masks if rng.random() < legal else np.ones_like(masks)
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in masks])
        returned = env.step(actions if hasattr(env, "num_envs") else actions[0])
        yield returned[0]
        if not hasattr(env, "num_envs") and (returned[2] or returned[3]):
            env.reset()


def of_environment(env_id, number):
    """A hostile start, state and action; what is taken can be played on, what is refused changes nothing."""
    rng, env = np.random.default_rng(number), environments(env_id, number // SAME)[number % 2]
    observation, _ = env.reset(seed=number)
    list(stepped(env, rng, rng.integers(STEPS)))
    part = env.rules.parts[rng.integers(len(env.rules.parts))]
    one = take(observation, 0) if number % 2 else observation
    shown = one.get(part, 0) if isinstance(one, dict) else one
    sound, start = env.clone_state(), changed(rng, shown)
    if refused(lambda: env.reset(options={part: start})):
        assert (env.clone_state() == sound).all()
        if rng.random() < 0.9:
            crafted = changed(rng, sound)
            expected = sound if refused(lambda: env.restore_state(crafted)) else crafted
            np.testing.assert_array_equal(env.clone_state(), expected)
    refused(lambda: env.step(changed(rng, np.zeros(BATCH if number % 2 else (), np.int64))))
    for observation in stepped(env, rng, STEPS):
        top = getattr(env.rules, "max_rank", np.inf)  # a game may start with boards that merge past it
        assert env.observation_space.contains(observation) or np.max(observation) > top
    boards, rewards, legal = env.afterstates()
    assert len(boards) == len(rewards) == len(legal)
    if not number % 2 and not game_of(env_id).by_keys:
        refused(lambda: env.chance_outcomes(int(rng.integers(env.rules.n_actions))))
    try:
        env.restore_state(env.clone_state())
    except ValueError as error:
        if "counted" not in str(error):  # a count may begin at its most
            raise


def needed(name):
    """The options without which a player cannot be made."""
    known = signature_of(name).parameters.values()
    given = {"of": f"{name.partition('/')[0]}/greedy", "command": [sys.executable]}
    return {one.name: given[one.name] for one in known if one.default is one.empty and one.kind != one.VAR_KEYWORD}


@lru_cache(2)
def asked(name, which):
    """(a player with little to search, its environment's rules, observations of five games, what it remembers)."""
    known = signature_of(name).parameters.values()
    small = {one.name: min(one.default, 1 + which % 2) for one in known if type(one.default) is int} | needed(name)
    (env_id, fixed), player = environment_of(name, needed(name)), make(name, **small)

    def build(kwargs):
        envs = gym.make_vec(env_id, num_envs=5, **(kwargs | fixed)).unwrapped
        mine = player.with_rules(asdict(envs.rules))
        batch, memory = envs.reset(seed=which)[0], mine.start(0)
        for _ in range(1 + which * 10):
            actions, memory = mine.predict(batch, memory)
            batch, *_ = envs.step(actions)
        return mine, envs.rules, batch, memory

    return tried(np.random.default_rng(which), lambda rng: some_rules(env_id, rng) if which else {}, build)


def of_player(name, number):
    """An observation of which a part is hostile, or the memory or the masks that come with it."""
    rng, (player, rules, batch, memory) = np.random.default_rng(number), asked(name, number // SAME)
    more = {"state": memory, "action_masks": np.ones((5, rules.n_actions), np.bool_)}
    if number % 2:
        batch, more = take(batch, 0), {name: None if one is None else one[0] for name, one in more.items()}
    kind = rng.integers(10)
    if kind == 0:
        more["action_masks"] = changed(rng, more["action_masks"])
    elif kind == 1 and memory is not None:
        more["state"] = changed(rng, more["state"])
    elif not isinstance(batch, dict):
        batch = changed(rng, batch)
    elif kind == 2:
        batch = {part: value for part, value in batch.items() if rng.random() < 0.8} | {"x": 1}
    else:
        which = list(batch)[rng.integers(len(batch))]
        batch = batch | {which: changed(rng, batch[which])}
    taken = []
    if not refused(lambda: taken.append(player.predict(batch, **more)[0])):
        assert np.isin(taken, range(rules.n_actions)).all(), taken
        refused(lambda: player.values(batch))


SUBJECTS = [*ENVIRONMENTS, *(name for name in players() if home_of(name) and "command" not in needed(name))]


def case(subject, number):
    """One case; what it raises says how to repeat it."""
    try:
        (of_environment if subject in ENVIRONMENTS else of_player)(subject, number)
    except BaseException as error:
        error.add_note(f"again: python tests/fuzz.py {subject} {number}")
        raise


def run(subject, count):
    """The cases of a subject in a process of its own; returns what went wrong, if anything did."""
    command = [sys.executable, __file__, subject, f"0-{count}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return f"{subject}: case {done.stdout.split()[-1:]} ended with {done.returncode}\n{done.stderr[-2000:]}"


def main(first, numbers=None):
    if numbers is not None:
        begin, _, end = numbers.partition("-")
        for number in range(int(begin), int(end or int(begin) + 1)):
            print(number, flush=True)  # the last one, if the process crashes
            case(first, number)
        return
    half = [int(first) // 2 // len(ENVIRONMENTS) + 1, int(first) // 2 // (len(SUBJECTS) - len(ENVIRONMENTS)) + 1]
    counts = {subject: half[subject not in ENVIRONMENTS] for subject in SUBJECTS}
    with ThreadPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool:
        wrong = [one for one in pool.map(run, counts, counts.values()) if one]
    print(
        *wrong, f"{sum(counts.values())} cases of {len(counts)} subjects, {len(wrong)} subjects with faults", sep="\n"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
