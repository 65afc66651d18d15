"""Which partitions a change reaches, by the folders of the files that it wrote."""

from __future__ import annotations

from typing import Any

import pytest

from ingestion.domain.pipelines.affected.affected_keys import affected_partitions, partition_source
from ingestion.domain.pipelines.affected.query_shape import QueryShape
from ingestion.domain.pipelines.definition import PipelineDefinition
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.spark.etl.overwriting import has_one_path
from ingestion.spark.etl.reach import values_in_paths
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM, problems

OVERWRITES = PIPELINE + "operation: insert_overwrite\n"


@pytest.mark.parametrize(
    ("folders", "type_", "values"),
    [
        (["day=2013-01-01", "day=2013-01-02"], "string", {"2013-01-01", "2013-01-02"}),
        (["Day=2013-01-01"], "string", {"2013-01-01"}),
        (["day=05", "day=-7"], "int", {5, -7}),
        ([], "string", set()),
        (["day=2013%2F01"], "string", None),
        (["day=__HIVE_DEFAULT_PARTITION__"], "string", None),
        (["day=1e3"], "long", None),
        (["day=a/hour=b"], "string", None),
        (["hour=2013-01-01"], "string", None),
        (["2013-01-01"], "string", None),
        ([""], "string", None),
    ],
)
def test_folders_say_the_values_of_the_partition_column_where_that_is_certain(
    folders: list[str], type_: str, values: set[Any] | None
) -> None:
    paths = [f"{folder}/{name}" if folder else name for folder in folders for name in ("a.parquet", "b.parquet")]
    assert values_in_paths(paths, "day", type_) == values


@pytest.mark.parametrize("name", ["2013-01-01", "2013-01-01T05", "-7", "Zürich (old town)", "O'Hare", "a.b"])
def test_a_plain_name_has_one_path(name: str) -> None:
    assert has_one_path(name)


@pytest.mark.parametrize(
    "name",
    ["", "a/b", "a\\b", "100%", "x=y", "12:30", "..", ".hidden", "__HIVE_DEFAULT_PARTITION__", " a", "a ", "a\nb"],
)
def test_what_a_path_may_have_otherwise_is_no_plain_name(name: str) -> None:
    assert not has_one_path(name)


def shape_of(transform: str, pipeline: str = OVERWRITES) -> tuple[QueryShape, PipelineDefinition]:
    made = read_pipeline({"table.sql": TABLE, "pipeline.yaml": pipeline, "transform.sql": transform})
    return QueryShape.of(made.transform), made


def test_a_date_in_the_key_is_refused_where_partitions_are_made_anew() -> None:
    (problem,) = problems(pipeline=OVERWRITES, table=TABLE.replace("day STRING", "day DATE"))
    assert "`record_key` has `day`, a date" in problem


def test_only_a_column_as_it_stands_says_the_partition() -> None:
    shape, made = shape_of(TRANSFORM)
    assert [partition_source(shape, made, name) for name in ("flights", "airlines")] == ["day", ""]
    computed, made = shape_of(TRANSFORM.replace("SELECT f.day,", "SELECT substr(f.day, 1, 7) AS day,").replace("GROUP BY f.day", "GROUP BY substr(f.day, 1, 7)"))  # fmt: skip
    assert partition_source(computed, made, "flights") == ""


def test_of_an_input_that_is_read_twice_a_change_may_reach_the_other_place() -> None:
    twice = TRANSFORM.replace("JOIN airlines a", "JOIN flights g ON f.carrier = g.carrier JOIN airlines a")
    shape, made = shape_of(twice)
    assert partition_source(shape, made, "flights") == ""
    assert affected_partitions(shape, made, "flights").count("UNION ALL") == 1


def test_rows_that_are_replaced_by_key_need_no_partitions() -> None:
    shape, made = shape_of(TRANSFORM, PIPELINE)
    assert (affected_partitions(shape, made, "flights"), partition_source(shape, made, "flights")) == ("", "")
