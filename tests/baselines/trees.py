"""What a compiled tree search left in memory."""


def searched_tree(player, observation, *state):
    """(nodes, edges, states) of the compiled search from one observation, the unused part left out."""
    player.predict(observation, *state)
    (tree,) = [made for key, made in player._made.items() if key[0] == "tree"]
    count = tree.tree["count"][0]
    return tree.nodes[:count], tree.edges[:count], tree.states[:count]
