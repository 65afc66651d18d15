"""Inputs of a pipeline that Lakehub only monitors: tables of a lake that others write."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestion import tasks
from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.lake import readers
from ingestion.models import Commit, JobKind, Pipeline
from ingestion.pipelines.registering import register_pipeline
from ingestion.pipelines.specs import pipeline_spec_of
from ingestion.runs import feed_schedule
from ingestion.runs.inputs import inputs_of_run
from ingestion.runs.modelled_tables.progress import progress_of
from lakehub.catalog.models import Dataset, DatasetCopy
from tests import factories as given
from tests.factories import MINUTE, NOW
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM
from tests.web.ingestion import hudi_timeline as lake

TEXTS = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM}
pytestmark = pytest.mark.django_db


def columns(*names: str) -> list[dict[str, object]]:
    return [{"name": name, "type": "string", "nullable": True} for name in names]


@pytest.fixture
def airlines(tmp_path: Path) -> DatasetCopy:
    """Monitored in dc1, where others have written it once; `flights` is Lakehub's own."""
    given.dataset("flights", columns=columns("id", "day", "carrier", "delay"))
    connection = given.connection("theirs", url=tmp_path.as_uri(), plugin="hudi")
    dataset = given.dataset("airlines", copies=(), by_day=False, ingested=False, columns=columns("carrier", "name"))
    copy = DatasetCopy.objects.create(dataset=dataset, data_center=given.data_center("dc1"), connection=connection, object="airlines_v2")  # fmt: skip
    lake.commit(copy, "20261117100000000", {"": (16, 0, 0)})
    return copy


def properties_of(copy: DatasetCopy) -> Path:
    assert copy.source is not None
    return Path(copy.source[0].url.removeprefix("file://")) / copy.object / ".hoodie" / "hoodie.properties"


def problems() -> list[str]:
    with pytest.raises(BadPipeline) as refused:
        register_pipeline(TEXTS, actor="ana", now=NOW)
    return [str(problem) for problem in refused.value.problems]


def test_its_jobs_read_it_where_others_write_it(airlines: DatasetCopy, tmp_path: Path) -> None:
    copy = given.copy_of(register_pipeline(TEXTS, actor="ana", now=NOW).dataset)
    assert {each.name: each.uri for each in pipeline_spec_of(copy).inputs} == {"flights": "file:///lake/dc1/flights", "airlines": f"{tmp_path.as_uri()}/airlines_v2"}  # fmt: skip
    (run,) = feed_schedule.request_due_runs(now=NOW)
    assert {each.dataset for each in inputs_of_run(run, now=NOW)} == {"flights", "airlines"}
    Dataset.objects.filter(name="airlines").update(offboarded_at=NOW)
    assert "The lake has no dataset `airlines`" in problems()[0]


def test_what_others_commit_waits_to_be_read_and_begins_a_run(airlines: DatasetCopy) -> None:
    copy = given.copy_of(register_pipeline({**TEXTS, "pipeline.yaml": PIPELINE.replace("every: 30m", "every: commit")}, actor="ana", now=NOW).dataset)  # fmt: skip
    given.run(copy, JobKind.BOOTSTRAP, started_at=NOW, ended_at=NOW)
    readers.note_position(airlines, "pipeline flights-by-day", "20261117100000500", actor="x", now=NOW)
    assert feed_schedule.request_due_runs(now=NOW + MINUTE) == []
    instant = f"{NOW + MINUTE:%Y%m%d%H%M%S}000"
    lake.commit(airlines, instant, {"": (0, 2, 0)})
    tasks.record_lake_commits()
    assert [*Commit.objects.filter(copy=airlines).values_list("instant", flat=True).order_by("instant")] == ["20261117100000000", instant]  # fmt: skip
    (progress,) = progress_of([copy], now=NOW + 2 * MINUTE)
    assert {each.input.name: each.pending for each in progress.inputs}["airlines"] == 1
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW + 3 * MINUTE)] == ["incremental"]


def test_commits_of_tables_that_no_pipeline_reads_are_not_recorded(airlines: DatasetCopy) -> None:
    tasks.record_lake_commits()
    assert not Commit.objects.filter(copy=airlines).exists()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("hoodie.table.version=6", "has the table version 6, and a pipeline reads the versions 8 and 9: let its writer upgrade it."),
        ("hoodie.table.version=9\nhoodie.populate.meta.fields=false", "keeps no `_hoodie_` columns in its rows"),
        ("", "cannot be read: "),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_followed_is_refused_when_it_is_registered(
    airlines: DatasetCopy, lines: str, expected: str
) -> None:
    properties_of(airlines).write_text(lines + "\n" if lines else "")
    (problem,) = problems()
    assert problem.startswith("pipeline.yaml: The input `airlines` in dc1 ")
    assert expected in problem
    assert not Pipeline.objects.exists()


def test_a_table_that_is_gone_and_one_that_is_no_table_of_a_lake_are_refused(airlines: DatasetCopy) -> None:
    properties_of(airlines).unlink()
    assert "cannot be read: " in problems()[0]
    connection = given.connection("ops")
    DatasetCopy.objects.filter(pk=airlines.pk).update(connection=connection)
    assert "The lake has no dataset `airlines`." in problems()[0]


def test_the_table_of_the_pipeline_itself_is_no_input(airlines: DatasetCopy, tmp_path: Path) -> None:
    """By whatever name it is monitored."""
    made = given.copy_of(register_pipeline(TEXTS, actor="ana", now=NOW).dataset)
    DatasetCopy.objects.filter(pk=made.pk).update(uri=f"{tmp_path.as_uri()}/airlines_v2")
    assert problems() == ["pipeline.yaml: The input `airlines` in dc1 is the table that the pipeline itself makes."]
