"""A run of a pipeline as OpenLineage tells it, by the schemas of its specification."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ingestion.domain.pipelines.lineage.column_lineage import ColumnLineage
from ingestion.domain.pipelines.lineage.openlineage import (
    FACETS,
    MAX_FIELDS,
    MAX_USED,
    End,
    EventTable,
    PipelineRun,
    run_events,
)
from ingestion.domain.pipelines.lineage.uses import InputColumn, Use
from tests.openlineage_spec import problems_of
from tests.unit.ingestion.pipelines.test_column_lineage import of_pipeline

FLIGHTS = EventTable("file", "/lake/dc1/flights", "flights", {"day": "string", "delay": "integer"})
AIRLINES = EventTable("s3://lake", "airlines", "carriers", {})
RUN = PipelineRun(
    run_id="0b3c5a4e-7a2f-4f0e-9a53-1f6f5f0d9a11",
    namespace="lakehub",
    job="flights-by-day.dc1",
    started_at=datetime(2026, 11, 17, 12, tzinfo=UTC),
    ended_at=datetime(2026, 11, 17, 12, 5, tzinfo=UTC),
    end=End.COMPLETE,
    inputs={"flights": FLIGHTS, "airlines": AIRLINES},
    output=EventTable("file", "/lake/dc1/flights-by-day", "flights-by-day", {"day": "string", "delay": "decimal"}),
    sql="SELECT 1",
    rows=42,
    lineage=of_pipeline(),
)


def events(run: PipelineRun = RUN) -> tuple[dict[str, Any], dict[str, Any]]:
    start, end = run_events(run, producer="urn:lakehub:0.1.0")
    return json.loads(json.dumps(start)), json.loads(json.dumps(end))


@pytest.mark.parametrize("end", End)
def test_events_are_as_the_specification_says(end: End) -> None:
    for event in events(replace(RUN, end=end, error="It failed." if end == End.FAIL else "")):
        assert problems_of(event) == []


def test_the_check_of_events_finds_what_is_wrong() -> None:
    _, good = events()
    for change in (
        lambda event: event["run"].pop("runId"),
        lambda event: event.update(eventType="DONE"),
        lambda event: event["outputs"][0].pop("namespace"),
        lambda event: event["outputs"][0]["facets"]["columnLineage"].pop("fields"),
        lambda event: event["outputs"][0]["facets"]["columnLineage"]["fields"]["delay"]["inputFields"][0].pop("field"),
        lambda event: event["outputs"][0]["outputFacets"]["outputStatistics"].update(rowCount="many"),
        lambda event: event["job"]["facets"]["jobType"].pop("_producer"),
    ):
        bad = copy.deepcopy(good)
        change(bad)
        assert problems_of(bad), change


def test_each_facet_that_is_told_is_of_the_version_that_was_looked_up() -> None:
    _, complete = events()
    _, failed = events(replace(RUN, end=End.FAIL, error="It failed."))
    of_output = complete["outputs"][0]
    known = of_output["facets"] | of_output["outputFacets"] | complete["job"]["facets"] | failed["run"]["facets"]
    assert known.keys() == FACETS.keys()


def test_a_run_is_told_by_its_start_and_its_end() -> None:
    start, end = events()
    assert [(event["eventType"], event["eventTime"]) for event in (start, end)] == [
        ("START", "2026-11-17T12:00:00+00:00"),
        ("COMPLETE", "2026-11-17T12:05:00+00:00"),
    ]
    for event in (start, end):
        assert event["run"]["runId"] == RUN.run_id
        assert (event["job"]["namespace"], event["job"]["name"]) == ("lakehub", "flights-by-day.dc1")
        assert [(each["namespace"], each["name"]) for each in event["inputs"]] == [("file", "/lake/dc1/flights"), ("s3://lake", "airlines")]  # fmt: skip
        assert [each["name"] for each in event["outputs"]] == ["/lake/dc1/flights-by-day"]
    assert end["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 42
    assert "columnLineage" not in start["outputs"][0]["facets"]


def test_columns_are_told_with_the_tables_that_they_are_of() -> None:
    facet = events()[1]["outputs"][0]["facets"]["columnLineage"]
    delay = {"namespace": "file", "name": "/lake/dc1/flights", "field": "delay", "transformations": [{"type": "DIRECT", "subtype": "AGGREGATION"}]}  # fmt: skip
    assert facet["fields"]["delay"] == {"inputFields": [delay]}
    assert facet["fields"]["flights"] == {"inputFields": []}
    joined = {each["field"]: each for each in facet["dataset"] if each["namespace"] == "s3://lake"}
    assert joined["carrier"]["transformations"] == [{"type": "INDIRECT", "subtype": "JOIN"}]


def test_what_is_not_traced_is_told_of_tables_only() -> None:
    untraced = replace(RUN, lineage=ColumnLineage({"day": None, "delay": None}, problem="It is made by transformers."))
    _, end = events(untraced)
    assert "columnLineage" not in end["outputs"][0]["facets"]
    assert len(end["inputs"]) == 2
    half = replace(RUN, lineage=replace(RUN.lineage, columns={**RUN.lineage.columns, "delay": None}))
    assert "delay" not in events(half)[1]["outputs"][0]["facets"]["columnLineage"]["fields"]


def test_a_failure_has_its_words_and_no_count_of_rows() -> None:
    _, end = events(replace(RUN, end=End.FAIL, error="It failed."))
    assert end["run"]["facets"]["errorMessage"]["message"] == "It failed."
    assert end["outputs"][0]["outputFacets"] == {}


def test_an_event_is_bounded() -> None:
    uses = {InputColumn("flights", f"c{number}"): frozenset(Use) for number in range(MAX_USED + 1)}
    wide = ColumnLineage({f"x{number}": uses for number in range(MAX_FIELDS + 1)}, uses)
    facet = events(replace(RUN, lineage=wide))[1]["outputs"][0]["facets"]["columnLineage"]
    assert (len(facet["fields"]), len(facet["fields"]["x0"]["inputFields"]), len(facet["dataset"])) == (MAX_FIELDS, MAX_USED, MAX_USED)  # fmt: skip


def test_columns_of_an_input_that_is_gone_are_left_out() -> None:
    facet = events(replace(RUN, inputs={"flights": FLIGHTS}))[1]["outputs"][0]["facets"]["columnLineage"]
    assert facet["fields"]["airline"] == {"inputFields": []}
    assert {each["name"] for each in facet["dataset"]} == {"/lake/dc1/flights"}
