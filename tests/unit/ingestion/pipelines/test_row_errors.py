"""What is told of an error of Spark in a job of a pipeline: nothing that may be a value of a row."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyarrow import ArrowInvalid, ArrowMemoryError
from pyspark.errors import PySparkTypeError, PySparkValueError, PythonException
from pyspark.sql import SparkSession

from ingestion.spark import execute as executing
from ingestion.spark.contract.spec import JobSpec, PipelineSpec, TableSpec
from ingestion.spark.etl.row_errors import Thrown, bug_without_rows, describe, error_without_rows
from ingestion.spark.file_groups.rewriting import RowsNotMet
from ingestion.spark.job import JobError

ABORTED = Thrown(
    "org.apache.spark.SparkException",
    "org.apache.spark.SparkException: Job aborted due to stage failure: Lost task 0.0: x Ann",
)
WRITING = Thrown(
    "org.apache.spark.SparkException",
    "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed: Ann",
    "TASK_WRITE_FAILED",
)
CAST = Thrown(
    "org.apache.spark.SparkNumberFormatException",
    "The value 'Ann' cannot be cast",
    "CAST_INVALID_INPUT",
    "CAST(p.name\n  AS INT)",
)
IN_LOG = "The message may contain values of rows, so it is only in the log of the worker."
BROADCAST = "org.apache.spark.SparkException: Could not execute broadcast in 300 secs. You can disable it."
NO_SPARK = cast("SparkSession", SimpleNamespace(sparkContext=SimpleNamespace(master="local", _gateway=None)))
MALFORMED = Thrown("org.apache.spark.SparkException", "Malformed records: [Ann]", "MALFORMED_RECORD_IN_PARSING")  # fmt: skip


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ((ABORTED, WRITING, CAST), "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] at `CAST(p.name AS INT)` in the SELECT. "),
        ((ABORTED, WRITING, MALFORMED, Thrown("a.JsonParseException", "Unrecognized token Ann")), "a.JsonParseException: [MALFORMED_RECORD_IN_PARSING]. "),
        ((ABORTED, WRITING, Thrown("java.lang.RuntimeException", "x Ann")), "java.lang.RuntimeException: "),
        ((ABORTED, Thrown("java.io.UnsupportedEncodingException", "Ann")), "java.io.UnsupportedEncodingException: "),
        ((Thrown("java.io.IOException", "java.io.IOException: No space for Ann"),), "java.io.IOException: "),
        ((ABORTED, Thrown("a.B", "a.B: Ann", "_LEGACY_ERROR_TEMP_2055")), "a.B: "),
    ],
)  # fmt: skip
def test_the_condition_the_class_and_the_place_are_told(chain: tuple[Thrown, ...], expected: str) -> None:
    words = describe(chain)
    assert words.startswith(f"{expected}The message may contain values of rows, so it is only in the log of the worker.")  # fmt: skip
    assert "try_cast" in words
    assert "Ann" not in words


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ((ABORTED, Thrown("java.io.FileNotFoundException", "java.io.FileNotFoundException: File file:/lake/a.parquet does not exist")), "java.io.FileNotFoundException: File file:/lake/a.parquet does not exist"),
        ((ABORTED, Thrown("java.io.IOException", "java.io.IOException: No space left on device")), "java.io.IOException: No space left on device"),
        ((ABORTED, Thrown("java.lang.OutOfMemoryError", "java.lang.OutOfMemoryError: Java heap space")), "java.lang.OutOfMemoryError: Java heap space"),
        ((Thrown("org.apache.spark.SparkException", BROADCAST, "_LEGACY_ERROR_TEMP_2097"), Thrown("java.util.concurrent.TimeoutException", "Futures timed out")), BROADCAST),
        ((Thrown("org.apache.spark.SparkException", "Job aborted due to stage failure: Task 0 in stage 5.0 failed: ExecutorLostFailure (executor 1 exited) Reason: Container killed"),), "ExecutorLostFailure (executor 1 exited) Reason: Container killed"),
    ],
)  # fmt: skip
def test_what_files_and_machines_say_is_told_in_full(chain: tuple[Thrown, ...], expected: str) -> None:
    assert describe(chain) == expected


def test_what_an_error_of_a_row_says_of_a_machine_is_not_told() -> None:
    forged = Thrown("java.lang.RuntimeException", "ExecutorLostFailure (Ann")
    assert "Ann" not in describe((ABORTED, WRITING, forged))


def test_a_long_part_of_the_select_is_cut() -> None:
    long = Thrown("a.B", "", "DIVIDE_BY_ZERO", "x" * 5_000)
    assert f"at `{'x' * 100}…` in the SELECT" in describe((long,))


def test_of_a_bug_its_class_is_told() -> None:
    assert bug_without_rows(ArrowInvalid("Could not convert 'Ann'")) == (
        "ArrowInvalid: The message may contain values of rows, so it is only in the log of the worker."
    )


def in_a_task(raised: str) -> PythonException:
    """As PySpark tells it: its first line is empty."""
    return PythonException(
        f"""
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/lakehub.zip/ingestion/spark/file_groups/many_rows/tasks.py", line 118, in _rewrite
    changed, added = (rows.cast(types) for each in parts)
{raised}
"""
    )


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (in_a_task("pyarrow.lib.ArrowInvalid: Could not convert 'Ann'\nwith type str: Ann"), f"pyarrow.lib.ArrowInvalid: {IN_LOG}"),
        (in_a_task("Ann has no class: 1"), f"PythonException: {IN_LOG}"),
        (in_a_task("ingestion.spark.file_groups.rewriting.RowsNotMet: f.parquet holds 1 rows."), "ingestion.spark.file_groups.rewriting.RowsNotMet: f.parquet holds 1 rows."),
        (in_a_task("FileNotFoundError: [Errno 2] /lake/a.parquet"), "FileNotFoundError: [Errno 2] /lake/a.parquet"),
        (in_a_task("KeyError: 'Ann'"), f"KeyError: {IN_LOG}"),
        (PythonException("Ann"), f"PythonException: {IN_LOG}"),
        (PySparkTypeError("CANNOT_ACCEPT_OBJECT_IN_TYPE 'Ann'"), f"PySparkTypeError: {IN_LOG}"),
    ],
)  # fmt: skip
def test_of_an_error_of_python_the_class_is_told_and_what_lakehub_says_in_full(
    problem: Exception, expected: str
) -> None:
    assert error_without_rows(problem, NO_SPARK) == expected


def reported(problem: Exception, monkeypatch: pytest.MonkeyPatch) -> str | None:
    def run(job: object) -> Any:
        raise problem

    monkeypatch.setattr(executing, "JOBS", {"verify_index": run})
    pipeline, table = PipelineSpec((), "SELECT 1", {"id": "long"}), TableSpec("t", "file:///t", "file:///e", ("id",))
    spec = JobSpec("r", "verify_index", table, pipeline=pipeline)
    return executing.execute(spec, spark=NO_SPARK, secrets={}).error


@pytest.mark.parametrize(
    "problem",
    [
        ValueError("invalid literal for int() with base 10: 'Ann'"),
        KeyError("Ann"),
        PySparkValueError("'Ann' does not fit"),
        ArrowInvalid("'Ann' is no number"),
        RuntimeError("Ann"),
    ],
)
def test_what_python_says_of_a_value_is_in_the_log_alone(
    problem: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert reported(problem, monkeypatch) == f"{type(problem).__name__}: {IN_LOG}"
    assert caplog.text.count("Traceback (most recent call last)") == 1
    assert "Ann" in caplog.text


@pytest.mark.parametrize(
    "problem",
    [
        JobError("Bootstrap it."),
        RowsNotMet("Bootstrap it."),
        OSError("no such file"),
        ArrowMemoryError("malloc of size 64 failed"),
    ],
)
def test_what_lakehub_says_and_what_is_said_of_files_and_memory_is_told(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reported(problem, monkeypatch) == f"{type(problem).__name__}: {problem}"
