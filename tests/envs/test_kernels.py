"""The kernels' cache: never stale, whichever file was edited, and shared by processes."""

import contextlib
import importlib
import io
import os
import subprocess
import sys
from pathlib import Path

import mergefall
import pytest
from mergefall import kernels
from mergefall.kernels import kernel
from numba.core import config

CALLEE = """
from mergefall.kernels import kernel
STEP = {step}
@kernel
def callee(x):
    return x + STEP
@kernel
def alone(x):
    return x
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
    @kernel
    def steps(x):
        return steps(x - 1) + step if x > 0 else 0
    @kernel
    def outer(x):
        return steps(x)
    return outer
"""
LOOP = """
from mergefall.kernels import kernel
def loop_over(decide):
    @kernel
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
ALONE = "from toy.callee import alone; alone(1); print(sum(alone._cache_hits.values()))"


def printed(folder, code, warning=()):
    """The numbers that a process of its own prints, which imports from `folder` and compiles into it.

    It warns of what is expected and of nothing else; an edit within a second would leave bytecode stale.
    """
    paths = os.pathsep.join([str(folder), str(Path(mergefall.__file__).parents[1])])
    own = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=True)
    assert [done.stderr.count(part) for part in warning] == [1] * len(warning)
    assert warning or not done.stderr
    return list(map(int, done.stdout.split()))


@pytest.fixture
def printed_here(tmp_path, monkeypatch):
    """The numbers that code prints whose modules are loaded anew, so that its kernels know of the cache alone."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)

    def run(code):
        for name in [name for name in sys.modules if name.partition(".")[0] in ("loops", "named", "one", "toy")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, {})
        return list(map(int, output.getvalue().split()))

    yield run
    run("")


def test_editing_a_callee_in_another_file_is_seen(tmp_path, printed_here):
    """Numba's own cache would return 11 the third time: it looks at the caller's file alone.

    What does not reach the edit is not compiled anew, though it is in the edited file.
    """
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "caller.py").write_text(CALLER)

    def edited(step):
        (tmp_path / "toy" / "callee.py").write_text(CALLEE.format(step=step))
        return printed_here(RUN + ALONE)

    assert edited(10) == [11, 0, 0]
    assert edited(10) == [11, 1, 1]
    assert edited(20) == [21, 0, 1]
    assert edited(10) == [11, 1, 1]


def test_editing_a_constant_in_a_file_without_kernels_is_seen(tmp_path, printed_here):
    (tmp_path / "toy").mkdir()
    for place, (callee, _) in enumerate(CONSTANTS):
        callee = callee.format(kernel=KERNEL).replace("constants", f"constants_{place}")
        (tmp_path / "toy" / f"callee_{place}.py").write_text(callee)
        (tmp_path / "toy" / f"caller_{place}.py").write_text(CALLER.replace("toy.callee", f"toy.callee_{place}"))
    code = "".join(RUN.replace("toy.caller", f"toy.caller_{place}") for place in range(len(CONSTANTS)))

    def edited(step):
        for place, (_, constants) in enumerate(CONSTANTS):
            (tmp_path / "toy" / f"constants_{place}.py").write_text(constants.format(step=step))
        return printed_here(code)

    for step, found in ((10, [11, 0]), (20, [21, 0]), (20, [21, 1])):
        assert edited(step) == found * len(CONSTANTS)


def test_editing_a_kernel_that_another_package_is_made_with_is_seen(tmp_path, printed_here):
    """As an episode loop of one package runs a player of another's."""
    for package in ("loops", "toy"):
        (tmp_path / package).mkdir()
    (tmp_path / "loops" / "loop.py").write_text(LOOP)
    (tmp_path / "toy" / "caller.py").write_text(CALLER)

    def edited(step):
        (tmp_path / "toy" / "callee.py").write_text(CALLEE.format(step=step))
        return printed_here(
            "from loops.loop import loop_over; from toy.caller import caller; print(loop_over(caller)(1))"
        )

    assert edited(10) + edited(20) + edited(10) == [1100, 2100, 1100]


def test_kernels_of_one_factory_compiled_by_two_processes_stay_apart(tmp_path):
    """Numba's names count functions process by process: both `steps` here would bear one name."""
    (tmp_path / "toy.py").write_text(FACTORY)

    def found(*steps):
        code = f"from toy import made; print(*[made(step)(3) for step in {steps}])"
        return printed(tmp_path, code)

    assert found(10) == [30]
    assert found(20) == [60]
    assert found(10, 20) == [30, 60]


NAMED = """
from typing import NamedTuple
from mergefall.kernels import kernel
class Pair(NamedTuple):
    left: int
    right: float
@kernel
def inner(pair):
    return Pair(pair.left + 1, pair.right)
@kernel
def outer(pair):
    return inner(pair).left + {step}
"""
SCRIPT = "exec(compile(open('named.py').read(), 'named.py', 'exec'))"
TWICE = "import sys, named; from named import *; del sys.modules['named']; import named"


@pytest.mark.parametrize("code", [SCRIPT, TWICE])
def test_kernels_from_the_cache_take_the_named_tuples_of_this_process(tmp_path, monkeypatch, printed_here, code):
    """Numba would keep the class of a script, or of a module that was loaded twice, by value: as one of its own."""
    monkeypatch.chdir(tmp_path)
    for step, hits in ((10, 0), (20, 1)):
        (tmp_path / "named.py").write_text(NAMED.format(step=step))
        shown = code + "; print(outer(Pair(1, 2.0)), sum(inner._cache_hits.values()))"
        assert (printed(tmp_path, shown) if code == SCRIPT else printed_here(shown)) == [2 + step, hits]


def test_a_literal_has_no_type_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    @kernel
    def callee(x, flag):
        return x if flag else -x

    @kernel
    def caller(x):
        return callee(3, True) + callee(2, flag=False) + callee(x, x > 5)

    assert caller(7) == 8
    assert len(callee.signatures) == 1


ONE = "from mergefall.kernels import borrow, kernel\n@kernel\ndef twice(x):\n    return 2 * x\nprint(twice(4))\n"
HITS = "print(sum(twice._cache_hits.values()))\n"
FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""


def test_a_damaged_file_of_the_cache_is_compiled_anew(tmp_path, printed_here, monkeypatch):
    """Empty, cut, garbled, with one flipped bit, or a folder."""
    (tmp_path / "one.py").write_text(ONE + HITS)
    assert printed_here("import one") == [8, 0]
    (file,) = (tmp_path / "cache").glob("twice-*.nbc")
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for content in (b"", whole[: len(whole) // 2], b"\xff" * len(whole), bytes(flipped)):
        file.write_bytes(content)
        assert printed_here("import one") == [8, 0]
        assert file.read_bytes() != content
        assert printed_here("import one") == [8, 1]
    file.unlink()
    file.mkdir()
    monkeypatch.setattr(kernels._KernelCache, "warned", False)
    with pytest.warns(RuntimeWarning, match="compiled kernels cannot be kept"):
        assert printed_here("import one") == [8, 0]


@pytest.mark.parametrize(
    ("setting", "value", "kept"),
    [
        ("BOUNDSCHECK", not config.BOUNDSCHECK, 0),
        ("OPT", config._OptLevel(1), 0),
        ("ENABLE_AVX", not config.ENABLE_AVX, 0),
        ("DEBUGINFO_DEFAULT", 1, 0),
        ("NUMBA_NUM_THREADS", 1, 1),  # as on another machine
    ],
)
def test_a_setting_that_changes_machine_code_has_files_of_its_own(
    tmp_path, printed_here, monkeypatch, setting, value, kept
):
    (tmp_path / "one.py").write_text(ONE + HITS)
    assert printed_here("import one") == [8, 0]
    with monkeypatch.context() as changed:
        changed.setattr(config, setting, value)
        assert printed_here("import one") == [8, kept]
        assert printed_here("import one") == [8, 1]
    assert printed_here("import one") == [8, 1]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX")
def test_a_file_of_the_cache_is_readable_as_the_umask_says(tmp_path, printed_here):
    """A folder that root filled in an image serves its users."""
    (tmp_path / "one.py").write_text(ONE)
    for mask in (0o022, 0o077):
        before = os.umask(mask)
        try:
            printed_here("import one")
        finally:
            os.umask(before)
        (file,) = (tmp_path / "cache").iterdir()
        assert file.stat().st_mode & 0o777 == 0o666 & ~mask
        file.unlink()


@pytest.mark.skipif(sys.platform == "win32", reason="limits on files are POSIX")
def test_a_cache_that_cannot_be_written_is_gone_without_and_one_that_is_warm_is_used(tmp_path):
    (tmp_path / "one.py").write_text(ONE + HITS)
    warning = "compiled kernels cannot be kept", "NUMBA_CACHE_DIR"
    assert printed(tmp_path, FULL + "import one", warning) == [8, 0]
    printed(tmp_path, "import one")
    assert printed(tmp_path, FULL + "import one") == [8, 1]


def test_where_the_package_cannot_be_written_the_user_s_folder_is(tmp_path, monkeypatch, printed_here):
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "one.py").write_text(ONE + HITS)
    (tmp_path / "__pycache__").touch()  # a file: nobody can write into it, not even root
    assert printed_here("import one") == [8, 0]
    assert printed_here("import one") == [8, 1]
    assert list((tmp_path / "home").rglob("twice-*.nbc"))


def test_nothing_is_compiled_at_import(tmp_path):
    assert printed(tmp_path, "import mergefall.game2048") == list(tmp_path.rglob("*.nb*")) == []
