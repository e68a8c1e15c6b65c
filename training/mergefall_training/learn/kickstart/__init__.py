"""Kickstarting: PPO with a teacher whose advice fades."""
