"""Writes trained policies as model files of Stable-Baselines3."""

from pathlib import Path
from typing import Any

from mergefall.typing import Dict, FilePath
from mergefall_baselines import make

from mergefall_training.learn.sb3.networks import policy_class
from mergefall_training.learn.sb3.player import PolicyAgent
from mergefall_training.learn.sb3.train import CLASSES
from mergefall_training.play.workers import environment

REPLAY_BUFFER = 100_000  # of an exported DQN, if it is trained further


def export(path: str, file: FilePath, model: str = "best") -> Any:
    """Write a trained policy as a model file that Stable-Baselines3 or sb3-contrib loads; returns the model.

    The file has the policy and its optimizer's defaults, but not the optimizer's state and no environment. To load it,
    `mergefall_training` must be importable, because it defines the policies and feature extractors.

    Args:
        path: run folder or model file of an algorithm of SB3, of `distill` or `kickstart`; or the name of such a
            player.
        file: to write, a .zip.
        model: which model of a run folder: `best` or `last`.

    Raises ValueError if the agent is no policy of Stable-Baselines3.
    """
    agent = make(path, model=model) if Path(path).exists() else make(path)
    if not isinstance(agent, PolicyAgent):
        raise ValueError(
            f"{path} is no policy of Stable-Baselines3; expected an agent that SB3, distill or kickstart trained"
        )
    spec, network = agent.spec, agent.spec["network"]
    algorithm = "maskable-ppo" if agent.log_probabilities else "dqn"
    policy, kwargs = policy_class(algorithm, network, spec["env_kwargs"])
    arguments: Dict = {"gamma": network.get("gamma", 0.99)}
    if algorithm == "dqn":
        arguments["buffer_size"] = REPLAY_BUFFER
    env = environment(spec["env_id"], spec["env_kwargs"])
    exported = CLASSES[algorithm](policy, env, policy_kwargs=kwargs, device="cpu", **arguments)
    exported.policy.load_state_dict(agent.policy.state_dict())
    exported.save(file)
    return exported
