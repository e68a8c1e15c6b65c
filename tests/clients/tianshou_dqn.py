"""Tianshou: DQN that plays and values legal actions alone."""

import gymnasium as gym
import mergefall  # registers the environments
import tianshou as ts
from mergefall.wrappers import flat, observe_mask
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.utils.net.common import Net

env = observe_mask(flat(gym.make("mergefall/Game2048-v0", reward="log2")), "obs", "mask")
envs = ts.env.DummyVectorEnv([lambda: gym.make(env.spec)] * 4)
network = Net(state_shape=288, action_shape=4, hidden_sizes=[64])
policy = DiscreteQLearningPolicy(model=network, action_space=env.action_space, eps_training=0.1)
algorithm = ts.algorithm.DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), gamma=0.95)
collector = ts.data.Collector(algorithm, envs, ts.data.VectorReplayBuffer(5000, 4), exploration_noise=True)
collector.collect(n_step=400, reset_before_collect=True)

# What `make clients` checks beyond that:
with ts.utils.torch_utils.policy_within_training_step(policy):
    print(algorithm.update(sample_size=64, buffer=collector.buffer))
batch, _ = collector.buffer.sample(0)  # all that was played
legal = batch.obs.mask[range(len(batch)), batch.act]
print(len(batch), "moves, all legal:", legal.all())
assert legal.all()
