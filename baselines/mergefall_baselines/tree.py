"""Monte-Carlo trees with chance nodes: selection, expansion and backup, compiled, written once for both games.

A tree has two kinds of nodes:

- A *decision node* is a position with the player to move: a `NODE`, and a game state as a row of words.
- A *chance node* is what an action leads to before chance acts: an `EDGE` of its decision node. Its children are the
  outcomes that were drawn so far, a linked list of decision nodes.

A *simulation* goes down from the root to a leaf, adds it to the tree, and backs up its value:

- At the root the action is chosen by prior and value (`best_edge`) and sequential halving.
- Below the root the action is chosen by PUCT.
- At a chance node the outcome is drawn with its probability.
- The leaf's actions get values, from which follow its own value and the priors of its actions.
- The value, plus the rewards on the way, counts as one visit of every edge on the way.

The draws of one chance node follow Roberts's R2 sequence from a random start: each draw has the right distribution, and
n draws cover the outcomes far more evenly than independent ones.

Sources:

- PUCT, and values scaled by the extremes of those met: Schrittwieser et al. (2020), "Mastering Atari, Go, chess and
  shogi by planning with a learned model" (MuZero).
- Scores at the root, here without noise, and sequential halving: Danihelka et al. (ICLR 2022), "Policy improvement by
  planning with Gumbel".
- Chance nodes between afterstates and positions: Antonoglou et al. (ICLR 2022), "Planning in stochastic environments
  with a learned model" (Stochastic MuZero).
- R2: M. Roberts (2018), "The unreasonable effectiveness of quasirandom sequences".
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from mergefall.interrupt import stopped
from mergefall.kernels import kernel, unowned
from mergefall.typing import Array, Floats, Ints, Kernel, Words
from mergefall.words import next_bits

U = np.uint64
LEAST_PRIOR = 1e-300  # has a logarithm
DEEPEST = 60  # own moves below the root: positions there stay leaves (`game2048.player.MARGIN` allows 64)
EXPLORATION = 0.5  # the constant of PUCT
SEED = np.random.SeedSequence(0).generate_state(1, np.uint64)[0]  # of the draws, which differ between positions
CONSIDERED = 16  # actions that sequential halving begins with
VISIT_SCALE = 50.0  # c_visit: the weight of values at the root grows with this plus the visits of the most visited one
R2_UPPER, R2_LOWER = U(3242174889), U(2447445414)  # 2³² / g and 2³² / g², where g³ = g + 1
HALF_MASK = U(0xFFFFFFFF)

NODE = np.dtype(
    [
        ("parent", np.int32),  # a node's index
        ("action", np.int32),  # of the parent, that led here
        ("outcome", np.int64),  # of that chance node
        ("sibling", np.int32),  # the next outcome of the same chance node, 0 for none
        ("depth", np.int32),  # own moves since the root
        ("seen", np.int32),  # whether the position has been valued
        ("over", np.int32),  # whether the game is over, or no action is any good
        ("reward", np.float64),  # of the action that led here
        ("value", np.float64),  # what the leaf said of the position
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("prior", np.float64),
        ("first", np.float64),  # the action's value before any visit, which counts as one; -inf if it is not searched
        ("total", np.float64),  # sum of the values backed up
        ("visits", np.int32),
        ("child", np.int32),  # the first outcome, 0 for none
    ],
    align=True,
)
TREE = np.dtype(
    [
        ("count", np.int64),  # nodes
        ("stream", np.uint64),
        ("low", np.float64),  # the least and the greatest value met: of the root, and of the actions visited
        ("high", np.float64),
        ("nonsense", np.bool_),  # whether a leaf had an action worth NaN or +inf
    ],
    align=True,
)


class Trees(NamedTuple):
    """The arrays of T trees of up to N nodes with A actions; without the first axis, those of one tree."""

    tree: Array  # TREE[T, 1]
    nodes: Array  # NODE[T, N]
    edges: Array  # EDGE[T, N, A]
    states: Words  # [T, N + 1, words], the last row used is scratch
    values: Floats  # [T, A], scratch


class Plan(NamedTuple):
    """The numbers of a search."""

    simulations: int
    schedule: Ints  # [CONSIDERED + 1, simulations], see `halving`
    value_scale: float
    temperature: float  # of priors; negative: in units of the range of a position's values
    lost: float  # value of a lost position; NaN: as far below the lowest value met as that is below the highest
    gamma: float  # discount of each further move


def new_trees(count: int, simulations: int, actions: int, words: int) -> Trees:
    """Arrays for `count` trees; roots keep the zeros of their nodes, and a board may fill its last word in part."""
    nodes = simulations + 1
    return Trees(
        np.empty((count, 1), TREE),
        np.zeros((count, nodes), NODE),
        np.empty((count, nodes, actions), EDGE),
        np.zeros((count, nodes + 1, words), U),
        np.empty((count, actions)),
    )


def halving(considered: int, simulations: int) -> Ints:
    """Sequential halving of `considered` actions: the visits that the action of each simulation has had, int64[n].

    About log2(considered) phases have equal shares of the simulations. In a phase all remaining actions are visited
    equally often, and the better half remains.

    >>> halving(4, 12).tolist()
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """
    considered = max(considered, 1)
    phases, visits, schedule = max(1, math.ceil(math.log2(considered))), 0, []
    while len(schedule) < simulations:
        for _ in range(max(1, simulations // (phases * considered))):
            schedule += [visits] * considered
            visits += 1
        considered = max(2, considered // 2)
    return np.array(schedule[:simulations], dtype=np.int64)


# -- one tree ----------------------------------------------------------------------------------------------------------


@kernel
def tree_at(trees, t):
    tree, nodes, edges, states, values = trees
    return Trees(tree[t], nodes[t], edges[t], states[t], values[t])


@kernel
def lost_value(tree, plan):
    low, high = tree.tree[0].low, tree.tree[0].high
    if not np.isnan(plan.lost):
        return plan.lost
    return low - (high - low) if high >= low else 0.0


@kernel
def edge_value(edge):
    """The mean value of an action, its value before any visit included."""
    return (edge.first + edge.total) / (1 + edge.visits)


@kernel
def best_edge(tree, node, visits, plan):
    """The action of the highest score, -1 if there is none.

    - At the root, among those with so many visits, or with the most if `visits` is -1, the score is log prior + (50 +
      most visits) · value_scale · value.
    - Below, it is value + EXPLORATION · prior · √(all visits) / (1 + its visits).

    Values are in units of the range of those met: 0 is the lowest, 1 the highest.
    """
    edges, most, total, low, high = tree.edges[node], -1, 0, tree.tree[0].low, tree.tree[0].high
    for edge in edges:
        if edge.first > -np.inf:
            most = max(most, edge.visits)
            total += edge.visits
    visits = most if visits < 0 else visits
    of_value, of_prior = (VISIT_SCALE + most) * plan.value_scale, EXPLORATION * math.sqrt(max(total, 1))
    best, highest = -1, -np.inf
    for a in range(edges.size):
        edge = edges[a]
        if edge.first > -np.inf and (node > 0 or edge.visits == visits):
            value = (edge_value(edge) - low) / (high - low) if high > low else 0.0
            if node == 0:
                score = math.log(max(edge.prior, LEAST_PRIOR)) + of_value * value
            else:
                score = value + of_prior * edge.prior / (1 + edge.visits)
            if score > highest:
                best, highest = a, score
    return best


@kernel
def expand(tree, index, values, value, plan):
    """Add the actions of a leaf to the tree.

    - `values`: float64[A] of its actions, -inf where illegal or fatal.
    - `value`: of the position; NaN: that of its best action.

    If `value` is not that of the best action, `values` are preferences of a policy: they make priors only, and each
    action is worth as much as the position. Priors are softmax(values / temperature), uniform if all values are equal.
    """
    node, edges, about = tree.nodes[index], tree.edges[index], tree.tree[0]
    low, best, total = np.inf, -np.inf, 0.0
    for a in range(edges.size):
        best = max(best, values[a])
        low = min(low, values[a]) if values[a] > -np.inf else low
        about.nonsense |= not values[a] < np.inf
    node.seen = 1
    node.over = best == -np.inf
    node.value = best if np.isnan(value) else value
    temperature = plan.temperature if plan.temperature >= 0.0 else -plan.temperature * (best - low)
    for a in range(edges.size):
        edges[a].first = values[a] if node.value == best or values[a] == -np.inf else node.value
        edges[a].prior = edges[a].total = 0.0
        edges[a].visits = edges[a].child = 0
        if not node.over:
            legal = 1.0 if values[a] > -np.inf else 0.0
            edges[a].prior = math.exp((values[a] - best) / temperature) if temperature > 0.0 else legal
            total += edges[a].prior
    if not node.over:
        for a in range(edges.size):
            edges[a].prior /= total
        if index == 0:
            about.low = about.high = node.value


@kernel
def backup(tree, leaf, plan):
    """Count the value of a leaf as a visit of all edges above it."""
    node, about, over = leaf, tree.tree[0], tree.nodes[leaf].over
    value = lost_value(tree, plan) if over else tree.nodes[leaf].value
    while node > 0:
        at = tree.nodes[node]
        value = at.reward + plan.gamma * value
        if not over:  # a lost position may be worth far less than all others
            about.low, about.high = min(about.low, value), max(about.high, value)
        edge = tree.edges[at.parent, at.action]
        edge.total += value
        edge.visits += 1
        node = at.parent


# -- a game's searches -------------------------------------------------------------------------------------------------


@kernel
def update(trees, leaves, values, value, plan):
    """Back up the leaves int64[T] of all trees; one without values gets those of float64[T, A] and float64[T]."""
    trees, leaves, values, value, plan = unowned((trees, leaves, values, value, plan))
    for t in range(len(leaves)):
        tree = tree_at(trees, t)
        if leaves[t] >= 0 and not tree.nodes[leaves[t]].seen:
            expand(tree, leaves[t], values[t], value[t], plan)
        if leaves[t] > 0:
            backup(tree, leaves[t], plan)


@cache
def tree_kernels(
    write_root: Kernel, advance: Kernel, choice_of: Kernel, decide: Any, shown: int
) -> tuple[Kernel, Kernel, Kernel]:
    """(decide_by_tree, select, conclude) of a game; `game` are settings that the game's player makes.

    Args:
        write_root: (state, memory, root, game). Writes the root that a search from a state of the game begins with.
        advance: (state, action, bits, after, game) -> (outcome, reward, over). Writes the state that follows a legal
            action and the outcome that 64 random bits decide on. Equal outcomes of a chance node have equal numbers.
        choice_of: (state, action, game) -> the choice that stands for an action, below 0 if it is illegal.
        decide: the decision kernel at the leaves, with ``game.memory`` and settings ``game.leaf``; None: values come
            from Python.
        shown: the first word of a state that the draws may depend on.

    The kernels returned:

    - `decide_by_tree`: the decision kernel of a search with `decide`; its settings are (tree, plan, game).
    - `select`: (trees, simulation, leaves, plan, game). Writes the next leaf of each tree, int64[T]; -1 where a root
      has no action. Simulation -1 begins the trees: their leaves are the roots.
    - `conclude`: (tree, plan, game, values) -> the chosen action. Writes the values of the root's actions.
    """
    descend = _descend(advance, shown)

    @kernel
    def conclude(tree, plan, game, values):
        """Choose the root's action; write the values of all actions, of which the chosen one's is the highest."""
        chosen, first, lost = best_edge(tree, 0, -1, plan), -1, lost_value(tree, plan)
        for a in range(values.size):
            values[a] = -np.inf
            if tree.edges[0, a].first > -np.inf:
                values[a] = edge_value(tree.edges[0, a])
                lost = min(lost, values[a])  # a fatal action is never worth more than another
        if tree.tree[0].nonsense:
            values[:] = np.nan  # an error follows
            return 0
        for a in range(values.size):
            if values[a] == -np.inf and choice_of(tree.states[0], a, game) >= 0:
                values[a] = lost
            if first < 0 and values[a] > -np.inf:
                first = a
        if chosen < 0:
            return max(first, 0)
        most = np.nextafter(values[chosen], -np.inf)
        for a in range(values.size):
            if a != chosen:
                values[a] = min(values[a], most)
        return chosen

    @kernel
    def decide_by_tree(state, memory, values, settings):
        tree, plan, game = unowned(settings)
        write_root(state, memory, tree.states[0], game)
        for simulation in range(-1, plan.simulations):
            leaf = descend(tree, simulation, plan, game)
            if leaf < 0 or stopped():
                break
            if not tree.nodes[leaf].seen:
                decide(tree.states[leaf], game.memory, tree.values, game.leaf)
                expand(tree, leaf, tree.values, np.nan, plan)
            backup(tree, leaf, plan)
        return max(choice_of(tree.states[0], conclude(tree, plan, game, values), game), 0)  # below 0 is no choice

    @kernel
    def select(trees, simulation, leaves, plan, game):
        trees, leaves, plan, game = unowned((trees, leaves, plan, game))
        for t in range(len(leaves)):
            leaves[t] = descend(tree_at(trees, t), simulation, plan, game)

    return decide_by_tree, select, conclude


def _descend(advance: Kernel, shown: int) -> Kernel:
    @kernel
    def descend(tree, simulation, plan, game):
        """Walk from the root to a leaf, -1 if the root has no action; in simulation -1 the root is the leaf.

        The node after an action and a drawn outcome is added to the tree if it is new.
        """
        about, root, index, count = tree.tree[0], tree.nodes[0], 0, 0
        if simulation < 0:
            root.seen = root.over = 0
            about.stream, about.count = SEED, 1
            for word in tree.states[0, shown:]:
                about.stream = next_bits(about.stream ^ word)[1]
            about.low, about.high, about.nonsense = np.inf, -np.inf, False
            return 0
        if root.over:
            return -1
        for edge in tree.edges[0]:
            count += edge.first > -np.inf
        visits = plan.schedule[min(count, CONSIDERED), simulation]
        while tree.nodes[index].seen and not tree.nodes[index].over and tree.nodes[index].depth < DEEPEST:
            action = best_edge(tree, index, visits, plan)
            edge, child = tree.edges[index, action], about.count  # its state is written where a new node would have it
            # The next draw of the chance node by the R2 sequence: one dimension in each half.
            place, visit = U(index) * U(tree.edges.shape[1]) + U(action) + U(1), U(edge.visits)
            random = next_bits(about.stream ^ place * U(0x9E3779B97F4A7C15))[1]
            upper = (random >> U(32)) + visit * R2_UPPER & HALF_MASK
            bits = upper << U(32) | (random + visit * R2_LOWER & HALF_MASK)
            outcome, reward, over = advance(tree.states[index], action, bits, tree.states[child], game)
            known = edge.child
            while known > 0 and tree.nodes[known].outcome != outcome:
                known = tree.nodes[known].sibling
            if known == 0:
                about.count += 1
                node = tree.nodes[child]
                node.parent, node.action, node.outcome, node.sibling = index, action, outcome, edge.child
                node.depth = tree.nodes[index].depth + 1
                node.seen = node.over = over  # nothing is left to value
                node.reward, node.value = reward, 0.0
                edge.child = child
            index = known if known else child
        return index

    return descend
