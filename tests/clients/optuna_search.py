"""Optuna: a search for hyper-parameters; each trial is a run folder, and the same script resumes a stopped search."""

import optuna
from mergefall_training.learn.presets import configure
from mergefall_training.learn.run import train


def mean_score(trial):
    rate = trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)
    changed = {"learning_rate": rate, "gamma": trial.suggest_categorical("gamma", [0.95, 0.99, 0.997])}
    config = configure("maskable-ppo", changed=changed, timesteps=20_000, episodes=100, seed=trial.number)
    return train(f"runs/trial-{trial.number}", config, resume=True).points[-1].mean


study = optuna.create_study(study_name="ppo", storage="sqlite:///trials.db", direction="maximize", load_if_exists=True)
study.optimize(mean_score, n_trials=5)  # better 30, of 200,000 steps each
print(study.best_trial.number, study.best_params)

# What `make clients` checks beyond that:
assert study.best_value > 1000
