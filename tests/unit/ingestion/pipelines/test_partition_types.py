"""Inputs of whose partitions Hudi reads other values than their files hold, by the properties and schemas that it writes for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from ingestion.spark.etl.checks.partition_types import partition_fields, problem_in
from ingestion.spark.tables.timeline import Timeline

TIMES: Mapping[str, object] = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL_TIMES: Mapping[str, object] = {"type": "long", "logicalType": "local-timestamp-micros"}


def problem(type_: object, fields: str = "at", generator: str = "SIMPLE") -> str:
    columns = [{"name": "id", "type": "int"}, {"name": "At", "type": ["null", type_]}]
    schema = json.dumps({"type": "record", "name": "trips", "fields": columns})
    return problem_in({"hoodie.table.partition.fields": fields, "hoodie.table.keygenerator.type": generator}, schema)


@pytest.mark.parametrize("type_", [TIMES, LOCAL_TIMES])
def test_times_are_read_as_null_or_not_at_all(type_: object) -> None:
    assert problem(type_).startswith("is partitioned by `at`, a timestamp")
    assert problem(type_, "id,at", "COMPLEX").startswith("is partitioned by `at`, a timestamp")


@pytest.mark.parametrize(("fields", "generator"), [("at", "TIMESTAMP"), ("id:simple,at:timestamp", "CUSTOM")])
def test_numbers_whose_folders_are_named_by_times_are_read_as_others(fields: str, generator: str) -> None:
    assert problem("long", fields, generator).startswith("is partitioned by `at`, a long whose folders are named by a time")  # fmt: skip
    assert not problem("string", fields, generator)


@pytest.mark.parametrize("type_", ["string", "long", {"type": "int", "logicalType": "date"}])
def test_others_are_read_as_they_are(type_: object) -> None:
    assert not problem(type_)
    assert not problem(type_, "at:simple", "CUSTOM")
    assert not problem(TIMES, fields="")


def test_a_type_that_only_spark_can_name_hides_no_other() -> None:
    columns = [{"name": "id", "type": {"type": "long", "logicalType": "time-micros"}}, {"name": "at", "type": TIMES}]
    schema = json.dumps({"type": "record", "name": "trips", "fields": columns})
    assert problem_in({"hoodie.table.partition.fields": "at"}, schema).startswith("is partitioned by `at`, a timestamp")
    assert not problem_in({"hoodie.table.partition.fields": "id"}, schema)


def test_without_a_schema_nothing_is_known() -> None:
    assert not problem_in({"hoodie.table.partition.fields": "at"}, "")


def test_colons_that_java_escapes_are_read_without_the_backslash(tmp_path: Path) -> None:
    (tmp_path / ".hoodie").mkdir()
    text = "#Mon Nov 30\nhoodie.table.partition.fields=id\\:simple,at\\:timestamp\nhoodie.table.checksum=a\\=\\\\b\n"
    (tmp_path / ".hoodie" / "hoodie.properties").write_text(text)
    properties = Timeline(tmp_path.as_uri()).properties
    assert partition_fields(properties) == {"id": "simple", "at": "timestamp"}
    assert properties["hoodie.table.checksum"] == r"a=\b"
