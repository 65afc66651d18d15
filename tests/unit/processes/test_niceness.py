"""A session that cannot be made nicer is no reason for a worker, or a job, to end. What the kernel makes of it: tests/services/test_processes.py."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from lakehub.processes.niceness import come_last_in_session


@pytest.mark.parametrize("number", [errno.EROFS, errno.EAGAIN, errno.EACCES])
def test_what_the_system_refuses_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    def refuse(path: Path, text: str) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "getsid", lambda process: process)
    monkeypatch.setattr(Path, "write_text", refuse)
    with caplog.at_level(logging.WARNING):
        come_last_in_session(os.getpid())
    assert os.strerror(number) in caplog.text


def test_a_process_that_has_ended_is_no_news(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def no_such_process(process: int) -> int:
        raise ProcessLookupError

    monkeypatch.setattr(os, "getsid", no_such_process)
    with caplog.at_level(logging.WARNING):
        come_last_in_session(2**22 + 1)
    assert caplog.text == ""
