"""RLlib: PPO with its own action-masking module."""

import gymnasium as gym
import mergefall  # registers the environments
import numpy as np
from mergefall.wrappers import flat
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env


class WithMask(gym.Wrapper):
    def __init__(self, env):
        super().__init__(env)
        mask = gym.spaces.Box(0, 1, (env.action_space.n,), np.float32)
        self.observation_space = gym.spaces.Dict({"observations": env.observation_space, "action_mask": mask})

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        return self._seen(observation, info), info

    def step(self, action):
        observation, *rest = self.env.step(action)
        return self._seen(observation, rest[-1]), *rest

    def _seen(self, observation, info):
        return {"observations": observation, "action_mask": info["action_mask"].astype(np.float32)}


register_env("masked-2048", lambda _: WithMask(flat(gym.make("mergefall/Game2048-v0", reward="log2"))))
module = RLModuleSpec(module_class=ActionMaskingTorchRLModule, model_config={"head_fcnet_hiddens": [64]})
config = PPOConfig().environment("masked-2048").env_runners(num_env_runners=0).rl_module(rl_module_spec=module)
algorithm = config.training(train_batch_size=512, minibatch_size=128, num_epochs=1).build_algo()
result = algorithm.train()
print("mean return", result["env_runners"]["episode_return_mean"])
assert result["env_runners"]["episode_return_mean"] > 0
