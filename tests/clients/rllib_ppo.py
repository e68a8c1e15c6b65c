"""RLlib: PPO with its own action-masking module."""

import gymnasium as gym
from mergefall.wrappers import flat, observe_mask
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env


def make_env(_):
    return observe_mask(flat(gym.make("mergefall:mergefall/Game2048-v0", reward="log2")), "observations")


register_env("masked-2048", make_env)
module = RLModuleSpec(module_class=ActionMaskingTorchRLModule, model_config={"head_fcnet_hiddens": [64]})
config = PPOConfig().environment("masked-2048").env_runners(num_env_runners=0).rl_module(rl_module_spec=module)
algorithm = config.training(train_batch_size=512, minibatch_size=128, num_epochs=1).build_algo()
result = algorithm.train()
print("mean return", result["env_runners"]["episode_return_mean"])

# What `make clients` checks beyond that:
assert result["env_runners"]["episode_return_mean"] > 0
