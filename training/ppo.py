"""Masked PPO for 2048 and Tetris in one file: plain PyTorch on `gymnasium.make_vec`, to read through and to change.

    python training/ppo.py --out runs/2048 --total-steps 1000000
    python training/ppo.py --out runs/2048 --total-steps 1000000 --resume    # after a kill, from the last checkpoint
    python training/ppo.py --evaluate runs/2048/checkpoint.pt
    python training/ppo.py --out runs/tetris --env-id mergefall/Tetris-v0 --env-kwargs cols 6 rows 10 --shaping bcts
    tensorboard --logdir runs

It needs mergefall, torch and tensorboard, and nothing else of this project: copy it and go on from there. The algorithm
is that of Schulman et al. 2017, https://arxiv.org/abs/1707.06347. A run gives the same weights again on the same
machine with the same number of threads, whether or not it was interrupted.
"""

from __future__ import annotations

import os
import sys
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
from mergefall.checks import id_of_file
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter

FIRST_SEED = 1_000_000  # of training games: evaluations play the seeds below


@dataclass(frozen=True)
class Config:
    """What is trained, and how; the defaults are for 2048 on 4×4."""

    env_id: str = "mergefall/Game2048-v0"
    """The environment."""
    env_kwargs: dict[str, int | str] = field(default_factory=dict)
    """Its arguments, such as `rows 3 cols 3`. 2048 pays log2(1 + score of the move) unless `reward` says otherwise."""
    shaping: str | None = None
    """A potential whose differences are paid besides, such as `monotone-smooth`; its discount is `gamma`."""
    max_episode_steps: int | None = None
    """Moves (in Tetris: pieces) after which a game is cut off."""
    seed: int = 0
    """Of the weights, the choices, and the games: those begin at 1,000,000 · (seed + 1)."""
    total_steps: int = 3_000_000
    """Steps of all games together; the last rollout may end a little beyond."""
    num_envs: int = 256
    """Games that are played side by side."""
    num_steps: int = 8
    """Steps of each game in a rollout."""
    batch_size: int = 1024
    """Steps in a gradient step; divides num_envs · num_steps."""
    epochs: int = 4
    """How often each rollout is gone through."""
    learning_rate: float = 0.002
    """At the beginning; it falls to 0 in a straight line."""
    gamma: float = 0.99
    """Discount."""
    gae_lambda: float = 0.7
    """How far advantages rely on rewards seen (1) rather than on the values that are learnt (0)."""
    clip: float = 0.2
    """How far the probability of a move may change, as a ratio, before its gradient ends."""
    entropy_weight: float = 0.0
    """Weight of the policy's entropy in the objective."""
    value_weight: float = 0.5
    """Weight of the squared error of values in the loss."""
    max_grad_norm: float = 0.5
    """Longer gradients are shortened to this."""
    channels: int = 128
    """Width of the network."""
    device: str = "cpu"
    """PyTorch's device for the network."""
    interval: int = 50
    """Rollouts from one checkpoint to the next; each prints a line."""
    games: int = 100
    """Games of the final evaluation, from seed 0."""
    out: str = "runs/ppo"
    """Folder of the checkpoint and of TensorBoard's logs."""
    resume: bool = False
    """Go on from the checkpoint in `out`, where there is one, with the same arguments."""
    evaluate: str | None = None
    """Only evaluate this checkpoint, by `games` on `device`; everything else is taken from it."""

    def __post_init__(self) -> None:
        size = self.num_envs * self.num_steps
        if size % self.batch_size:
            raise ValueError(f"num_envs · num_steps is {size}; expected a multiple of batch_size, {self.batch_size}")
        if not 2 <= self.games <= FIRST_SEED:
            raise ValueError(f"games is {self.games}; expected 2 to {FIRST_SEED}")


# The network. An observation is a row of numbers, uint8[n, k]: the cells of the board, then Tetris's pieces.


class Windows(nn.Module):
    """A layer on each window of a size: [n, r, c, planes] to [n, r - rows + 1, c - cols + 1, channels].

    This is a convolution as a matrix product, on a processor quicker than `nn.Conv2d` for boards as small as these.
    """

    def __init__(self, rows: int, cols: int, planes: int, channels: int) -> None:
        super().__init__()
        self.rows, self.cols = rows, cols
        self.layer = nn.Linear(rows * cols * planes, channels)

    def forward(self, planes: Tensor) -> Tensor:
        down, across = planes.shape[1] - self.rows + 1, planes.shape[2] - self.cols + 1
        seen = [planes[:, r : r + down, c : c + across] for r in range(self.rows) for c in range(self.cols)]
        return self.layer(torch.cat(seen, dim=3)).relu()


class Ranks(nn.Module):
    """2048: each cell's rank as a plane of its own, then two layers of 2×2 windows; a merge is seen by one window."""

    def __init__(self, space: Any, channels: int) -> None:
        super().__init__()
        self.rows, self.cols = space.shape
        self.ranks = int(space.high.max()) + 1
        far = min(2, self.rows - 1), min(2, self.cols - 1)
        self.windows = nn.Sequential(Windows(2, 2, self.ranks, channels), Windows(*far, channels, channels))
        self.width = (self.rows - far[0]) * (self.cols - far[1]) * channels

    def forward(self, numbers: Tensor) -> Tensor:
        return self.windows(one_hot(numbers, self.ranks).unflatten(1, (self.rows, self.cols))).flatten(1)


class Field(nn.Module):
    """Tetris: 3×3 windows, then each column from top to bottom, then a layer that knows the pieces too."""

    def __init__(self, space: Any, channels: int) -> None:
        super().__init__()
        self.rows, self.cols = space["board"].shape
        self.kinds, few, self.width = int(space["piece"].n), channels // 4, 2 * channels
        known = 1 + (space["next"].shape[0] if "next" in space.spaces else 0)
        self.windows = nn.Sequential(Windows(3, 3, 1, few), Windows(self.rows - 1, 1, few, few))
        self.last = nn.Linear(self.cols * few + known * self.kinds, self.width)

    def forward(self, numbers: Tensor) -> Tensor:
        board, pieces = numbers.split([self.rows * self.cols, numbers.shape[1] - self.rows * self.cols], dim=1)
        walled = nn.functional.pad(board.unflatten(1, (self.rows, self.cols)).float(), (1, 1, 0, 1), value=1.0)
        columns = self.windows(walled.unsqueeze(3)).flatten(1)
        return self.last(torch.cat([columns, one_hot(pieces, self.kinds).flatten(1)], dim=1)).relu()


def one_hot(numbers: Tensor, kinds: int) -> Tensor:
    """float[…, kinds]: one where the number is."""
    return (numbers.unsqueeze(-1) == torch.arange(kinds, device=numbers.device)).float()


class Agent(nn.Module):
    """A policy and a value on the same features."""

    def __init__(self, envs: Any, channels: int) -> None:
        super().__init__()
        space = envs.single_observation_space
        self.features = (Field if isinstance(space, gym.spaces.Dict) else Ranks)(space, channels)
        self.policy = nn.Linear(self.features.width, int(envs.single_action_space.n))
        self.value = nn.Linear(self.features.width, 1)
        for part, gain in ((self.features, 2**0.5), (self.policy, 0.01), (self.value, 1.0)):
            for layer in part.modules():
                if isinstance(layer, nn.Linear):
                    nn.init.orthogonal_(layer.weight, gain)
                    nn.init.zeros_(layer.bias)

    def forward(self, numbers: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
        """(log-probabilities float[n, actions], values float[n]); illegal actions have the probability 0."""
        features = self.features(numbers)
        logits = self.policy(features).masked_fill(~masks, -1e9)  # with −∞ the entropy would hold 0 · −∞
        return logits.log_softmax(dim=1), self.value(features).squeeze(1)

    def value_of(self, numbers: Tensor) -> Tensor:
        return self.value(self.features(numbers)).squeeze(1)


# The games.


def make_envs(config: Config, num_envs: int, autoreset_mode: str) -> Any:
    kwargs: dict[str, Any] = {"reward": "log2"} if "Game2048" in config.env_id else {}
    kwargs |= {"max_episode_steps": config.max_episode_steps} | config.env_kwargs
    if config.shaping is not None:
        kwargs["shaping"] = {"potential": config.shaping, "gamma": config.gamma}
    return gym.make_vec(config.env_id, num_envs, autoreset_mode=autoreset_mode, **kwargs)


def numbers_of(observations: Any, n: int) -> Tensor:
    """The observations of n games as the network takes them."""
    parts = [observations]
    if isinstance(observations, dict):
        parts = [observations[name] for name in ("board", "piece", "next") if name in observations]
    return torch.from_numpy(np.concatenate([np.asarray(part, np.uint8).reshape(n, -1) for part in parts], axis=1))


def shown(observations: Any, infos: dict[str, Any], device: str) -> tuple[Tensor, Tensor]:
    """What a batch of games shows: numbers uint8[n, k], and which actions are legal, bool[n, actions]."""
    masks = torch.from_numpy(infos["action_mask"]).bool()
    return numbers_of(observations, len(masks)).to(device), masks.to(device)


def figure_of(infos: dict[str, Any]) -> NDArray[np.int64]:
    """What games are judged by: lines in Tetris, else the score."""
    return infos["lines"] if "lines" in infos else infos["score"]


class RewardScale(nn.Module):
    """Divides rewards by the standard deviation that discounted returns have had so far, in all games together."""

    # Buffers, so that `state_dict` has them: each game's return from its beginning; and how many returns there were,
    # their sum and that of their squares. They begin as if there had been next to none, of variance 1.
    returns: Tensor
    sums: Tensor

    def __init__(self, num_envs: int, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma
        self.register_buffer("returns", torch.zeros(num_envs, dtype=torch.float64))
        self.register_buffer("sums", torch.tensor([1e-4, 0.0, 1e-4], dtype=torch.float64))

    def forward(self, rewards: Tensor, ended: Tensor) -> Tensor:
        """The rewards float64[n] of a step, scaled; `ended` bool[n] marks the games that it ended."""
        returns = self.gamma * self.returns + rewards
        self.sums += torch.stack([torch.ones_like(returns), returns, returns**2]).sum(dim=1)
        mean, mean_square = self.sums[1:] / self.sums[0]
        self.returns = returns * ~ended
        return (rewards / (mean_square - mean**2 + 1e-8).sqrt()).clamp(-10, 10)


# The algorithm.


def advantages_of(
    rewards: Tensor, values: Tensor, next_values: Tensor, ended: Tensor, gamma: float, gae_lambda: float
) -> Tensor:
    """Generalised advantages (Schulman et al. 2016), float[steps, n] as all is but `ended` bool[steps, n].

    `next_values` are of what the steps led to, before any reset: 0 where a game was over, but not where it was cut
    off. Nothing is carried back over the end of an episode, of either kind.

    >>> ones, ended = torch.ones(3, 1), torch.tensor([[False], [True], [False]])
    >>> advantages_of(ones, ones, 2 * ones, ended, gamma=0.5, gae_lambda=0.5).squeeze(1)
    tensor([1.2500, 1.0000, 1.0000])
    """
    errors = rewards + gamma * next_values - values
    advantages, later = torch.empty_like(errors), torch.zeros_like(errors[0])
    for t in reversed(range(len(errors))):
        later = errors[t] + gamma * gae_lambda * later * ~ended[t]
        advantages[t] = later
    return advantages


class Trainer:
    """The agent, the games it learns from, and all else that the next update depends on."""

    def __init__(self, config: Config) -> None:
        self.config, self.update = config, 0
        torch.manual_seed(config.seed)
        self.envs = make_envs(config, config.num_envs, "SameStep")
        observations, infos = self.envs.reset(seed=FIRST_SEED * (config.seed + 1))
        self.shown = shown(observations, infos, config.device)
        self.agent = Agent(self.envs, config.channels).to(config.device)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), eps=1e-5)
        self.scale = RewardScale(config.num_envs, config.gamma)
        self.recent: deque[int] = deque(maxlen=100)  # what the last games ended with

    @torch.no_grad()
    def rollout(self) -> list[Tensor]:
        """Play on: numbers, masks, actions, their log-probabilities, advantages, returns, each [num_steps, n, …]."""
        config, steps = self.config, []
        for _ in range(config.num_steps):
            before = self.shown
            log_probs, values = self.agent(*before)
            actions = log_probs.exp().cpu().multinomial(1)  # all that is drawn is drawn on the processor
            observations, rewards, terminated, truncated, infos = self.envs.step(actions.squeeze(1).numpy())
            self.shown = shown(observations, infos, config.device)
            ended, last_values = torch.from_numpy(terminated | truncated), torch.zeros_like(values)
            if ended.any():
                self.recent.extend(figure_of(infos["final_info"])[ended.numpy()].tolist())
            cut = truncated & ~terminated
            if cut.any():  # these games would have gone on, and what they were worth then counts
                finals = torch.cat([numbers_of(final, 1) for final in infos["final_obs"][cut]]).to(config.device)
                last_values[torch.from_numpy(cut)] = self.agent.value_of(finals)
            rewards = self.scale(torch.from_numpy(rewards), ended).float().to(config.device)
            ended, actions = ended.to(config.device), actions.to(config.device)
            steps.append((*before, actions, log_probs.gather(1, actions), values, rewards, ended, last_values))
        *known, values, rewards, ended, last_values = map(torch.stack, zip(*steps, strict=True))
        following = torch.cat([values[1:], self.agent.value_of(self.shown[0]).unsqueeze(0)])
        next_values = torch.where(ended, last_values, following)
        advantages = advantages_of(rewards, values, next_values, ended, config.gamma, config.gae_lambda)
        return [*known, advantages, advantages + values]

    def learn(self, rollout: list[Tensor], learning_rate: float) -> dict[str, float]:
        """Improve policy and values by a rollout; returns means of what is worth a curve."""
        config, curves = self.config, []
        self.optimizer.param_groups[0]["lr"] = learning_rate
        steps = [part.flatten(0, 1) for part in rollout]
        for _ in range(config.epochs):
            for which in torch.randperm(len(steps[0])).to(config.device).split(config.batch_size):
                numbers, masks, actions, old_log_probs, advantages, returns = (part[which] for part in steps)
                log_probs, values = self.agent(numbers, masks)
                ratio = (log_probs.gather(1, actions) - old_log_probs).exp().squeeze(1)
                clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
                advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
                gain = torch.min(ratio * advantages, clipped * advantages).mean()
                entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
                value_loss = (values - returns).square().mean()
                self.optimizer.zero_grad()
                (config.value_weight * value_loss - gain - config.entropy_weight * entropy).backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), config.max_grad_norm)
                self.optimizer.step()
                curves.append(torch.stack([value_loss, entropy, (ratio != clipped).float().mean()]).detach())
        means = torch.stack(curves).mean(dim=0).tolist()
        return dict(zip(("value_loss", "entropy", "clipped"), means, strict=True)) | {"learning_rate": learning_rate}

    def save(self, path: Path) -> None:
        """Write a checkpoint, whole or not at all: tensors and plain numbers alone."""
        state = {name: getattr(self, name).state_dict() for name in ("agent", "optimizer", "scale")}
        state |= {"config": asdict(self.config), "update": self.update, "recent": list(self.recent)}
        state |= {"games": torch.from_numpy(self.envs.clone_state().view(np.int64)), "shown": self.shown}
        torch.save(state | {"random": torch.get_rng_state()}, path.with_suffix(".part"))
        os.replace(path.with_suffix(".part"), path)

    def restore(self, path: Path) -> None:
        """Go on from a checkpoint; a ValueError if that is of a run with other arguments."""
        state, ours = torch.load(path, map_location="cpu", weights_only=True), asdict(self.config)
        theirs = state["config"] | {"out": self.config.out, "resume": True}
        changed = [name for name in ours if theirs.get(name) != ours[name]]
        if changed:
            told = [f"{name} is {theirs.get(name)!r} there, {ours[name]!r} here" for name in changed]
            raise ValueError(f"{path} is of another run: {'; '.join(told)}")
        for name in ("agent", "optimizer", "scale"):
            getattr(self, name).load_state_dict(state[name])
        self.update = state["update"]
        self.recent.extend(state["recent"])
        self.envs.restore_state(state["games"].numpy().view(np.uint64))
        numbers, masks = state["shown"]
        self.shown = numbers.to(self.config.device), masks.to(self.config.device)
        torch.set_rng_state(state["random"])


def train(config: Config) -> Agent:
    """Train, or go on training, to the last update."""
    path = Path(config.out) / "checkpoint.pt"
    if path.exists() and not config.resume:
        raise ValueError(f"{path} exists; go on from it (--resume), or choose another folder (--out)")
    run = Trainer(config)
    if path.exists():
        run.restore(path)
    size, first, begun = config.num_envs * config.num_steps, run.update, perf_counter()
    updates = -(-config.total_steps // size)
    with SummaryWriter(config.out, purge_step=first * size + 1) as writer:
        while run.update < updates:
            curves = run.learn(run.rollout(), config.learning_rate * (1 - run.update / updates))
            run.update += 1
            step, mean = run.update * size, float(np.mean(run.recent or [np.nan]))
            speed = (run.update - first) * size / (perf_counter() - begun)
            for name, value in (curves | {"mean_of_last_games": mean, "steps_per_second": speed}).items():
                writer.add_scalar(name, value, step)
            if run.update % config.interval == 0 or run.update == updates:
                run.save(path)
                print(f"{step:,} steps: mean of the last games {mean:,.1f}, {speed:,.0f} steps/s", flush=True)
    return run.agent


@torch.no_grad()
def evaluate(agent: Agent, config: Config) -> NDArray[np.int64]:
    """What games from seeds 0, 1, … end with if the likeliest move is always played."""
    envs = make_envs(config, config.games, "NextStep")
    observations, infos = envs.reset(seed=0)
    playing, figures = np.ones(config.games, np.bool_), np.zeros(config.games, np.int64)
    while playing.any():  # games that are over begin anew, but are not looked at
        log_probs, _ = agent(*shown(observations, infos, config.device))
        observations, _, terminated, truncated, infos = envs.step(log_probs.argmax(dim=1).cpu().numpy())
        figures[playing] = figure_of(infos)[playing]
        playing &= ~(terminated | truncated)
    return figures


def main(config: Config) -> None:
    if config.evaluate is None:
        agent = train(config)
    else:
        state = torch.load(config.evaluate, map_location="cpu", weights_only=True)
        if state["config"]["env_id"] != config.env_id:
            id_of_file(state["config"]["env_id"])
        config = Config(**(state["config"] | {"games": config.games, "device": config.device}))
        agent = Agent(make_envs(config, 1, "NextStep"), config.channels).to(config.device)
        agent.load_state_dict(state["agent"])
    figures = evaluate(agent, config)
    margin = 1.96 * figures.std(ddof=1) / len(figures) ** 0.5
    print(f"mean of {len(figures)} games from seed 0: {figures.mean():,.1f} ± {margin:,.1f} (95 %)")


if __name__ == "__main__":
    try:
        main(tyro.cli(Config, description=__doc__))
    except KeyboardInterrupt:
        sys.exit("Stopped. The same command with --resume goes on from the last checkpoint.")
