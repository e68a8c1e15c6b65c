"""Model files: what is written is read; what is damaged or of others is refused before anything is made of it."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from mergefall_baselines.arrays import write_arrays
from mergefall_baselines.registry import environment_of
from mergefall_training.learn.agents import SHIPPED
from mergefall_training.learn.models import FORMAT, flatten, load_model, save_model, unflatten
from mergefall_training.play.evaluation import evaluate

SPEC = {
    "algorithm": "maskable-ppo",
    "env_id": "mergefall/Game2048-v0",
    "env_kwargs": {"rows": 2},
    "network": {"layers": [3]},
}
ARRAYS = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "count": np.array(7), "none": np.empty((0, 2))}


@pytest.fixture
def path(tmp_path):
    save_model(tmp_path / "model.npz", SPEC, ARRAYS)
    return tmp_path / "model.npz"


class Trap:
    """What executes code where it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a file was unpickled",)


def test_what_is_written_is_read(path):
    model = load_model(path)
    assert model.spec == SPEC
    assert model.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(model.arrays[name], array, strict=True)


def test_a_checksum_tells_models_apart(path, tmp_path):
    checksums = [load_model(path).checksum]
    for spec, arrays in ((SPEC, ARRAYS), (SPEC, ARRAYS | {"count": np.array(8)}), (SPEC | {"step": 1}, ARRAYS)):
        save_model(tmp_path / "other.npz", spec, arrays)
        checksums.append(load_model(tmp_path / "other.npz").checksum)
    assert checksums[0] == checksums[1]
    assert len(set(checksums)) == 3


def test_a_changed_byte_is_refused_or_changes_nothing(path):
    content, model = path.read_bytes(), load_model(path)
    for place in range(0, len(content), 13):
        changed = bytearray(content)
        changed[place] ^= 0x41
        path.write_bytes(changed)
        try:
            found = load_model(path)
        except ValueError:
            continue
        assert found.checksum == model.checksum  # a byte that says nothing, of the archive's times and the like
        assert all((found.arrays[name] == array).all() for name, array in ARRAYS.items())


def npz(**arrays):
    np.savez(file := io.BytesIO(), **arrays)
    return file.getvalue()


def archive(content):
    with zipfile.ZipFile(file := io.BytesIO(), "w") as opened:
        opened.writestr("description", b"{}")
        opened.writestr("data", content)
    return file.getvalue()


FOREIGN = {
    "npz": npz(weight=np.zeros(3)),
    "objects": npz(description=np.frombuffer(b"{}", np.uint8), trap=np.array([Trap()], dtype=object)),
    "archive": archive(pickle.dumps(Trap())),
    "pickle": pickle.dumps(Trap()),
    "text": b'{"format": "mergefall model"}',
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_files_of_others_are_refused_and_nothing_in_them_is_executed(tmp_path, kind):
    path = tmp_path / "model.npz"
    path.write_bytes(FOREIGN[kind])
    with pytest.raises(ValueError, match="no mergefall model"):
        load_model(path)


def test_other_formats_versions_and_specs_are_refused(tmp_path):
    path = tmp_path / "model.npz"
    for kind, version, spec, message in (
        ("mergefall checkpoint", 1, SPEC, "no mergefall model"),
        (FORMAT, 2, SPEC, "version 2"),
        (FORMAT, 1, {"algorithm": 3}, "algorithm is 3"),
    ):
        write_arrays(path, kind, version, spec, ARRAYS)
        with pytest.raises(ValueError, match=message):
            load_model(path)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_arrays_that_are_no_numbers_are_neither_written_nor_read(tmp_path, monkeypatch, number):
    path, spoilt = tmp_path / "model.npz", {"weight": np.array([1, number, 2], dtype=np.float32)}
    complaint = rf"model\.npz: the array 'weight' holds {number}; expected finite numbers"
    with pytest.raises(ValueError, match=complaint):
        save_model(path, SPEC, spoilt)
    assert not path.exists()
    with monkeypatch.context() as unchecked:
        unchecked.setattr("mergefall_baselines.arrays.check_finite", lambda *_: None)
        save_model(path, SPEC, spoilt)
    with pytest.raises(ValueError, match=complaint):
        load_model(path)


def test_trees_come_back_as_they_were():
    import torch

    tree = {
        "state": {0: {"step": torch.tensor(3.0), "moments": torch.ones(2, 2)}},
        "groups": [{"betas": (0.9, 0.999), "lr": np.float64(0.1), "amsgrad": False, "none": None}],
        "$odd": "text",
        "generator": {"state": 2**127 + 1},
        "array": np.arange(4, dtype=np.uint64),
        "infinite": float("inf"),
    }
    assert str(unflatten(*flatten(tree))) == str(tree).replace("np.float64(0.1)", "0.1")
    with pytest.raises(TypeError, match="cannot be kept"):
        flatten({"trap": Trap()})


LEARNT = {  # by agent: its board, a simple player, and the cap
    "2048/distill": ({}, "2048/greedy", 600),
    "tetris/afterstate": ({"rows": 6}, "tetris/random", 600),
    "tetris/dqn": ({"rows": 10}, "tetris/random", 100),
    "tetris/distill": ({"rows": 10, "preview": 0}, "tetris/random", 100),
    "tetris/cross-entropy": ({"rows": 6}, "tetris/random", 600),
    "tetris/sz-cross-entropy": ({}, "tetris/bcts", 600),
    "tetris/sz-afterstate": ({}, "tetris/bcts", 600),
}


@pytest.mark.parametrize("name", LEARNT)
def test_agents_that_come_with_the_package_are_small_and_have_learnt(name):
    kwargs, simple, cap = LEARNT[name]
    given = {"env_kwargs": kwargs, "max_episode_steps": cap, "workers": 1, "progress": False}
    env_id, _ = environment_of(name, {})
    learnt, other = (evaluate(player, env_id, 10, **given) for player in (name, simple))
    assert learnt.results.mean() > 2 * other.results.mean() + 5
    (file,) = SHIPPED.glob(f"{name.replace('/', '-')}.npz")
    assert file.stat().st_size <= 5_000_000
    assert load_model(file).checksum.startswith(learnt.header.options["checksum"])
