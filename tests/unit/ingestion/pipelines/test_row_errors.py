"""What is told of an error of Spark in a job of a pipeline: nothing that may be a value of a row."""

from __future__ import annotations

import pytest
from pyarrow import ArrowInvalid

from ingestion.spark.etl.row_errors import Thrown, bug_without_rows, describe

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
MALFORMED = Thrown("org.apache.spark.SparkException", "Malformed records: [Ann]", "MALFORMED_RECORD_IN_PARSING")  # fmt: skip


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ((ABORTED, WRITING, CAST), "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] at `CAST(p.name AS INT)` in the SELECT. "),
        ((ABORTED, WRITING, MALFORMED, Thrown("a.JsonParseException", "Unrecognized token Ann")), "a.JsonParseException: [MALFORMED_RECORD_IN_PARSING]. "),
        ((ABORTED, WRITING, Thrown("java.lang.RuntimeException", "x Ann")), "java.lang.RuntimeException: "),
        ((ABORTED, Thrown("java.io.UnsupportedEncodingException", "Ann")), "java.io.UnsupportedEncodingException: "),
        ((Thrown("java.io.IOException", "java.io.IOException: No space for Ann"),), "java.io.IOException: "),
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
