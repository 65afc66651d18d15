"""What a job reports that HBase does not answer, in the driver or in a task of Spark: it is no failure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PythonException

from ingestion.index.client import IndexUnavailable
from ingestion.spark import execute as executing
from ingestion.spark.contract.report import FAILED, INDEX_AWAY, JobReport
from ingestion.spark.contract.spec import JobSpec, TableSpec

TABLE = TableSpec("orders", "file:///lake/orders", "file:///lake/_errors/orders", record_key=("id",))
WORDS = "HBase does not answer through its Thrift server thrift:9090: refused. What waits goes on when it is back."
OF_A_TASK = f"""
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/lakehub.zip/ingestion/index/thrift_client.py", line 188, in _call
    raise IndexUnavailable(
{IndexUnavailable.__module__}.IndexUnavailable: {WORDS}
"""
QUOTED = "Traceback (most recent call last):\nValueError: row says `ingestion.index.client.IndexUnavailable: no`"


def reported(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> JobReport:
    def run(job: object) -> JobReport:
        raise problem

    monkeypatch.setattr(executing, "JOBS", {"verify_index": run})
    monkeypatch.setattr(executing, "does_jvm_answer", lambda spark: True)
    spark = cast("Any", SimpleNamespace())
    return executing.execute(JobSpec("r", "verify_index", TABLE), spark=spark, secrets={})


def test_it_is_away_in_the_words_of_whoever_was_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    for problem in (IndexUnavailable(WORDS), PythonException(OF_A_TASK)):
        report = reported(monkeypatch, problem)
        assert (report.status, report.error, report.timed_out) == (INDEX_AWAY, WORDS, False)


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (PythonException(QUOTED), QUOTED.splitlines()[-1]),
        (ValueError(WORDS), f"ValueError: {WORDS}"),
        (ConnectionError(WORDS), f"ConnectionError: {WORDS}"),
    ],
)
def test_what_only_quotes_it_has_failed(monkeypatch: pytest.MonkeyPatch, problem: Exception, error: str) -> None:
    report = reported(monkeypatch, problem)
    assert (report.status, report.error) == (FAILED, error)
