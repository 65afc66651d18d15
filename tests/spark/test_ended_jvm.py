"""A JVM that was killed before it had a session is forgotten: PySpark would ask it for ever, and no job would run until a restart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from ingestion.spark import session


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
