"""Behaviour cloning, and the datasets for it."""
