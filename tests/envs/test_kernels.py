"""The kernels' cache: never stale, whichever file was edited, and shared by processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import mergefall
import mergefall_baselines
import pytest
from mergefall.kernels import kernel_files
from mergefall_baselines.game2048.tuples import network_shape
from mergefall_training.learn.ntuple.kernels import learning_kernel

CALLEE = """
from mergefall.kernels import kernel
STEP = {step}
@kernel
def callee(x):
    return x + STEP
"""
CALLER = """
from mergefall.kernels import kernel
from toy.callee import callee
@kernel
def caller(x):
    return callee(x)
"""
FACTORY = """
from mergefall.kernels import kernel
def made(step):
    @kernel(variant=str(step))
    def steps(x):
        return steps(x - 1) + step if x > 0 else 0
    @kernel(variant=str(step))
    def outer(x):
        return steps(x)
    return outer
"""
LOOP = """
from mergefall.kernels import kernel
def loop_over(decide):
    @kernel(variant=decide.__name__)
    def loop(x):
        return 100 * decide(x)
    return loop
"""
KERNEL = "from mergefall.kernels import kernel\n@kernel\ndef callee(x):\n"
CONSTANTS = [  # a kernel and the file that its constant comes from
    ("from toy.constants import STEP\n{kernel}    return x + STEP\n", "STEP = {step}\n"),
    ("from toy.constants import STEP\n{kernel}    return x + STEP[0]\n", "STEP = ({step}, 0)\n"),
    ("from toy import constants\n{kernel}    return x + constants.STEP\n", "STEP = {step}\n"),
    (
        "from toy.constants import STEP\n{kernel}    return x + STEP[0]\n",
        "import numpy as np\nSTEP = np.array([{step}])\n",
    ),
    (
        "from toy.constants import plain\n{kernel}    return plain(x)\n",
        "import numba\n@numba.njit\ndef plain(x):\n    return plain(x - 1) + 1 if x > 1 else x + {step}\n",
    ),
]
RUN = """
from toy.caller import caller
print(caller(1))
print(sum(caller._cache_hits.values()))
"""


@pytest.fixture
def run(tmp_path):
    package = tmp_path / "toy"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "caller.py").write_text(CALLER)
    paths = [str(tmp_path), str(Path(mergefall.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def edited(step):
        (package / "callee.py").write_text(CALLEE.format(step=step))
        done = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True)
        return list(map(int, done.stdout.split()))

    return edited


def test_editing_a_callee_in_another_file_is_seen(run):
    """Numba's own cache would return 11 the third time: it looks at the caller's file alone."""
    assert run(10) == [11, 0]
    assert run(10) == [11, 1]
    assert run(20) == [21, 0]
    assert run(10)[0] == 11


def test_editing_a_constant_in_a_file_without_kernels_is_seen(tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "__init__.py").touch()
    for place, (callee, _) in enumerate(CONSTANTS):
        callee = callee.format(kernel=KERNEL).replace("constants", f"constants_{place}")
        (tmp_path / "toy" / f"callee_{place}.py").write_text(callee)
        (tmp_path / "toy" / f"caller_{place}.py").write_text(CALLER.replace("toy.callee", f"toy.callee_{place}"))
    code = "".join(RUN.replace("toy.caller", f"toy.caller_{place}") for place in range(len(CONSTANTS)))
    paths = [str(tmp_path), str(Path(mergefall.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def edited(step):
        for place, (_, constants) in enumerate(CONSTANTS):
            (tmp_path / "toy" / f"constants_{place}.py").write_text(constants.format(step=step))
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return list(map(int, done.stdout.split()))

    for step, found in ((10, [11, 0]), (20, [21, 0]), (20, [21, 1])):
        assert edited(step) == found * len(CONSTANTS)


def test_editing_a_kernel_that_another_package_is_made_with_is_seen(tmp_path):
    """As an episode loop of one package runs a player of another's."""
    for package in ("loops", "toy"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "loops" / "loop.py").write_text(LOOP)
    (tmp_path / "toy" / "caller.py").write_text(CALLER)
    paths = [str(tmp_path), str(Path(mergefall.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def edited(step):
        (tmp_path / "toy" / "callee.py").write_text(CALLEE.format(step=step))
        code = "from loops.loop import loop_over; from toy.caller import caller; print(loop_over(caller)(1))"
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert [edited(10), edited(20), edited(10)] == [1100, 2100, 1100]


@pytest.mark.parametrize("factory", [FACTORY, FACTORY.replace("(variant=str(step))", "")])
def test_kernels_of_one_factory_compiled_by_two_processes_stay_apart(tmp_path, factory):
    """Numba's names count functions process by process: both `steps` here would bear one name.

    Without a variant it is the number in their closure that tells them apart.
    """
    (tmp_path / "toy.py").write_text(factory)
    paths = [str(tmp_path), str(Path(mergefall.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def found(*steps):
        code = f"from toy import made; print(*[made(step)(3) for step in {steps}])"
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return list(map(int, done.stdout.split()))

    assert found(10) == [30]
    assert found(20) == [60]
    assert found(10, 20) == [30, 60]


def test_files_that_cannot_be_read_do_not_count(tmp_path):
    (tmp_path / "mine.py").write_text("from mergefall.kernels import kernel\n")
    (tmp_path / ".#mine.py").symlink_to(tmp_path / "nowhere")  # what Emacs leaves beside a file that is being edited
    (tmp_path / "folder.py").mkdir()
    assert [path.name for path in kernel_files(tmp_path) if path.parent == tmp_path] == ["mine.py"]


def test_every_file_with_a_kernel_counts():
    packages = [Path(mergefall.__file__).parent, Path(mergefall_baselines.__file__).parent]
    counted = kernel_files(packages[1])
    for path in (path for package in packages for path in package.rglob("*.py")):
        if re.search("^ *@kernel", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            assert path in counted
    assert len(counted) > 20


def test_a_kernel_over_kernels_of_another_package_counts_its_files_too():
    """Not only those that it calls itself: all are inlined."""
    packages = learning_kernel(network_shape("01", 2, 2)).packages
    assert {package.name for package in packages} >= {"mergefall_training", "mergefall_baselines"}


def test_nothing_is_compiled_at_import(tmp_path):
    code = "import mergefall, mergefall.game2048; print('ok')"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = str(Path(mergefall.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    assert not list(tmp_path.rglob("*.nb*"))
