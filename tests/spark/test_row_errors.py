"""A SELECT that cannot be computed of a row: everybody who is signed in sees that it failed and why, and nobody a value of the row."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.report import JobReport
from ingestion.spark.etl import few_rows, views
from ingestion.spark.file_groups.many_rows import tasks
from tests.spark.pipeline_lake import InputTable, PipelineLake, pipeline_of

TABLES = {"people": InputTable({"id": "long", "name": "string", "age": "int"}, ("id",))}
SECRETS = ("Annkathrin", "4711")
CONDITIONS = {
    "raise_error(concat('x ', p.name))": "java.lang.RuntimeException",
    "assert_true(p.age < 0, p.name)": "java.lang.RuntimeException",
    "from_json(p.name, 'a int', map('mode', 'FAILFAST')).a": "com.fasterxml.jackson.core.JsonParseException",
    "from_csv(p.name, 'a int', map('mode', 'FAILFAST')).a": "java.lang.NumberFormatException",
    "to_number(p.name, '999')": "[INVALID_FORMAT.MISMATCH_INPUT]",
    "to_binary(p.name, 'hex')": "[CONVERSION_INVALID_INPUT]",
    "str_to_map(p.name || ',' || p.name)['x']": "[DUPLICATED_MAP_KEY]",
    "from_utc_timestamp(timestamp'2013-01-01', p.name)": "java.time.zone.ZoneRulesException",
    "p.name LIKE p.name || '\\\\'": "[INVALID_FORMAT.ESC_AT_THE_END]",
    "sequence(1, p.age, -1)[0]": "java.lang.IllegalArgumentException",
    "decode(encode(p.name, p.name), 'utf-8')": "java.io.UnsupportedEncodingException",
}  # fmt: skip
ANSI_CONDITIONS = {
    "CAST(p.name AS INT)": "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] at `CAST(p.name AS INT)` in the SELECT",
    "p.age / (p.age - p.age)": "[DIVIDE_BY_ZERO]",
    "to_date(p.name, 'yyyy-MM-dd')": "[CANNOT_PARSE_TIMESTAMP]",
    "array(1)[p.age]": "[INVALID_ARRAY_INDEX]",
    "CAST(2147483647 AS INT) + p.age": "[ARITHMETIC_OVERFLOW]",
}


@pytest.fixture
def people(spark: SparkSession, tmp_path: Path) -> PipelineLake:
    lake = PipelineLake(spark, tmp_path, TABLES, {})
    lake.put("people", [(1, "Annkathrin", 4711)])
    return lake


def loaded(lake: PipelineLake, value: str) -> JobReport:
    """Of a table with the column `v`, which is `value`."""
    columns = {"id": "long", "v": "string"}
    lake.pipelines = {"wide": pipeline_of(f"SELECT p.id, {value} AS v FROM people p", columns, ("id",), "people")}
    try:
        return lake.run("bootstrap")
    finally:
        shutil.rmtree(lake.folder / "lake" / "wide", ignore_errors=True)


@contextmanager
def ansi(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As an operator's Spark may have it."""
    setting = "spark.sql.ansi.enabled"
    monkeypatch.setattr(views, "_OF_SESSION", (*views._OF_SESSION, setting))
    spark.conf.set(setting, "true")
    try:
        yield
    finally:
        spark.conf.set(setting, "false")


def check_errors(lake: PipelineLake, conditions: dict[str, str]) -> None:
    for value, condition in conditions.items():
        error = loaded(lake, value).error or ""
        assert condition in error, (value, error)
        assert "in the log of the worker" in error, (value, error)
        assert not any(secret in error for secret in SECRETS), (value, error)


def test_an_error_of_a_row_has_no_value_of_it_and_the_log_has(
    people: PipelineLake, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        check_errors(people, CONDITIONS)
    assert SECRETS[0] in caplog.text


def test_so_it_is_where_spark_refuses_what_it_else_makes_null_of_and_the_place_is_named(
    people: PipelineLake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ansi(spark, monkeypatch):
        check_errors(people, ANSI_CONDITIONS)


def test_what_is_wrong_with_the_select_itself_is_told_in_full(people: PipelineLake) -> None:
    error = loaded(people, "p.nosuch").error or ""
    assert "[UNRESOLVED_COLUMN.WITH_SUGGESTION]" in error
    assert "`p`.`nosuch` cannot be resolved" in error


def test_of_an_error_of_a_task_in_python_the_class_is_told(
    people: PipelineLake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(what: object) -> Callable[[Iterable[Any]], Iterator[Any]]:
        def run(batches: Iterable[Any]) -> Iterator[Any]:
            yield from (int(batch["name"][0].as_py()) for batch in batches)

        return run

    columns = {"id": "long", "name": "string"}
    people.pipelines = {"wide": pipeline_of("SELECT p.id, p.name FROM people p", columns, ("id",), "people")}
    assert people.run("bootstrap").error is None
    people.put("people", [(1, "Annkathrin", 12)])
    assert people.run("incremental").error is None
    people.put("people", [(1, "Annkathrina", 12)])
    monkeypatch.setattr(few_rows, "MAX_ROWS", 0)
    monkeypatch.setattr(tasks, "task_of", failing)
    report = people.run("incremental")
    assert report.error == "ValueError: The message may contain values of rows, so it is only in the log of the worker."
    assert "invalid literal for int() with base 10: 'Annkathrina'" in caplog.text
