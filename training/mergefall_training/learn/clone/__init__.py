"""Cloning: a network that imitates a player's games."""
