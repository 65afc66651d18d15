from __future__ import annotations

import logging
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from honcho.printer import Message

from lakehub.processes import supervisor


def test_all_the_processes_of_the_procfile_run_by_default() -> None:
    assert list(supervisor.process_commands()) == ["web", "worker", "spark", "beat"]


def test_spark_has_a_worker_and_a_queue_of_its_own_that_runs_one_job_at_a_time() -> None:
    line = supervisor.process_commands(["spark"])["spark"]
    assert "--queues spark" in line
    assert "--pool solo" in line


def test_a_process_that_is_not_there_is_named_with_the_nearest() -> None:
    with pytest.raises(supervisor.UnknownProcess, match="Did you mean `worker`"):
        supervisor.process_commands(["wroker"])


def test_with_reload_each_process_is_watched() -> None:
    assert all(line.startswith("watchfiles ") for line in supervisor.process_commands(reload=True).values())


def test_the_interpreters_own_programs_come_first_on_the_path() -> None:
    path = supervisor.process_environment("127.0.0.1:8000", {"PATH": "/usr/bin"})["PATH"]
    assert path.split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]


def test_lines_for_a_program_pass_as_they_are(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    printer, now = supervisor.RawPrinter(), datetime(2026, 11, 17, tzinfo=UTC)
    printer.write(Message("line", b'{"message": "up"}\n', now, "web", None))
    printer.write(Message("line", "web started (pid=12)\n", now, "system", None))
    assert capsys.readouterr().out == '{"message": "up"}\n'
    assert caplog.messages == ["web started (pid=12)"]
