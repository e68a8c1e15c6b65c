"""n-tuple networks for 2048, learnt by temporal differences."""
