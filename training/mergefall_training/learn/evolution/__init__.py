"""Cross-entropy and CMA-ES for the weights of Tetris controllers."""
