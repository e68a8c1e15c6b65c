"""PPO with action masks for 2048 and Tetris, in one file of plain PyTorch, with the names of CleanRL's `ppo.py`.

    python training/ppo.py --out runs/2048 --total-timesteps 1000000
    mergefall evaluate ppo:Player --option checkpoint=runs/2048/checkpoint.pt    # in the folder of this file
    python training/ppo.py --out runs/tetris --env-id mergefall/Tetris-v0 --env-kwargs cols 6 rows 10 --shaping bcts
    tensorboard --logdir runs

The file needs mergefall, PyTorch, TensorBoard and tyro, and nothing else of this project: copy it and change it. On the
same machine with the same number of threads, equal arguments give equal weights.

- Schulman et al. 2017, Proximal Policy Optimization Algorithms, https://arxiv.org/abs/1707.06347
- Huang et al. 2022, CleanRL, https://github.com/vwxyzjn/cleanrl
- Huang & Ontañón 2022, A Closer Look at Invalid Action Masking, https://arxiv.org/abs/2006.14171
"""

from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import gymnasium as gym
import mergefall  # noqa: F401 (registers the environments)
import numpy as np
import torch
import tyro
from mergefall.imports import inert
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter

FIRST_SEED = 1_000_000  # of training environments; evaluations use the seeds below


@dataclass(frozen=True)
class Args:
    """The defaults suit 2048 on 4×4.

    Args:
        env_id: id of the environment.
        env_kwargs: arguments of the environment, such as `rows 3 cols 3`; 2048 has reward=log2 by default.
        shaping: potential for reward shaping, such as `monotone-smooth`; its discount is `gamma`. Default: no shaping.
        max_episode_steps: steps after which an episode is truncated; default: no limit.
        seed: seed of weights and actions; environment i has the seed 1,000,000 · (seed + 1) + i.
        device: PyTorch device of the network.
        total_timesteps: steps of all environments together, rounded up to whole iterations.
        learning_rate: initial learning rate of Adam; it falls linearly to 0.
        num_envs: number of parallel environments.
        num_steps: steps of each environment per rollout.
        num_minibatches: minibatches per epoch; divides num_envs · num_steps.
        update_epochs: epochs per rollout.
        gamma: discount.
        gae_lambda: λ of generalised advantage estimation: 1 trusts the observed rewards, 0 the learned values.
        clip_coef: clipping range of the probability ratio.
        ent_coef: coefficient of the entropy bonus.
        vf_coef: coefficient of the value loss, which is the mean squared error.
        max_grad_norm: largest norm of a gradient; longer ones are scaled down.
        channels: width of the network.
        mixed_precision: compute the network in bfloat16 where that is fast: on GPUs, and on CPUs with AMX or AVX-512
            BF16.
        checkpoint_interval: iterations between checkpoints; each prints a line.
        out: folder of the checkpoint and the TensorBoard logs.
    """

    env_id: str = "mergefall/Game2048-v0"
    env_kwargs: dict[str, int | str] = field(default_factory=dict)
    shaping: str | None = None
    max_episode_steps: int | None = None
    seed: int = 0
    device: str = "cpu"
    total_timesteps: int = 3_000_000
    learning_rate: float = 0.002
    num_envs: int = 256
    num_steps: int = 8
    num_minibatches: int = 4
    update_epochs: int = 2
    gamma: float = 0.99
    gae_lambda: float = 0.7
    clip_coef: float = 0.2
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    channels: int = 128
    mixed_precision: bool = True
    checkpoint_interval: int = 50
    out: str = "runs/ppo"

    def __post_init__(self) -> None:
        if self.num_minibatches not in range(1, self.batch_size) or self.batch_size % self.num_minibatches:
            expected = f"expected a divisor of num_envs · num_steps, {self.batch_size}, below it"
            raise ValueError(f"num_minibatches is {self.num_minibatches}; {expected}")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed}; expected at least 0, because evaluations have the seeds below")

    @property
    def batch_size(self) -> int:
        """Steps per rollout, of all environments together."""
        return self.num_envs * self.num_steps


# -- environments -----------------------------------------------------------------------------------------------------


def make_envs(args: Args, num_envs: int, autoreset_mode: str) -> Any:
    kwargs: dict[str, Any] = {"reward": "log2"} if "Game2048" in args.env_id else {}
    kwargs |= {"max_episode_steps": args.max_episode_steps} | args.env_kwargs
    if args.shaping is not None:
        kwargs["shaping"] = {"potential": args.shaping, "gamma": args.gamma}
    return gym.make_vec(args.env_id, num_envs, autoreset_mode=autoreset_mode, **kwargs)


def flatten_obs(obs: Any, num_envs: int) -> Tensor:
    """The network's input, uint8[num_envs, k]: the cells of the board, in Tetris followed by the pieces."""
    parts = [obs[key] for key in ("board", "piece", "queue", "hold") if key in obs] if isinstance(obs, dict) else [obs]
    return torch.from_numpy(
        np.concatenate([np.asarray(part, np.uint8).reshape(num_envs, -1) for part in parts], axis=1)
    )


def obs_and_mask(obs: Any, infos: dict[str, Any], device: str) -> tuple[Tensor, Tensor]:
    """(obs uint8[num_envs, k], mask bool[num_envs, actions]) of a batch; the mask marks legal actions."""
    mask = torch.from_numpy(infos["action_mask"]).bool()
    return flatten_obs(obs, len(mask)).to(device), mask.to(device)


class NormalizeReward:
    """Divides rewards by the running standard deviation of all discounted returns, and clips them to ±10."""

    def __init__(self, num_envs: int, gamma: float) -> None:
        self.gamma, self.returns = gamma, torch.zeros(num_envs, dtype=torch.float64)
        # Count of returns, their sum, the sum of their squares; at first almost none, with variance 1.
        self.sums = torch.tensor([1e-4, 0.0, 1e-4], dtype=torch.float64)

    def __call__(self, reward: Tensor, done: Tensor) -> Tensor:
        """The scaled rewards float64[num_envs] of one step; `done` bool[num_envs] marks episodes that it ended."""
        returns = self.gamma * self.returns + reward
        self.sums += torch.stack([torch.ones_like(returns), returns, returns**2]).sum(dim=1)
        mean, mean_square = self.sums[1:] / self.sums[0]
        self.returns = returns * ~done
        return (reward / (mean_square - mean**2 + 1e-8).sqrt()).clamp(-10, 10)


# -- the network ------------------------------------------------------------------------------------------------------


class Conv(nn.Module):
    """A convolution without padding, with ReLU: [n, r, c, planes] to [n, r − rows + 1, c − cols + 1, channels].

    Written as a matrix product, it is faster on a CPU than `nn.Conv2d` for boards this small.
    """

    def __init__(self, rows: int, cols: int, planes: int, channels: int) -> None:
        super().__init__()
        self.rows, self.cols = rows, cols
        self.layer = nn.Linear(rows * cols * planes, channels)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[1] - self.rows + 1, x.shape[2] - self.cols + 1
        shifted = [x[:, r : r + height, c : c + width] for r in range(self.rows) for c in range(self.cols)]
        return self.layer(torch.cat(shifted, dim=3)).relu()


def one_hot(x: Tensor, classes: int) -> Tensor:
    return (x.unsqueeze(-1) == torch.arange(classes, device=x.device)).float()


class Game2048Network(nn.Module):
    """Ranks one-hot, then two layers of 2×2 convolutions: one window sees a merge."""

    def __init__(self, space: Any, channels: int) -> None:
        super().__init__()
        self.rows, self.cols = space.shape
        self.ranks = int(space.high.max()) + 1
        second = min(2, self.rows - 1), min(2, self.cols - 1)
        self.windows = nn.Sequential(Conv(2, 2, self.ranks, channels), Conv(*second, channels, channels))
        self.width = (self.rows - second[0]) * (self.cols - second[1]) * channels

    def forward(self, obs: Tensor) -> Tensor:
        return self.windows(one_hot(obs, self.ranks).unflatten(1, (self.rows, self.cols))).flatten(1)


class TetrisNetwork(nn.Module):
    """3×3 convolutions, then each column as a whole, then a dense layer that also sees the pieces."""

    def __init__(self, space: Any, channels: int) -> None:
        super().__init__()
        self.rows, self.cols = space["board"].shape
        self.piece_kinds, few, self.width = int(space["piece"].n), channels // 4, 2 * channels
        pieces = 1 + (space["queue"].shape[0] if "queue" in space.spaces else 0) + ("hold" in space.spaces)
        self.windows = nn.Sequential(Conv(3, 3, 1, few), Conv(self.rows - 1, 1, few, few))
        self.last = nn.Linear(self.cols * few + pieces * self.piece_kinds, self.width)

    def forward(self, obs: Tensor) -> Tensor:
        board, pieces = obs.split([self.rows * self.cols, obs.shape[1] - self.rows * self.cols], dim=1)
        # Walls and floor count as filled.
        padded = nn.functional.pad(board.unflatten(1, (self.rows, self.cols)).float(), (1, 1, 0, 1), value=1.0)
        columns = self.windows(padded.unsqueeze(3)).flatten(1)
        return self.last(torch.cat([columns, one_hot(pieces, self.piece_kinds).flatten(1)], dim=1)).relu()


class Agent(nn.Module):
    """Actor and critic on one network; the network computes in bfloat16 if that is `fast`."""

    def __init__(self, envs: Any, channels: int, fast: bool) -> None:
        super().__init__()
        self.fast, space = fast, envs.single_observation_space
        if isinstance(space, gym.spaces.Dict) and "place" in space.spaces:
            raise ValueError(f"the environment shows {space}; these networks take 2048 and Tetris by placements")
        self.network = (TetrisNetwork if isinstance(space, gym.spaces.Dict) else Game2048Network)(space, channels)
        self.actor = nn.Linear(self.network.width, int(envs.single_action_space.n))
        self.critic = nn.Linear(self.network.width, 1)
        for part, std in ((self.network, 2**0.5), (self.actor, 0.01), (self.critic, 1.0)):
            for layer in part.modules():
                if isinstance(layer, nn.Linear):
                    nn.init.orthogonal_(layer.weight, std)
                    nn.init.zeros_(layer.bias)

    def get_hidden(self, obs: Tensor) -> Tensor:
        with torch.autocast(obs.device.type, torch.bfloat16, enabled=self.fast):
            return self.network(obs).float()

    def get_value(self, obs: Tensor) -> Tensor:
        return self.critic(self.get_hidden(obs)).squeeze(1)

    def get_action_and_value(
        self, obs: Tensor, mask: Tensor, action: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(action, logprob, entropy, value), each [n]; draws the action by default, and never an illegal one."""
        hidden = self.get_hidden(obs)
        logits = self.actor(hidden).masked_fill(~mask, -1e9)  # with −∞, the entropy would contain 0 · −∞
        logprobs: Tensor = logits.log_softmax(dim=1)
        probs = logprobs.exp()
        if action is None:
            action = probs.cpu().multinomial(1).squeeze(1).to(obs.device)  # a GPU draws the same
        logprob = logprobs.gather(1, action.unsqueeze(1)).squeeze(1)
        return action, logprob, -(probs * logprobs).sum(dim=1), self.critic(hidden).squeeze(1)


# -- the algorithm ----------------------------------------------------------------------------------------------------


def compute_gae(
    rewards: Tensor, values: Tensor, next_values: Tensor, dones: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    """Advantages float[num_steps, num_envs] by generalised advantage estimation (Schulman et al. 2016).

    - `rewards`, `values`, `next_values`: float[num_steps, num_envs]. `next_values[t]` is the value of the state that
      step t leads to, before any reset: 0 if the step terminates the episode, but not if it truncates it.
    - `dones`: bool[num_steps, num_envs], whether step t ends an episode, either way.

    >>> ones, dones = torch.ones(3, 1), torch.tensor([[False], [True], [False]])
    >>> compute_gae(ones, ones, 2 * ones, dones, gamma=0.5, gae_lambda=0.5).squeeze(1)
    tensor([1.2500, 1.0000, 1.0000])
    """
    deltas = rewards + gamma * next_values - values
    advantages, lastgaelam = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        advantages[t] = lastgaelam = deltas[t] + gamma * gae_lambda * lastgaelam * ~dones[t]
    return advantages


class Trainer:
    """Agent and environments; an iteration is a rollout and an update."""

    def __init__(self, args: Args) -> None:
        self.args = args
        torch.manual_seed(args.seed)
        self.envs = make_envs(args, args.num_envs, "SameStep")
        obs, infos = self.envs.reset(seed=FIRST_SEED * (args.seed + 1))
        self.next_obs, self.next_mask = obs_and_mask(obs, infos, args.device)
        processor = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}  # older PyTorch
        fast = args.device != "cpu" or any(processor.get(name) for name in ("amx_bf16", "avx512_bf16"))
        self.agent = Agent(self.envs, args.channels, args.mixed_precision and fast).to(args.device)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), eps=1e-5, fused=True)
        self.normalize_reward = NormalizeReward(args.num_envs, args.gamma)
        self.last_results: deque[int] = deque(maxlen=100)  # of finished episodes

    @torch.no_grad()
    def rollout(self) -> list[Tensor]:
        """Take `num_steps` steps in each environment.

        Returns obs, masks, actions, logprobs, advantages and returns, each [num_steps, num_envs, …].
        """
        args, device = self.args, self.args.device
        shape = args.num_steps, args.num_envs
        obs = torch.zeros((*shape, *self.next_obs.shape[1:]), dtype=torch.uint8, device=device)
        masks = torch.zeros((*shape, *self.next_mask.shape[1:]), dtype=torch.bool, device=device)
        actions = torch.zeros(shape, dtype=torch.int64, device=device)
        logprobs, rewards, values, final_values = torch.zeros((4, *shape), device=device)
        dones = torch.zeros(shape, dtype=torch.bool, device=device)

        for step in range(args.num_steps):
            obs[step], masks[step] = self.next_obs, self.next_mask
            actions[step], logprobs[step], _, values[step] = self.agent.get_action_and_value(obs[step], masks[step])
            next_obs, reward, terminated, truncated, infos = self.envs.step(actions[step].cpu().numpy())
            self.next_obs, self.next_mask = obs_and_mask(next_obs, infos, device)
            dones[step] = done = torch.from_numpy(terminated | truncated)
            rewards[step] = self.normalize_reward(torch.from_numpy(reward), done)
            if done.any():
                final = infos["final_info"]
                self.last_results.extend(final["lines" if "lines" in final else "score"][done.numpy()].tolist())
            only_truncated = truncated & ~terminated
            if only_truncated.any():  # such an episode could have continued, so its last state has a value
                final_obs = torch.cat([flatten_obs(final, 1) for final in infos["final_obs"][only_truncated]])
                final_values[step, torch.from_numpy(only_truncated)] = self.agent.get_value(final_obs.to(device))

        last_value = self.agent.get_value(self.next_obs).unsqueeze(0)
        next_values = torch.where(dones, final_values, torch.cat([values[1:], last_value]))
        advantages = compute_gae(rewards, values, next_values, dones, args.gamma, args.gae_lambda)
        return [obs, masks, actions, logprobs, advantages, advantages + values]

    def update(self, rollout: list[Tensor]) -> dict[str, float]:
        """Improve actor and critic; returns the means of losses and diagnostics over all minibatches."""
        args = self.args
        b_obs, b_masks, b_actions, b_logprobs, b_advantages, b_returns = (part.flatten(0, 1) for part in rollout)
        diagnostics: list[Tensor] = []
        for _ in range(args.update_epochs):
            b_inds = torch.randperm(args.batch_size).to(args.device)
            for mb_inds in b_inds.split(args.batch_size // args.num_minibatches):
                _, newlogprob, entropy, newvalue = self.agent.get_action_and_value(
                    b_obs[mb_inds], b_masks[mb_inds], b_actions[mb_inds]
                )
                ratio = (newlogprob - b_logprobs[mb_inds]).exp()

                mb_advantages = b_advantages[mb_inds]
                mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
                pg_loss1 = -mb_advantages * ratio
                pg_loss2 = -mb_advantages * ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
                pg_loss = torch.max(pg_loss1, pg_loss2).mean()
                v_loss = (newvalue - b_returns[mb_inds]).square().mean()
                entropy_loss = entropy.mean()
                loss = pg_loss - args.ent_coef * entropy_loss + args.vf_coef * v_loss

                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), args.max_grad_norm)
                self.optimizer.step()

                clipfrac = ((ratio - 1).abs() > args.clip_coef).float().mean()
                diagnostics.append(torch.stack([pg_loss, v_loss, entropy_loss, clipfrac]).detach())
        names = ("losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/clipfrac")
        return dict(zip(names, torch.stack(diagnostics).mean(dim=0).tolist(), strict=True))


def train(args: Args) -> Agent:
    """Train to the last iteration, with a checkpoint now and then."""
    path = Path(args.out) / "checkpoint.pt"
    if path.exists():
        raise ValueError(f"{path} exists; choose another folder (--out)")
    trainer, start_time = Trainer(args), perf_counter()
    num_iterations = -(-args.total_timesteps // args.batch_size)
    with SummaryWriter(args.out) as writer:
        for iteration in range(1, num_iterations + 1):
            lrnow = (1 - (iteration - 1) / num_iterations) * args.learning_rate
            trainer.optimizer.param_groups[0]["lr"] = lrnow
            losses, global_step = trainer.update(trainer.rollout()), iteration * args.batch_size
            mean, sps = float(np.mean(trainer.last_results or [np.nan])), global_step / (perf_counter() - start_time)
            charts = {"charts/learning_rate": lrnow, "charts/SPS": sps, "charts/mean_of_last_episodes": mean}
            for name, value in (charts | losses).items():
                writer.add_scalar(name, value, global_step)
            if iteration % args.checkpoint_interval == 0 or iteration == num_iterations:
                part = path.with_suffix(".part")
                torch.save({"args": asdict(args), "agent": trainer.agent.state_dict()}, part)
                part.replace(path)  # so that a checkpoint is whole
                print(f"{global_step:,} steps: mean of last episodes {mean:,.1f}, {sps:,.0f} steps/s", flush=True)
    return trainer.agent


def load(checkpoint: str) -> tuple[Args, dict[str, Tensor]]:
    """(arguments, parameters of the agent) of a checkpoint, whoever wrote it: it runs no code and imports nothing."""
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    args = Args(**{name: value for name, value in inert(state["args"]).items() if name != "device"})
    return args, state["agent"]


class Player:
    """A checkpoint as a player: `mergefall evaluate ppo:Player --option checkpoint=runs/2048/checkpoint.pt`."""

    def __init__(self, checkpoint: str) -> None:
        args, parameters = load(checkpoint)
        self.agent = Agent(make_envs(args, 1, "NextStep"), args.channels, fast=False)
        self.agent.load_state_dict(parameters)

    @staticmethod
    def plays(checkpoint: str) -> dict[str, Any]:
        """The environment that it was trained in, with its arguments; `mergefall` plays there by default."""
        args, _ = load(checkpoint)
        return {"env_id": args.env_id, **args.env_kwargs}

    @torch.no_grad()
    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        action_masks: Any = None,
    ) -> tuple[np.int64, Any]:
        """The most probable legal action, by Stable-Baselines3's protocol: for one observation and its mask."""
        logits = self.agent.actor(self.agent.get_hidden(flatten_obs(observation, 1)))[0].numpy()
        return np.where(action_masks, logits, -np.inf).argmax(), state


if __name__ == "__main__":
    train(tyro.cli(Args, description=__doc__))
