"""A JVM that dies or does not come up, whenever that is, costs one error within the deadline, never a wait without end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ingestion.spark.session import java_home
from lakehub.setup.locations import PACKAGES
from tests.polling import scaled, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        sys.platform != "linux", reason="needs /proc, and another way than Java's helper to start programs"
    ),
]
OPEN = """
from ingestion.spark.session import open_session
try:
    open_session()
except RuntimeError as problem:
    print(type(problem).__name__, problem)
"""
HANGS, ENDS, IS_KILLED = "exec sleep 3600", "exit 0", "kill -9 $$"


@pytest.fixture
def own_java(tmp_path: Path) -> Path:
    """A copy of the Java runtime."""
    return shutil.copytree(java_home(os.environ), tmp_path / "java", symlinks=True)


def test_a_call_ends_with_its_jvm_though_another_process_holds_the_connection(tmp_path: Path, own_java: Path) -> None:
    assert _python(tmp_path, own_java, "-m", "tests.spark.killed_jvm", "kill") == "ended\n"


def test_a_jvm_starts_programs_without_the_helper_that_would_outlive_it(tmp_path: Path, own_java: Path) -> None:
    start_s = str(int(scaled(40)))
    answer = _python(tmp_path, own_java, "-m", "tests.spark.killed_jvm", "spawn", LAKEHUB_SPARK_START_S=start_s)
    assert answer == "0\n"


@pytest.mark.parametrize("does", [HANGS, ENDS])
def test_a_jvm_that_does_not_come_up_is_given_up_and_killed(tmp_path: Path, does: str) -> None:
    answer = _python(tmp_path, _java_that(does, tmp_path), "-c", OPEN, LAKEHUB_SPARK_START_S="4")
    assert "JvmNotStarted Spark's JVM was not up within LAKEHUB_SPARK_START_S=4 and was killed" in answer
    assert "raise LAKEHUB_SPARK_START_S" in answer
    wait_until(lambda: _processes_with(tmp_path) == [], otherwise=lambda: f"{_processes_with(tmp_path)} run on")


def test_a_jvm_that_is_killed_while_it_starts_is_an_error_at_once(tmp_path: Path) -> None:
    assert "JAVA_GATEWAY_EXITED" in _python(tmp_path, _java_that(IS_KILLED, tmp_path), "-c", OPEN)


def _java_that(does: str, folder: Path) -> Path:
    """A runtime that says what Spark's script is to start, and then `does` something else than start it."""
    program = folder / "no-java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    real = Path(java_home(os.environ)) / "bin" / "java"
    program.write_text(f'#!/bin/sh\ncase "$*" in *org.apache.spark.launcher.Main*) exec {real} "$@";; esac\n{does}\n')
    program.chmod(0o755)
    return program.parents[1]


def _processes_with(folder: Path) -> list[str]:
    """Whose variables name the folder."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(folder).encode() in (process / "environ").read_bytes():
                pids.append(process.name)
    return pids


def _python(folder: Path, java: Path, *arguments: str, **variables: str) -> str:
    """What it printed. Fails where it does not end."""
    own = {"PYTHONPATH": str(PACKAGES), "LAKEHUB_HOME": str(folder / "home"), "LAKEHUB_JAVA_HOME": str(java)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=PACKAGES,
        env=os.environ | own | variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=scaled(90),
    )
    return done.stdout
