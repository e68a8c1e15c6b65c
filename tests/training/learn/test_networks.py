"""Policies over afterstates: what they make of legal and illegal actions, and what they refuse."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from mergefall.games import ENVIRONMENTS
from mergefall.tetris.game import COLUMN, QUEUE, ROTATION, ROW
from mergefall.tetris.heuristics import Dt10
from mergefall.tetris.keys import game, routes
from mergefall.tetris.keys.rules import Rules
from mergefall.tetris.pieces import WIDTHS
from mergefall.tetris.srs import SHAPES
from mergefall_baselines.player import steps
from mergefall_training.learn.sb3.lines import DIFFERENCES, canonical, neighbours, table_of
from mergefall_training.learn.sb3.networks import (
    EXTRACTORS,
    FAR,
    POLICIES,
    AfterstatesPolicy,
    RanksAfterstates,
    key_distances,
    network_of,
    parameters_of,
    policy_class,
)
from mergefall_training.learn.sb3.vec_env import make_vec_env
from mergefall_training.play.preferences import preferences_of
from sb3_contrib import MaskablePPO
from stable_baselines3.common.torch_layers import CombinedExtractor

GAMES = {"2048": ("mergefall/Game2048-v0", "ranks-afterstates"), "tetris": ("mergefall/Tetris-v0", "board-afterstates")}
BY_DEFAULT = GAMES | {"keys": ("mergefall/TetrisKeys-v0", "keys-afterstates")}


def policy_of(algorithm, game, **changed):
    env_id, extractor = BY_DEFAULT[game]
    env = gym.make(env_id, **({"cols": 6, "rows": 8} if game == "tetris" else {}))
    options = {"features_extractor_class": EXTRACTORS[extractor], "net_arch": []} | changed
    torch.manual_seed(0)
    kind = POLICIES[algorithm]["AfterstatesPolicy"]
    policy = kind(env.observation_space, env.action_space, lambda _: 1e-3, **options)
    return policy, env


@pytest.mark.parametrize("algorithm", POLICIES)
@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_a_network_of_the_observation_sees_numbers_from_0_to_1(env_id, algorithm):
    env, seen = gym.make(env_id), []
    kind, kwargs = policy_class(algorithm, network_of({"policy": "MlpPolicy"}), {})
    policy = kind(env.observation_space, env.action_space, lambda _: 1e-3, **kwargs)
    for layer in policy.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    for _ in range(20):
        seen.clear()
        policy.predict(env.observation_space.sample())
        assert seen[0].min() >= 0
        assert 0 < seen[0].max() <= 1


def test_residual_blocks_add_to_what_they_get():
    space, sizes = gym.spaces.Box(0, 17, (4, 4), np.uint8), {"channels": 3, "hidden": 8, "features_dim": 4}
    torch.manual_seed(0)
    plain, deep = RanksAfterstates(space, **sizes), RanksAfterstates(space, **sizes, blocks=2)
    deep.load_state_dict(plain.state_dict(), strict=False)
    boards = torch.tensor(np.random.default_rng(0).integers(0, 12, (20, 4, 4)))
    assert not torch.allclose(deep(boards), plain(boards))
    for block in deep.blocks:
        for parameter in block[-1].parameters():
            torch.nn.init.zeros_(parameter)
    torch.testing.assert_close(deep(boards), plain(boards))


@pytest.mark.parametrize("game", GAMES)
def test_an_illegal_action_is_worth_one_less_than_the_worst_legal_one(game):
    policy, env = policy_of("dqn", game)
    seen = []
    for step in steps(env, 3, lambda step: np.flatnonzero(step.info["action_mask"])[0] if len(seen) < 12 else None):
        legal = step.info["action_mask"].astype(bool)
        (values,) = preferences_of(policy, step.observation)
        assert len(set(values[legal])) > 1
        assert values[~legal] == pytest.approx(values[legal].min() - 1)
        seen.append((~legal).sum())
    assert sum(seen) > 0


def test_a_board_without_a_legal_move_has_finite_values():
    policy, _ = policy_of("dqn", "2048")
    lost = np.array([[1, 2, 1, 2], [2, 1, 2, 1]] * 2, dtype=np.uint8)
    assert preferences_of(policy, lost) == pytest.approx(-1)


def test_illegal_placements_are_all_alike_to_a_policy():
    policy, env = policy_of("maskable-ppo", "tetris")
    observation, info = env.reset(seed=3)
    legal = info["action_mask"].astype(bool)
    (values,) = preferences_of(policy, observation)
    assert np.ptp(values[~legal]) < 1e-6 < 1e-4 < np.ptp(values[legal])


@pytest.mark.parametrize("algorithm", POLICIES)
@pytest.mark.parametrize(
    ("image", "actions"), [(np.fliplr, [0, 3, 2, 1]), (np.flipud, [2, 1, 0, 3]), (np.transpose, [3, 2, 1, 0])]
)
def test_a_policy_prefers_the_same_moves_on_symmetric_boards(algorithm, image, actions):
    policy, env = policy_of(algorithm, "2048")
    for step in steps(env, 3, lambda step: np.flatnonzero(step.info["action_mask"])[-1]):
        boards = step.observation, np.ascontiguousarray(image(step.observation))
        one, other = (preferences_of(policy, board) for board in boards)
        assert one == pytest.approx(other[:, actions], abs=1e-5)


@pytest.mark.parametrize("algorithm", POLICIES)
@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"net_arch": [8]}, r"net_arch is \[8\]"),
        ({"features_extractor_class": CombinedExtractor}, "CombinedExtractor; .* takes ranks-afterstates, board-after"),
    ],
)
def test_what_does_not_fit_is_refused(algorithm, changed, complaint):
    with pytest.raises(ValueError, match=complaint):
        policy_of(algorithm, "tetris", **changed)


def test_dqn_over_afterstates_refuses_keys():
    with pytest.raises(ValueError, match="dqn with AfterstatesPolicy plays games by placements alone"):
        policy_of("dqn", "keys")


@pytest.mark.parametrize("game", BY_DEFAULT)
def test_the_policy_over_afterstates_has_the_extractor_of_its_game_by_default(game):
    env_id, extractor = BY_DEFAULT[game]
    model = MaskablePPO(
        AfterstatesPolicy, make_vec_env(env_id, 4, seed=0), n_steps=8, batch_size=16, n_epochs=1, seed=0
    )
    assert type(model.policy.features_extractor) is EXTRACTORS[extractor]
    before = parameters_of(model.policy)
    model.learn(32)
    assert all((array != before[name]).any() for name, array in parameters_of(model.policy).items())


def test_distances_count_the_keys_of_the_shortest_routes():
    """By breadth-first searches of the engine over the empty board (`routes.py`)."""
    cols, work = 5, routes.new_work()
    found, rules = key_distances(cols, 8), Rules(cols=cols, preview=0, hold=False, gravity=0)
    state, reached = rules.new_states(1)[0], 0
    for piece, rotation, column, key in np.ndindex(found.shape[:4]):
        shape = SHAPES[piece, rotation]
        if column + WIDTHS[piece, shape] > cols:
            continue
        state[QUEUE] = piece
        state[[ROTATION, COLUMN, ROW]] = rotation, column, 10
        drops = key == game.HARD_DROP
        game.press(state, key)
        routes.explore(state, routes.ANY, False, work)
        for placement in range(4 * cols):
            goal, route = routes.goal_of(*divmod(placement, cols), 0), np.zeros(4, np.uint64)
            end = work.ends[goal]
            count = found[piece, rotation, column, key, placement]
            if end >> 16 != work.searches[0] or (drops and placement != shape * cols + column):
                assert count >= FAR
            else:
                assert count == (1 if drops else 1 + routes.write_route(end & 0xFFFF, -1, work, route))
                reached += 1
    assert reached > 6000


@pytest.mark.parametrize(("piece", "keys"), [("I", 6), ("T", 7), ("O", 5)])
def test_the_most_probable_keys_bring_the_piece_to_the_best_placement(piece, keys):
    """If nothing counts but the height of the last column, that is a piece upright beside the wall."""
    env = gym.make("mergefall/TetrisKeys-v0", hold=False)
    policy = AfterstatesPolicy(env.observation_space, env.action_space, lambda _: 1e-3)
    extractor, height = policy.features_extractor, len(Dt10.of_board.names) + 9
    with torch.no_grad():
        for parameter in (*extractor.layers.parameters(), extractor.worth):
            parameter.zero_()
        extractor.layers[0].weight[0, height] = extractor.layers[2].weight[0, 0] = extractor.worth[0] = 5.0
    (observation, info), pressed = env.reset(seed=0, options={"piece": piece}), 0
    while not info["pieces"]:
        log_probs = np.where(info["action_mask"], preferences_of(policy, observation)[0], -np.inf)
        observation, *_, info = env.step(int(log_probs.argmax()))
        pressed += 1
    assert (pressed, observation["board"][:, -1].sum()) == (keys, {"I": 4, "T": 3, "O": 2}[piece])


# -- the first layer of 2048's -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "cols", "threads"), [(4, 4, 1), (4, 4, 3), (2, 3, 2), (5, 6, 2)])
def test_layers_by_kernels_are_those_of_matrix_products_and_so_are_their_gradients(rows, cols, threads):
    extractor = RanksAfterstates(gym.spaces.Box(0, 17, (rows, cols), np.uint8), 9, 12, 5)
    extractor.threads, n = threads, 400
    rng, parameters = np.random.default_rng(rows * cols), list(extractor.parameters())
    boards = rng.integers(0, extractor.ranks, (n, rows, cols)).astype(np.uint8)
    boards[rng.random(boards.shape) < 0.3] = 0
    found = extractor._features(boards, torch.device("cpu"))
    across, down = (table_of(layer, 9) for layer in (extractor.across, extractor.down))
    ranks = torch.from_numpy(canonical(boards)).int()
    lines = [extractor._products(ranks, across), extractor._products(ranks.transpose(1, 2), down)]
    lines = torch.cat(lines, dim=1).flatten(1).relu()
    expected = extractor.last(extractor.middle(lines).relu()).relu()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    above = torch.randn(found.shape)
    ours, theirs = (torch.autograd.grad(features, parameters, above) for features in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_kinds_of_neighbours():
    kinds = neighbours(18)
    assert kinds.shape == (18, 18)
    assert set(kinds.ravel()) == set(range(DIFFERENCES))
    equal = {int(kinds[rank, rank]) for rank in range(1, 18)}
    assert len(equal) == 1  # whatever their rank, two equal tiles look the same
    assert equal.isdisjoint(kinds[~np.eye(18, dtype=bool)])


def test_ranks_that_no_game_has_count_as_the_highest():
    extractor = RanksAfterstates(gym.spaces.Box(0, 7, (2, 3), np.uint8), 5, 4, 3)
    boards = torch.tensor([[7, 1, 2], [3, 4, 5]]).repeat(3, 1, 1)
    boards[1:, 0, 0] = torch.tensor([9, 61])
    highest, *others = extractor(boards)
    torch.testing.assert_close(others, [highest] * 2)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3), (3, 2), (1, 4), (3, 3)])
def test_symmetric_boards_have_one_canonical_image(shape):
    boards = np.random.default_rng(0).integers(0, 4, (200, *shape)).astype(np.uint8)
    for board, found in zip(boards, canonical(boards), strict=True):
        turned = [np.rot90(board, k) for k in range(4)]
        images = [image for one in turned for image in (one, np.fliplr(one)) if image.shape == shape]
        assert found.tolist() == max(image.tolist() for image in images)
        assert (canonical(np.array(images)) == found).all()
