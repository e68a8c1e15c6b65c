"""Search players for Tetris."""
