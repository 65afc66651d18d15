"""A JVM that was killed before it had a session is forgotten: PySpark would ask it for ever, and no job would run until a restart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from ingestion.spark import jvm_process, session


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """As PySpark keeps it, to a process that reads its standard input; it has a scratch folder."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    for of, name in ((SparkContext, "_active_spark_context"), (SparkSession, "_instantiatedSession")):
        monkeypatch.setattr(of, name, None)
    fake = SimpleNamespace(proc=process, shutdown=lambda: None)
    monkeypatch.setattr(SparkContext, "_gateway", fake)
    monkeypatch.setattr(SparkContext, "_jvm", fake)
    scratch = tmp_path / "jvm"
    scratch.mkdir()
    monkeypatch.setitem(session._scratch_by_jvm, process.pid, scratch)
    return fake


def test_one_that_was_killed_while_it_started_is_forgotten_with_its_folder(
    gateway: SimpleNamespace, tmp_path: Path
) -> None:
    gateway.proc.kill()
    gateway.proc.wait()
    session._close_ended_session()
    assert SparkContext._gateway is None
    assert SparkContext._jvm is None
    assert not (tmp_path / "jvm").exists()


def test_one_that_runs_is_kept(gateway: SimpleNamespace, tmp_path: Path) -> None:
    session._close_ended_session()
    assert SparkContext._gateway is gateway
    assert (tmp_path / "jvm").exists()
    gateway.proc.communicate(b"\n")


@pytest.mark.parametrize(
    ("rounds", "looks", "line"),
    [
        ([], 1, ""),
        ([[7, 8], [8]], 3, "Processes that a JVM has left were killed: [7, 8]"),
        (
            [[7, 8], *[[8]] * 1000],
            jvm_process.MAX_ROUNDS,
            "Processes that a JVM has left were killed and have not ended: [8]",
        ),
    ],
)
def test_what_a_kill_does_not_end_is_given_up_and_named_in_one_line(
    rounds: list[list[int]], looks: int, line: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As a process in the kernel's uninterruptible sleep."""
    left, looked = iter(rounds), list[str]()

    def kill(address_file: str) -> list[int]:
        looked.append(address_file)
        return next(left, [])

    monkeypatch.setattr(jvm_process, "_kill_all_of", kill)
    with caplog.at_level("INFO", logger=jvm_process.__name__):
        jvm_process.end_what_is_left("address", pause=lambda seconds: None)
    assert looked == ["address"] * looks
    assert caplog.messages == ([line] if line else [])
