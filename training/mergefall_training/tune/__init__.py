"""Better weights and better hyper-parameters, found by search."""
