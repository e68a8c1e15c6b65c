"""Policies of Stable-Baselines3 and sb3-contrib as players."""

import numpy as np
import torch
from mergefall.games import game_of
from mergefall.typing import Array, Arrays, Floats, Observation, Options
from mergefall_baselines import Player

from mergefall_training.learn.agents import counted_by
from mergefall_training.learn.devices import device_of
from mergefall_training.learn.sb3.networks import policy_class, set_parameters
from mergefall_training.play.preferences import ModelPlayer
from mergefall_training.play.workers import environment


class PolicyAgent(ModelPlayer):
    """A policy of a Stable-Baselines3 algorithm; its preferences are Q-values or log-probabilities.

    It plays by the rules that it was trained with, as far as they shape observations and actions.

    - `spec`: the model's (`models.Model`).
    - `device`: where PyTorch computes it.
    - `log_probabilities`: whether its preferences are log-probabilities.
    - `rewards`, `gamma`: what its values count, and their discount, for searches with it at the leaves. `rewards` is
      None if no search counts that.
    """

    def __init__(self, spec: Options, arrays: Arrays, device: str = "cpu") -> None:
        kwargs: Options = spec["env_kwargs"]
        self.spec, network = spec, spec["network"]
        self._rules = {name: kwargs[name] for name in game_of(spec["env_id"]).arguments("spaces") if name in kwargs}
        self.rewards: bool | str | None = network.get("rewards", counted_by(spec))
        self.gamma, self._unit = network.get("gamma", 1.0), network.get("reward_unit", 1.0)
        q_values = network.get("q_values", spec["algorithm"] == "dqn")
        kind, arguments = policy_class("dqn" if q_values else "maskable-ppo", network, kwargs)
        env = environment(spec["env_id"], kwargs)
        policy = kind(env.observation_space, env.action_space, lambda _: 0.0, **arguments)
        super().__init__(policy, [], spec["env_id"], self._rules)
        self.log_probabilities = not hasattr(policy, "q_net")
        set_parameters(policy, arrays)
        policy.to(device_of(device))

    def with_rules(self, rules: Options) -> Player:
        for name, ours in self._rules.items():
            if name in rules and rules[name] != ours:
                raise ValueError(
                    f"{self.name} was trained with {name}={ours!r}, but the environment has {rules[name]!r}"
                )
        return self

    def preferences(self, observation: Observation) -> Array:
        """Log-probabilities, or Q-values in units of the reward."""
        values = super().preferences(observation)
        return values if self.log_probabilities else values * self._unit

    def search_values(self, observation: Observation) -> tuple[Floats, Floats | None]:
        if self.log_probabilities:
            return super().search_values(observation)
        return self.values(observation), None

    def board_values(self, observation: Observation) -> Floats:
        """The best Q-value, or what the value network predicts, in units of the reward.

        Agents of earlier versions of the package divide both by a standard deviation, if trained with `normalize`.
        """
        if not self.log_probabilities:
            return super().board_values(observation)
        tensors, single = self.policy.obs_to_tensor(observation)
        with torch.no_grad():
            values = self.policy.predict_values(tensors)[:, 0].cpu().numpy().astype(np.float64) * self._unit
        return values if single else values[0]


player = PolicyAgent
