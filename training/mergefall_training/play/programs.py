"""Programs that are asked questions: one process for each question, or one for all of them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import IO, Any

MOST = 1_000_000  # bytes of an answer
TAIL = 2_000  # characters of standard error that a message shows
LOOK = 0.1  # seconds between looks at the length of an answer
GRACE = 2.0  # seconds in which a program that has answered everything may end by itself


def ask_each(program: str, questions: Mapping[str, str], seconds: float) -> Iterator[tuple[str, str]]:
    """Ask a program, one process for each question: (name, answer) of each, in order.

    A process reads its question on standard input and writes its answer to standard output.

    Args:
        program: a command line, which no shell reads.
        questions: by name.
        seconds: time limit of each answer.

    Raises ValueError if the program cannot be started, ends with a status other than 0, is late, or answers with more
    than a megabyte; the message shows the end of its standard error.

    Example:
        >>> program = f'"{sys.executable}" -c "print(input().upper())"'
        >>> list(ask_each(program, {"first": "up", "second": "down"}, seconds=60))
        [('first', 'UP\\n'), ('second', 'DOWN\\n')]
    """
    command = words_of(program)
    for name, question in questions.items():
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answer:
            asked.write(question.encode())
            asked.seek(0)
            with _running(command, stdin=asked, stdout=answer) as (process, fail):
                end = time.monotonic() + seconds
                while not _ended(process, min(LOOK, max(0.0, end - time.monotonic()))):
                    if time.monotonic() >= end:
                        raise fail(f"gave no answer to {name} within {seconds:g} s")
                    if _size(answer) > MOST:
                        raise fail(f"answered {name} with more than {MOST:,} bytes")
                if process.returncode:
                    raise fail(f"ended with status {process.returncode} when it was asked {name}")
                if _size(answer) > MOST:
                    raise fail(f"answered {name} with more than {MOST:,} bytes")
                answer.seek(0)
                yield name, answer.read().decode(errors="replace")


def ask_all(program: str, questions: Mapping[str, str], seconds: float) -> Iterator[tuple[str, str]]:
    """Ask a program, one process for all questions: (name, answer) of each, in the order of the answers.

    The process reads a line of JSON with `id` and `prompt` for each question, then the end of its input. It writes a
    line of JSON with `answer` for each, in any order with the question's `id`, in the order of the questions without.

    Args:
        program: a command line, which no shell reads.
        questions: by name, the `id`.
        seconds: time limit for the first answer, and from each answer to the next one.

    Raises ValueError as `ask_each`, and for a line that is no answer.
    """
    if not questions:
        return  # a program may take long to start
    open_questions, lines = dict(questions), SimpleQueue[bytes]()
    with _running(words_of(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as (process, fail):
        assert process.stdin is not None
        assert process.stdout is not None
        asked = [json.dumps({"id": name, "prompt": question}) for name, question in questions.items()]
        threads = [
            threading.Thread(target=_write, args=(process.stdin, asked), daemon=True),
            threading.Thread(target=_read, args=(process.stdout, lines), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            while open_questions:
                try:
                    line = lines.get(timeout=seconds)
                except Empty:
                    raise fail(f"gave no answer within {seconds:g} s; {len(open_questions)} are missing") from None
                if not line:
                    _ended(process, GRACE)
                    status = "" if process.returncode is None else f" with status {process.returncode}"
                    raise fail(f"ended{status}; {len(open_questions)} answers are missing")
                try:
                    name, answer = _answer_in(line, next(iter(open_questions)))
                    if open_questions.pop(name, None) is None:
                        raise ValueError(f"id is {name!r}; expected that of a question without an answer")
                except ValueError as error:
                    raise fail(f"wrote {line[:200]!r}: {error}") from error
                yield name, answer
            _ended(process, GRACE)
        finally:
            _kill(process)
            for thread in threads:
                thread.join(GRACE)


def words_of(program: str) -> list[str]:
    """The words of a command line; raises ValueError if there are none, or if a quotation mark is open.

    >>> words_of("python 'my model.py' --fast")
    ['python', 'my model.py', '--fast']
    """
    try:
        words = shlex.split(program, posix=os.name != "nt")
    except ValueError as error:
        raise ValueError(f"program is {program!r}: {error}") from error
    if not words:
        raise ValueError(f"program is {program!r}; expected a command line such as 'python model.py'")
    return [word.strip('"') for word in words] if os.name == "nt" else words


@contextmanager
def _running(
    command: Sequence[str], stdin: Any, stdout: Any
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[str], ValueError]]]:
    """A process, which is killed at the end, and a function that makes an error of what it did wrong."""
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=errors, start_new_session=True)
        except OSError as error:
            raise ValueError(f"program {command[0]!r} cannot be started: {error.strerror}") from error

        def fail(what: str) -> ValueError:
            _kill(process)
            errors.seek(max(0, _size(errors) - TAIL))
            said = errors.read().decode(errors="replace").strip()
            said = f". The end of its standard error:\n{said}" if said else ". It wrote nothing to standard error."
            return ValueError(f"the program {shlex.join(command)} {what}{said}")

        with process:
            try:
                yield process, fail
            finally:
                _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process, and those that it started; nothing if it has ended."""
    if process.poll() is None:
        if sys.platform == "win32":
            process.kill()
        else:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its own group, because it was started in a new session
        process.wait()


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ends within this time."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _write(stream: IO[bytes], lines: list[str]) -> None:
    with suppress(OSError, ValueError):  # it may end before it has read everything
        for line in lines:
            stream.write(line.encode() + b"\n")
            stream.flush()
    with suppress(OSError, ValueError):
        stream.close()


def _read(stream: IO[bytes], lines: SimpleQueue[bytes]) -> None:
    with suppress(OSError, ValueError):
        while line := stream.readline(MOST):
            if line.strip():
                lines.put(line)
    lines.put(b"")


def _answer_in(line: bytes, first: str) -> tuple[str, str]:
    """The question's name and the answer in a line; `first` is the name if the line has none."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("answer"), str):
        raise ValueError('expected a JSON object on one line such as {"id": "…", "answer": "up"}')
    name = content.get("id", first)
    if not isinstance(name, str):
        raise ValueError(f"id is {name!r}; expected the id of a question")
    return name, content["answer"]
