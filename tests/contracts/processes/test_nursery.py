from __future__ import annotations

import os
import signal
import sys

import pytest

from lakehub.processes.supervisor import nursery, process_tree


def test_the_words_of_a_line_are_those_that_a_shell_reads() -> None:
    line = "gunicorn app --bind ${BIND:-127.0.0.1:8000} --workers ${WORKERS:-2} 'two words'"
    words = nursery.words_of(line, {"WORKERS": "5", "PATH": os.defpath})
    assert words == ["gunicorn", "app", "--bind", "127.0.0.1:8000", "--workers", "5", "two words"]


@pytest.mark.parametrize(("words", "code"), [(["celery", "--version"], 0), (["celery", "no-such-command"], 2)])
def test_a_fork_runs_a_script_of_this_environment_and_ends_with_its_code(words: list[str], code: int) -> None:
    pid = nursery.fork("test", words, sys.stderr.fileno())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code


def test_a_program_that_is_not_there_is_an_error_of_the_fork_only(capfd: pytest.CaptureFixture[str]) -> None:
    pid = nursery.fork("test", ["no-such-program"], sys.stderr.fileno())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


def test_a_fork_ends_with_its_parent() -> None:
    """The parent is a process of its own here, which is killed."""
    receiver, sender = os.pipe()
    parent = os.fork()
    if parent == 0:
        child = os.fork()
        if child == 0:
            process_tree.end_with_parent(os.getppid())
            os.write(sender, b"ready")
            signal.pause()
        signal.pause()
    os.close(sender)
    assert os.read(receiver, 5) == b"ready"
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert os.read(receiver, 5) == b"", "nobody holds the other end any more"
    os.close(receiver)
