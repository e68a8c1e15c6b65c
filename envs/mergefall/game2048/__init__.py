"""2048: rules, environments, heuristics."""
