"""CleanRL: its ppo.py, with this `make_env` in place of its own. The lines of ours are the import and `flat`."""

import gymnasium as gym
import mergefall  # registers the environments
from mergefall.wrappers import flat, replace_illegal


def make_env(env_id, idx, capture_video, run_name):
    def thunk():
        env = flat(replace_illegal(gym.make(env_id, reward="log2")))
        return gym.wrappers.RecordEpisodeStatistics(env)

    return thunk


envs = gym.vector.SyncVectorEnv([make_env("mergefall/Game2048-v0", i, False, "first") for i in range(4)])

# What `make clients` checks beyond that:
import torch  # noqa: E402

actor = torch.nn.Linear(envs.single_observation_space.shape[0], envs.single_action_space.n)
observation, _ = envs.reset(seed=1)
losses = []
for _ in range(128):
    chances = torch.distributions.Categorical(logits=actor(torch.as_tensor(observation)))
    action = chances.sample()
    observation, reward, terminated, truncated, infos = envs.step(action.numpy())
    losses.append(-(chances.log_prob(action) * torch.as_tensor(reward)).mean())
loss = torch.stack(losses).mean()
loss.backward()
print(f"loss {loss.item():.3f}")
assert torch.isfinite(loss)
assert actor.weight.grad.any()
