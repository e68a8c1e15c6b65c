"""Evaluation, comparison and training of 2048 and Tetris players."""
