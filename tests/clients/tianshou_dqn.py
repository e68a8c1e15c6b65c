"""Tianshou: DQN that sees the action mask beside the observation."""

import gymnasium as gym
import mergefall  # registers the environments
import tianshou as ts
import torch
from mergefall.wrappers import flat
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory


class WithMask(gym.Wrapper):
    def reset(self, **options):
        observation, info = self.env.reset(**options)
        return {"obs": observation, "mask": info["action_mask"] == 1}, info

    def step(self, action):
        observation, *rest = self.env.step(action)
        return {"obs": observation, "mask": rest[-1]["action_mask"] == 1}, *rest


def make_env():
    return WithMask(flat(gym.make("mergefall/Game2048-v0", reward="log2")))


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(288, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))

    def forward(self, obs, state=None, info=None):
        return self.layers(torch.as_tensor(obs, dtype=torch.float32)), state


envs = ts.env.DummyVectorEnv([make_env for _ in range(4)])
space = gym.spaces.Discrete(4)
policy = DiscreteQLearningPolicy(model=Network(), action_space=space, eps_training=0.1, eps_inference=0.0)
algorithm = ts.algorithm.DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.95, target_update_freq=100)
buffer = ts.data.VectorReplayBuffer(5000, 4)
collector = ts.data.Collector(algorithm, envs, buffer, exploration_noise=True)
collector.reset()
collector.collect(n_step=400)
with ts.utils.torch_utils.policy_within_training_step(policy):
    print(algorithm.update(sample_size=64, buffer=buffer))
batch, _ = buffer.sample(0)  # all that was played
legal = batch.obs.mask[range(len(batch)), batch.act]
print(len(batch), "moves, all legal:", legal.all())
assert legal.all()
