"""Training against the searchers in four ways, beside plain training: the same agent, the same steps, several seeds.

    python tests/benchmarks/ways.py --out results/ways

    plain         MaskablePPO on 2048
    clone         a searcher's moves cloned for half of the steps, then MaskablePPO for the other half
    regret        MaskablePPO paid minus the regret under that searcher's values, in place of the score
    adversary     MaskablePPO with some of the new tiles placed by the minimizer
    starts        MaskablePPO with half of the episodes begun in that searcher's games

Each agent, as it is at its last step, plays the same seeds in the plain environment and against the adversary. Runs and
games are kept in the folder: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from mergefall_baselines import make
from mergefall_training.files import write_whole
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import read_curve, train
from mergefall_training.play.batched import play_together
from mergefall_training.play.starts import collect_starts
from mergefall_training.play.workers import task

ENV = "mergefall/Game2048-v0"
TEACHER = {"name": "2048/expectimax", "heuristic": "nneonneo", "depth": 2}
MINIMIZER = {"player": {"name": "2048/minimax", "depth": 1}, "rate": 0.1}
TEACHER_GAMES = 100


def changes(out: Path) -> dict[str, dict]:
    """What each way changes in MaskablePPO's preset."""
    return {
        "plain": {},
        "clone": {},
        "regret": {"env_wrapper": [{"regret": {"player": TEACHER}}], "gamma": 0.0, "normalize": False},
        "adversary": {"env_wrapper": [{"adversary": MINIMIZER}]},
        "starts": {"env_wrapper": [{"starts": {"path": str(out / "starts.npz")}}]},
    }


def trained(folder: Path, algorithm: str, changed: dict, steps: int, seed: int) -> None:
    """A run in a folder, from where it is to its end."""
    config = configure(algorithm, ENV, changed=changed, timesteps=steps, interval=max(1, steps // 5), seed=seed)
    train(folder, config, resume="auto")


def result(folder: Path, games: int) -> dict[str, float]:
    """Mean scores of a run's last model, in the plain environment and against the adversary; kept beside it."""
    path = folder / f"result-{games}.json"
    if not path.exists():
        player = make(str(folder), model="last")
        jobs = {"plain": task(player, ENV, {}, None), "adversary": task(player, ENV, {}, None, MINIMIZER)}
        found = {name: play_together(job, range(games)) for name, job in jobs.items()}
        means = {name: float(np.mean([episode.score for episode in played])) for name, played in found.items()}
        write_whole(path, json.dumps(means | {"seconds": read_curve(folder)[-1].seconds}).encode())
    return json.loads(path.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/ways"))
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--games", type=int, default=200)
    asked = parser.parse_args()
    if not (asked.out / "starts.npz").exists():
        options = dict(TEACHER)
        player = make(options.pop("name"), **options)
        collect_starts(player, ENV, TEACHER_GAMES, every=50, progress=True, out=asked.out / "starts.npz")
    print(
        f"{asked.steps} steps, training seeds 0 to {asked.seeds - 1}, {asked.games} games each from seed 0; mean scores"
    )
    print(f"{'way':10} {'plain':>8} {'(each seed)':26} {'adversary':>10} {'(each seed)':26} seconds")
    for way, changed in changes(asked.out).items():
        found = []
        for seed in range(asked.seeds):
            folder, steps = asked.out / f"{way}-{asked.steps}-{seed}", asked.steps
            if way == "clone":
                steps //= 2
                cloned = Path(f"{folder}-cloned")
                trained(cloned, "clone", {"teacher": TEACHER, "games": TEACHER_GAMES}, steps, seed)
                changed = {"warm_start": str(cloned / "model.npz")}
                print(f"  moves matched: {read_curve(cloned)[-1].figures['matched']:.3f}", result(cloned, asked.games))
            trained(folder, "maskable-ppo", changed, steps, seed)
            found.append(result(folder, asked.games))
        columns = {name: [one[name] for one in found] for name in found[0]}
        texts = [
            f"{np.mean(columns[name]):{width}.0f} {' '.join(f'{one:.0f}' for one in columns[name]):26}"
            for name, width in (("plain", 8), ("adversary", 10))
        ]
        print(f"{way:10} {' '.join(texts)} {np.mean(columns['seconds']):.0f}", flush=True)


if __name__ == "__main__":
    main()
