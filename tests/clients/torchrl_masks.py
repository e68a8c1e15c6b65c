"""TorchRL: its own checks, and a policy that draws legal actions alone."""

import gymnasium as gym
import mergefall  # registers the environments
import torch
from mergefall.wrappers import flat
from tensordict.nn import TensorDictModule
from torchrl.data import Binary
from torchrl.envs import ActionMask, DTypeCastTransform, GymEnv, GymWrapper, TransformedEnv
from torchrl.envs.libs.gym import default_info_dict_reader
from torchrl.envs.utils import check_env_specs
from torchrl.modules import MaskedCategorical, ProbabilisticActor

check_env_specs(GymEnv("mergefall/Tetris-v0"))

env = GymWrapper(flat(gym.make("mergefall/Game2048-v0")), categorical_action_encoding=True)
env.set_info_dict_reader(default_info_dict_reader(["action_mask"], {"action_mask": Binary(4, dtype=torch.int8)}))
env = TransformedEnv(env, DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"]))
env.append_transform(ActionMask())
network = TensorDictModule(torch.nn.Linear(288, 4), in_keys=["observation"], out_keys=["logits"])
keys = {"logits": "logits", "mask": "action_mask"}
policy = ProbabilisticActor(network, in_keys=keys, distribution_class=MaskedCategorical)
played = env.rollout(200, policy)

legal = played["action_mask"].gather(1, played["action"].view(-1, 1))
print(len(played), "moves, all legal:", bool(legal.all()))
assert legal.all()
