"""A worker that is killed at every named place of ingestion, one after the other: the run is taken over each time, and each row is there once."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.polling import scaled

PROJECT = Path(__file__).resolve().parents[2]
ROWS, WITHIN_S = 30, 120
PREPARE = """
import django; django.setup()
from django.core.management import call_command
call_command("migrate", run_syncdb=True, verbosity=0)
from pathlib import Path
from tests import factories as given
home = Path({home!r})
given.data_center("dc1", (home / "lake").as_uri())
flights = given.dataset("flights", record_key=["id", "flight_date"], reference_key="updated_at", columns=[])
given.feed(flights, connection=given.connection(url=f"sqlite:///{{home / 'ops.db'}}"))
"""
WORK = """
import django; django.setup()
import lakehub.celery
from ingestion import tasks
tasks.start_due_runs()
tasks.run_job()
"""
TELL = """
import django; django.setup()
import json
from django.db.models import Sum
from hudi import HudiTable
from ingestion.models import Commit, CopyLease, Finding, JobRun, TouchedPartition
run, copy = JobRun.objects.get(), JobRun.objects.get().copy
commit = Commit.objects.get()
import duckdb
files = [f"{copy.uri}/{each.base_file_relative_path()}".removeprefix("file://") for each in HudiTable(copy.uri).get_file_slices()]
rows, keys = duckdb.sql("select count(*), count(distinct (id, flight_date)) from read_parquet($files)", params={"files": files}).fetchall()[0]
print(json.dumps({
    "state": run.state, "attempt": run.attempt, "of_the_run": commit.run_id == run.pk, "applied": commit.applied,
    "touched": TouchedPartition.objects.aggregate(rows=Sum("rows"))["rows"], "rows": rows, "keys": keys,
    "findings": Finding.objects.count(), "holder": CopyLease.objects.get().holder, "report": run.report["status"],
}))
"""


def test_a_worker_killed_at_every_place_loses_and_doubles_nothing(tmp_path: Path) -> None:
    operations(tmp_path / "ops.db")
    python(tmp_path, PREPARE.format(home=str(tmp_path)))
    for place in ("before_write", "inside_commit", "after_commit"):
        killed = python(tmp_path, WORK, LAKEHUB_FAILPOINT=f"ingestion.{place}", check=False)
        assert killed.returncode == -signal.SIGKILL, f"{place}: {killed.stderr[-3000:]}"
    python(tmp_path, WORK)
    assert json.loads(python(tmp_path, TELL).stdout.splitlines()[-1]) == {
        "state": "succeeded",
        "attempt": 4,
        "of_the_run": True,
        "applied": ROWS,
        "touched": ROWS,
        "rows": ROWS,
        "keys": ROWS,
        "findings": 0,
        "holder": "",
        "report": "succeeded",
    }


def operations(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create table flights(id integer, flight_date text, updated_at timestamp)")
        rows = [(number, f"2026-11-{number % 3 + 1:02}", "2026-11-16 08:00:00") for number in range(ROWS)]
        connection.executemany("insert into flights values (?, ?, ?)", rows)
    connection.close()


def python(home: Path, program: str, *, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
    settings: Mapping[str, Any] = {"LAKEHUB_HOME": str(home / "home"), "DJANGO_SETTINGS_MODULE": "tests.settings"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PROJECT,
        env={**os.environ, **settings, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=scaled(WITHIN_S),
        check=False,
    )
    assert done.returncode == 0 or not check, done.stderr[-3000:]
    return done
