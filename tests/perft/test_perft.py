"""The counts hold, and the tool names one that does not."""

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).with_name("perft.py")


def run(*arguments):
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True)


def test_all_counts_hold():
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == sum(
        not line.startswith("#") for path in TOOL.parent.glob("*.txt") for line in path.read_text().splitlines()
    )


def test_a_wrong_count_is_named(tmp_path):
    wrong = tmp_path / "2x2.txt"
    wrong.write_text("2 ./. 2 2 209\n")
    done = run(str(wrong))
    assert done.returncode == 1
    assert "BAD, expected 209: 2x2  2 ./. 2  depth 2: 208" in done.stdout
