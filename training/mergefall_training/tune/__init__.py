"""Searches for better heuristic weights and better hyper-parameters."""
