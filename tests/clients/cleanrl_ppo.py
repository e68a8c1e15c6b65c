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

network = torch.nn.Sequential(torch.nn.Linear(envs.single_observation_space.shape[0], 64), torch.nn.Tanh())
actor, critic = torch.nn.Linear(64, envs.single_action_space.n), torch.nn.Linear(64, 1)
parameters = [*network.parameters(), *actor.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(parameters, lr=2.5e-4, eps=1e-5)
observation, _ = envs.reset(seed=1)
gains, logprobs, values = [], [], []
for _ in range(128):
    hidden = network(torch.as_tensor(observation))
    chances = torch.distributions.Categorical(logits=actor(hidden))
    action = chances.sample()
    observation, reward, terminated, truncated, infos = envs.step(action.numpy())
    gains.append(torch.as_tensor(reward, dtype=torch.float32))
    logprobs.append(chances.log_prob(action))
    values.append(critic(hidden).squeeze(1))
returns = torch.stack(gains).flip(0).cumsum(0).flip(0)
advantages = returns - torch.stack(values)
loss = -(torch.stack(logprobs) * advantages.detach()).mean() + 0.5 * advantages.square().mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
print(f"loss {loss.item():.3f}")
assert torch.isfinite(loss)
