"""TorchRL: a policy that draws legal actions alone; and TorchRL's own checks."""

import gymnasium as gym
import mergefall  # registers the environments
import torch
from mergefall.wrappers import flat, observe_mask
from tensordict.nn import TensorDictModule
from torchrl.envs import ActionMask, DTypeCastTransform, GymWrapper, TransformedEnv
from torchrl.modules import MaskedCategorical, ProbabilisticActor

env = GymWrapper(observe_mask(flat(gym.make("mergefall/Game2048-v0"))), categorical_action_encoding=True)
env = TransformedEnv(env, DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]))
env.append_transform(ActionMask())
network = TensorDictModule(torch.nn.Linear(288, 4), in_keys=["observation"], out_keys=["logits"])
keys = {"logits": "logits", "mask": "action_mask"}
policy = ProbabilisticActor(network, in_keys=keys, distribution_class=MaskedCategorical)
played = env.rollout(200, policy)

# What `make clients` checks beyond that:
from torchrl.envs import GymEnv  # noqa: E402
from torchrl.envs.utils import check_env_specs  # noqa: E402

check_env_specs(GymEnv("mergefall/Tetris-v0"))
legal = played["action_mask"].gather(1, played["action"].view(-1, 1))
print(len(played), "moves, all legal:", bool(legal.all()))
assert legal.all()
