"""DQN over afterstates whose gradient steps look at the afterstates of the chosen actions only."""

from functools import partial
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DQN

from mergefall_training.learn.sb3.networks import AfterstatesDQNPolicy


class AfterstatesDQN(DQN):
    """Stable-Baselines3's DQN, which with `AfterstatesPolicy` learns in half the time (2048) or less (Tetris).

    Its updates are the same up to rounding: only the values of the chosen actions enter the loss, and the value of an
    illegal action (`EachAction`) has no gradient. In the loss that is logged, illegal actions count as 0.
    """

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        if not isinstance(self.policy, AfterstatesDQNPolicy):
            return super().train(gradient_steps, batch_size)
        policy: Any = self.policy
        policy.set_training_mode(True)
        self._update_learning_rate(policy.optimizer)
        losses = []
        for _ in range(gradient_steps):
            batch: Any = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)  # pyright: ignore[reportOptionalMemberAccess]
            discounts = self.gamma if batch.discounts is None else batch.discounts
            with torch.no_grad():
                following = policy.q_net_target(batch.next_observations).amax(dim=1, keepdim=True)
                aims = batch.rewards + (1 - batch.dones) * discounts * following
            network = policy.q_net
            of_actions = partial(network.features_extractor, actions=batch.actions[:, 0])
            features = network.extract_features(batch.observations, of_actions)
            values, legal = network.q_net[0].linear(features), features[:, -1:] > 0
            loss = (torch.nn.functional.smooth_l1_loss(values, aims, reduction="none") * legal).mean()
            policy.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(policy.parameters(), self.max_grad_norm)
            policy.optimizer.step()
            losses.append(loss.item())
        self._n_updates += gradient_steps
        self.logger.record("train/loss", np.mean(losses))
