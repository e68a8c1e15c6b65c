"""A neural value of afterstates, learnt by TD(λ)."""
