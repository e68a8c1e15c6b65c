"""Whole games: played, recorded, replayed, watched, and what they show."""
