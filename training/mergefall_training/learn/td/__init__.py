"""TD(λ) on afterstates of Tetris."""
