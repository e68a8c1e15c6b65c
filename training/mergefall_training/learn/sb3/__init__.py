"""PPO, DQN, MaskablePPO and QR-DQN by Stable-Baselines3."""
