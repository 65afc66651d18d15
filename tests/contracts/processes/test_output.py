from __future__ import annotations

import logging
import os

import pytest

from lakehub.processes.supervisor import output
from lakehub.processes.supervisor.output import Lines, Output


def test_lines_for_a_program_pass_as_they_are(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lines = Output(["web"], raw=True)
    lines.write("web", b'{"message": "up"}\n')
    lines.say("web started (pid=12)")
    assert capsys.readouterr().out == '{"message": "up"}\n'
    assert caplog.messages == ["web started (pid=12)"]


def test_a_line_is_written_when_it_is_whole_or_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    receiver, sender = os.pipe()
    lines = Lines("web", receiver, Output(["web"], raw=True))
    os.write(sender, b"one\ntw")
    assert lines.read()
    assert capsys.readouterr().out == "one\n"
    assert not lines.read(), "nothing waits for the rest"
    os.write(sender, b"o\nthree")
    os.close(sender)
    assert lines.read()
    lines.read()
    assert capsys.readouterr().out == "two\nthree\n"
    assert not lines.is_open


def test_a_line_without_an_end_is_written_in_parts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "MAX_LINE_BYTES", 10)
    receiver, sender = os.pipe()
    lines = Lines("web", receiver, Output(["web"], raw=True))
    os.write(sender, b"x" * 11)
    lines.read()
    assert capsys.readouterr().out == "x" * 11 + "\n"
