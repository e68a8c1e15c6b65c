"""How fast the environments and players are, beside others on the same machine in the same run.

    python tests/benchmarks/bench.py [2048] [tetris] [sb3] [learn] [text] [draw] [start] [--rounds 5]

The others live in environments of their own under `.bench/`, made on the first run (pip, a minute or two). Every
contestant runs in a process of its own; they take turns, and the median of the rounds is reported. Figures of ours have
their goals beside them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from contest import Contestant, contest, goal, peer_python

SIZES, TETRIS_SIZES = (1024, 4096, 16384), (256, 1024, 4096)  # games of a batch, the same for ours and for a peer
SB3_SIZE = 1024

START = """
import gymnasium as gym, mergefall
if {size} == 1:
    env = gym.make("{env}")
    env.reset(seed=0)
    env.step(0)
else:
    envs = gym.make_vec("{env}", num_envs={size})
    envs.reset(seed=0)
    envs.step([0] * {size})
"""


def bench_single(rounds: int) -> None:
    print("\nOne environment through gymnasium.make, random actions")
    ours, peer, noop = contest(
        [
            Contestant("mergefall", "single-ours"),
            Contestant("gymnasium-2048 0.1.2", "single-peer", python=peer_python("gymnasium-2048")),
            Contestant("an environment that does nothing", "single-noop"),
        ],
        rounds,
    )
    goal("mergefall / gymnasium-2048", ours.median / peer.median, 35, "x")
    goal("mergefall, thousand steps/s", ours.median / 1000, 390, "k")
    print(f"  {'the empty environment / mergefall':44} {noop.median / ours.median:>13,.1f}x")


def bench_batched(rounds: int) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    print(f"\nBatched, observations and masks in every step ({cores} cores; pgx uses all of them)")
    python = peer_python("pgx")
    ours = {
        threads: [
            Contestant(
                f"mergefall, {size} games, {threads} thread{'s' * (threads > 1)}", f"batched-ours-{threads}", size
            )
            for size in SIZES
        ]
        for threads in (1, 2)
    }
    pgx = [
        Contestant(f"pgx 2.6, {size} games{way}", f"batched-pgx{name}", size, python)
        for size in SIZES
        for name, way in (("", ""), ("-scan", ", lax.scan"))
    ]
    contest(ours[1] + ours[2] + pgx, rounds)
    base = max(contestant.median for contestant in pgx if contestant.size == 1024)
    best = max(contestant.median for contestant in pgx)
    for threads, target in ((1, 25), (2, 50)):
        figure = max(contestant.median for contestant in ours[threads])
        where = f"{threads} thread{'s' * (threads > 1)}"
        goal(f"mergefall, {where}, best / pgx, 1024 games", figure / base, target, "x")
        print(f"  {f'mergefall, {where}, best / pgx, best':44} {figure / best:>13,.1f}x")
        goal(f"mergefall, {where}, million steps/s", figure / 1e6, 19 * threads, "M")


def bench_rules(rounds: int) -> None:
    print("\nRandom legal play in a compiled loop, one core")
    (ours,) = contest([Contestant("mergefall", "rules")], rounds)
    goal("million moves/s", ours.median / 1e6, 25, "M")


def bench_tetris_single(rounds: int) -> None:
    print("\nTetris, one environment through gymnasium.make, random legal placements, 10x20")
    ours, after, peer = contest(
        [
            Contestant("mergefall", "tetris-single-ours"),
            Contestant("mergefall, step and afterstates()", "tetris-single-afterstates"),
            Contestant("Tetris-Gymnasium 0.3.1, grouped", "tetris-single-peer", python=peer_python("tetris-gymnasium")),
        ],
        rounds,
    )
    goal("mergefall / Tetris-Gymnasium", ours.median / peer.median, 1000, "x")
    print(f"  {'with all afterstates, as the peer gives / it':44} {after.median / peer.median:>13,.1f}x")


def bench_tetris_batched(rounds: int) -> None:
    print("\nTetris, batched, random legal placements, 10x10; jumanji uses all cores")
    python = peer_python("jumanji")
    ours = [
        Contestant(f"mergefall, {size} games, {threads} thread{'s' * (threads > 1)}", f"tetris-batched-{threads}", size)
        for threads in (1, 2)
        for size in TETRIS_SIZES
    ]
    jumanji = [
        Contestant(f"jumanji 1.1.2, {size} games", "tetris-batched-jumanji", size, python) for size in TETRIS_SIZES
    ]
    contest(ours + jumanji, rounds)
    best = max(contestant.median for contestant in ours)
    goal("mergefall, best / jumanji, 256 games", best / jumanji[0].median, 15, "x")
    print(f"  {'mergefall, best / jumanji, best':44} {best / max(j.median for j in jumanji):>13,.1f}x")


def bench_tetris_players(rounds: int) -> None:
    print("\nTetris players, decisions/s in whole games, one core")
    bcts, plain, deep, slides, quintris = contest(
        [
            Contestant("greedy BCTS, 10x20", "tetris-greedy"),
            Contestant("the same in plain C (greedy.c)", "tetris-greedy-c"),
            Contestant("two-tetrad deep, 10x20, drops", "tetris-deep-drop"),
            Contestant("two-tetrad deep, 10x20, slides", "tetris-deep-slide"),
            Contestant("Quintris expectimax depth 2, 15x25", "tetris-quintris"),
        ],
        rounds,
    )
    goal("greedy BCTS, thousand decisions/s", bcts.median / 1000, 1000, "k")
    print(f"  {'greedy BCTS / plain C':44} {bcts.median / plain.median:>13,.1f}x")
    goal("two-tetrad deep, drops, ms a move", 1000 / deep.median, 1, "ms", smaller=True)
    goal("two-tetrad deep, slides, ms a move", 1000 / slides.median, 1, "ms", smaller=True)
    goal("Quintris depth 2, ms a move", 1000 / quintris.median, 20, "ms", smaller=True)
    print(f"  {'its document: 10 s a move / mergefall':44} {10 * quintris.median:>13,.0f}x")


def bench_stable_baselines(rounds: int) -> None:
    print(f"\nStable-Baselines3's VecEnv, {SB3_SIZE} games, random legal actions")
    for game in ("2048", "tetris"):
        native, dummy = contest(
            [
                Contestant(f"NativeVecEnv, {game}", f"sb3-{game}-native", SB3_SIZE),
                Contestant(f"DummyVecEnv of single ones, {game}", f"sb3-{game}-dummy", SB3_SIZE),
            ],
            rounds,
        )
        goal(f"NativeVecEnv / DummyVecEnv, {game}", native.median / dummy.median, 20, "x")


def bench_learning(rounds: int) -> None:
    print("\nLearners by their presets, steps/s on all cores, evaluations aside")
    for game in ("2048", "tetris"):
        own = [
            Contestant(f"{name}, Stable-Baselines3's network, {game}", f"learn-{game}-{name}-own")
            for name in ("maskable-ppo", "dqn")
        ]
        names = ("maskable-ppo", "dqn", "distill", "kickstart", "expert-iteration")
        others = [*own, Contestant(f"training/ppo.py, {game}", f"learn-{game}-one-file")]
        found = contest([Contestant(f"{name}, {game}", f"learn-{game}-{name}") for name in names] + others, rounds)
        if game == "2048":
            goal("maskable-ppo, thousand steps/s", found[0].median / 1000, 20, "k")
        for ours, theirs in zip(found[:2], found[len(names) : -1], strict=True):
            print(f"  {f'{ours.title} / with that network':44} {ours.median / theirs.median:>13,.2f}x")


def bench_drawing(rounds: int) -> None:
    print('\nA step and a picture, render_mode="rgb_array"')
    cartpole, *ours = contest(
        [
            Contestant("Gymnasium's CartPole", "draw-cartpole"),
            Contestant("2048", "draw-2048"),
            Contestant("Tetris, 10x20", "draw-tetris"),
        ],
        rounds,
    )
    for game in ours:
        print(f"  {f'{game.title} / CartPole':44} {game.median / cartpole.median:>13,.1f}x")


def bench_text(rounds: int) -> None:
    print("\nPuzzles for language models: moves scored, one in each position, one core")
    answers, table, ntuple, expectimax, two_tetrad = contest(
        [
            Contestant("answers read, and their rewards looked up", "text-answers", 1000),
            Contestant("judged by 2048/optimal, 2x3", "text-table", 4096),
            Contestant("judged by 2048/ntuple, 4x4", "text-ntuple", 1024),
            Contestant("judged by 2048/expectimax, depth 3", "text-expectimax", 1024),
            Contestant("judged by tetris/two-tetrad, deep, 10x20", "text-two-tetrad", 1024),
        ],
        rounds,
    )
    goal("answers, thousand/s", answers.median / 1000, 50, "k")
    for by_table in (table, ntuple):
        goal(f"{by_table.title}, thousand/s", by_table.median / 1000, 100, "k")
    for by_search in (expectimax, two_tetrad):
        goal(f"{by_search.title}, thousand/s", by_search.median / 1000, 5, "k")


def bench_start(rounds: int) -> None:
    print("\nFrom `python` to the first step: with an empty kernel cache, then with a full one")
    games = (("mergefall/Game2048-v0", 1, "one 2048"), ("mergefall/Game2048-v0", 64, "64 games of 2048"))
    games += (("mergefall/Game2048-v0", 1024, "1024 games of 2048, all threads"),)
    games += (("mergefall/Tetris-v0", 1, "one Tetris"), ("mergefall/Tetris-v0", 1024, "1024 games of Tetris"))
    for env, size, title in games:
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            times = []
            for _ in range(1 + rounds):
                start = time.perf_counter()
                command = [sys.executable, "-c", START.format(env=env, size=size)]
                subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
                times.append(time.perf_counter() - start)
        goal(f"{title}, cold", times[0], 10, "s", smaller=True)
        goal(f"{title}, warm", statistics.median(times[1:]), 1.5, "s", smaller=True)


PARTS = {
    "2048": (bench_single, bench_batched, bench_rules),
    "tetris": (bench_tetris_single, bench_tetris_batched, bench_tetris_players),
    "sb3": (bench_stable_baselines,),
    "learn": (bench_learning,),
    "text": (bench_text,),
    "draw": (bench_drawing,),
    "start": (bench_start,),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure, of {', '.join(PARTS)} (all)")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each contestant takes (5)")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for part in options.parts or PARTS:
        for bench in PARTS[part]:
            bench(options.rounds)


if __name__ == "__main__":
    main()
