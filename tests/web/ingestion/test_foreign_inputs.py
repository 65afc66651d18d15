"""Inputs of a pipeline that Lakehub only monitors: tables of a lake that others write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from ingestion import tasks
from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.lake import readers
from ingestion.models import Commit, Finding, JobKind, Pipeline, TouchedPartition
from ingestion.pipelines.registering import register_pipeline
from ingestion.pipelines.specs import pipeline_spec_of
from ingestion.runs import feed_schedule
from ingestion.runs.inputs import inputs_of_run
from ingestion.runs.modelled_tables.progress import progress_of
from lakehub.catalog.datasets.connection_change import change_connection, check_connection_change
from lakehub.catalog.datasets.offboarding import restore_dataset
from lakehub.catalog.models import Connection, Dataset, DatasetCopy, Feed, LineageEdge
from lakehub.catalog.onboarding.redefine import prepare_change
from lakehub.catalog.storages.hudi import HudiStorage
from lakehub.kernel.errors import Refused
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


def test_a_commit_that_cannot_be_read_keeps_no_later_one_from_being_seen(
    airlines: DatasetCopy, caplog: pytest.LogCaptureFixture
) -> None:
    """A run that follows commits begins, and says itself what is wrong with the table."""
    copy = given.copy_of(register_pipeline({**TEXTS, "pipeline.yaml": PIPELINE.replace("every: 30m", "every: commit")}, actor="ana", now=NOW).dataset)  # fmt: skip
    given.run(copy, JobKind.BOOTSTRAP, started_at=NOW, ended_at=NOW)
    tasks.record_lake_commits()
    damaged, later = (f"{NOW + minutes * MINUTE:%Y%m%d%H%M%S}000" for minutes in (1, 2))
    lake.commit(airlines, damaged, {"": (0, 2, 0)})
    (file,) = (properties_of(airlines).parent / "timeline").glob(f"{damaged}_*")
    content = file.read_bytes()
    file.write_bytes(b"no Avro")
    lake.commit(airlines, later, {"": (0, 2, 0)})
    tasks.record_lake_commits()
    known = Commit.objects.filter(copy=airlines).order_by("instant").values_list("instant", flat=True)
    assert [*known] == ["20261117100000000", later]
    assert f"The file {file.as_uri()} cannot be read: " in caplog.text
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW + 3 * MINUTE)] == ["incremental"]
    file.write_bytes(content)
    tasks.record_lake_commits()
    assert [*known.all()] == ["20261117100000000", damaged, later]


def test_commits_of_tables_that_no_pipeline_reads_are_not_recorded(airlines: DatasetCopy) -> None:
    tasks.record_lake_commits()
    assert not Commit.objects.filter(copy=airlines).exists()


def test_what_another_lakehub_has_left_in_its_commits_is_no_fact_of_this_one(airlines: DatasetCopy) -> None:
    """Its findings would stay open here, and what this one cannot read would keep all its commits from being recorded."""
    register_pipeline(TEXTS, actor="ana", now=NOW)
    run = lake.told_by("x", read=9, applied=3, kind="bootstrap", schema={"conflicts": [["name", "int", "string"]]})
    lake.commit(airlines, "20261117100100000", {"": (1, 0, 0)}, run=run)
    lake.commit(airlines, "20261117100200000", {"": (1, 0, 0)}, run={**run, "counts": {"of_another_version": 1}})
    tasks.record_lake_commits()
    assert Commit.objects.filter(copy=airlines, read=None).count() == 3
    assert not Finding.objects.exists()


def test_partitions_of_the_future_are_for_their_writer_to_have(airlines: DatasetCopy) -> None:
    register_pipeline(TEXTS, actor="ana", now=NOW)
    Dataset.objects.filter(name="airlines").update(partition_column="day", grain="day")
    lake.commit(airlines := DatasetCopy.objects.get(pk=airlines.pk), "20261117100100000", {"2031-01-01": (1, 0, 0)})
    tasks.record_lake_commits()
    assert TouchedPartition.objects.filter(copy=airlines, start__year=2031).exists()
    assert not Finding.objects.exists()


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


@pytest.mark.parametrize("folder", ["airlines_v2", "link", ".//airlines_v2"])
def test_the_table_of_the_pipeline_itself_is_no_input(airlines: DatasetCopy, tmp_path: Path, folder: str) -> None:
    """By whatever name it is monitored."""
    (tmp_path / "link").symlink_to(tmp_path / "airlines_v2")
    made = given.copy_of(register_pipeline(TEXTS, actor="ana", now=NOW).dataset)
    DatasetCopy.objects.filter(pk=made.pk).update(uri=f"{tmp_path.as_uri()}/{folder}")
    assert problems() == ["pipeline.yaml: The input `airlines` in dc1 is the table that the pipeline itself makes."]


AGAIN = {
    "table.sql": "CREATE TABLE again (carrier STRING, name STRING)\n",
    "pipeline.yaml": "name: again\nteam: flight-ops\ntier: 2\nrecord_key: [carrier]\nsource: theirs\n",
    "transform.sql": "SELECT t.airline AS carrier, max(t.day) AS name FROM <SRC> t GROUP BY t.airline\n",
}
"""Of what `flights-by-day` makes, by the name that a monitored dataset has for it."""
READS_AGAIN = {**TEXTS, "pipeline.yaml": PIPELINE.replace("airlines: airlines", "airlines: again")}


@pytest.fixture
def theirs(airlines: DatasetCopy, tmp_path: Path) -> DatasetCopy:
    """A monitored dataset in the folder of the table that `flights-by-day` makes."""
    made = given.copy_of(register_pipeline(TEXTS, actor="ana", now=NOW).dataset)
    DatasetCopy.objects.filter(pk=made.pk).update(uri=f"{tmp_path.as_uri()}/days")
    (tmp_path / "link").symlink_to(tmp_path / "days")
    dataset = given.dataset("theirs", copies=(), by_day=False, ingested=False, columns=columns("day", "airline", "flights", "delay"))  # fmt: skip
    copy = DatasetCopy.objects.create(dataset=dataset, data_center=airlines.data_center, connection=airlines.connection, object="days")  # fmt: skip
    lake.commit(copy, "20261117100000000", {"": (16, 0, 0)})
    return copy


@pytest.mark.parametrize("folder", ["days", "link", ".//days"])
def test_a_loop_through_another_name_of_one_folder_is_refused(theirs: DatasetCopy, tmp_path: Path, folder: str) -> None:
    """`flights-by-day` would be made from `again`, which is made from its own table."""
    DatasetCopy.objects.filter(pk=theirs.pk).update(object=folder)
    register_pipeline(AGAIN, actor="ana", now=NOW)
    with pytest.raises(BadPipeline) as refused:
        register_pipeline(READS_AGAIN, actor="ana", now=NOW)
    assert str(refused.value) == (
        f"pipeline.yaml: The input `airlines` is made from `flights-by-day` itself, by way of lineage, and of the folder {tmp_path}/days, "
        "which `flights-by-day` and `theirs` both name: a pipeline cannot read what is made from its target. "
        "Remove the input, or have it made without what comes from `flights-by-day`."
    )
    assert Pipeline.objects.get(dataset__name="flights-by-day").files == TEXTS
    assert not LineageEdge.objects.filter(upstream__name="again").exists()


def test_so_is_one_that_the_pipeline_closes_which_reads_the_other_name(theirs: DatasetCopy) -> None:
    first = {
        **AGAIN,
        "pipeline.yaml": AGAIN["pipeline.yaml"].replace("source: theirs", "source: airlines"),
        "transform.sql": "SELECT a.carrier, a.name FROM <SRC> a\n",
    }
    register_pipeline(first, actor="ana", now=NOW)
    register_pipeline(READS_AGAIN, actor="ana", now=NOW)
    with pytest.raises(BadPipeline, match="The input `theirs` is made from `again` itself, by way of lineage, and of the folder"):  # fmt: skip
        register_pipeline(AGAIN, actor="ana", now=NOW)
    assert Pipeline.objects.get(dataset__name="again").files == first


@pytest.mark.parametrize(("root", "folder"), [("", "airlines_v2"), ("file://host/lake", "days")])
def test_another_folder_makes_no_loop(theirs: DatasetCopy, tmp_path: Path, root: str, folder: str) -> None:
    """Of a connection whose URL leads nowhere nothing is read, and so nothing made."""
    register_pipeline(AGAIN, actor="ana", now=NOW)
    moved = given.connection("moved", url=root or tmp_path.as_uri(), plugin="hudi")
    DatasetCopy.objects.filter(pk=theirs.pk).update(connection=moved, object=folder)
    assert not register_pipeline(READS_AGAIN, actor="ana", now=NOW).is_new


def move(dataset: Dataset, table: str) -> None:
    prepare_change(Dataset.objects.get(pk=dataset.pk), {"table": table}).write(actor="ana", now=NOW)


@pytest.fixture
def beside(theirs: DatasetCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DatasetCopy:
    """`theirs` in the folder `lake/days`, which nothing of Lakehub makes: `again` reads it, and `flights-by-day` reads `again`. Its rows are in one file."""
    monkeypatch.setattr(HudiStorage, "_slices", lambda self, table: [*(self._root / table).glob("*.parquet")])
    rows = pa.table({name: ["a"] for name in ("day", "airline", "flights", "delay", "id")})
    for folder in ("lake/days", "lake/other", "days"):
        copy = DatasetCopy(dataset=theirs.dataset, data_center=theirs.data_center, connection=theirs.connection, object=folder)  # fmt: skip
        lake.commit(copy, "20261117100000000", {"": (16, 0, 0)})
        pq.write_table(rows, tmp_path / folder / "rows.parquet")
    DatasetCopy.objects.filter(pk=theirs.pk).update(connection=None, object="")
    given.feed(theirs.dataset, connection=theirs.connection, object="lake/days", cursor_column="")
    register_pipeline(AGAIN, actor="ana", now=NOW)
    register_pipeline(READS_AGAIN, actor="ana", now=NOW)
    return DatasetCopy.objects.get(pk=theirs.pk)


@pytest.mark.parametrize("folder", ["days", "link"])
def test_a_monitored_table_does_not_move_to_where_what_is_made_from_it_lies(
    beside: DatasetCopy, folder: str, tmp_path: Path
) -> None:
    """Each pipeline was registered while there was no loop."""
    with pytest.raises(Refused) as refused:
        move(beside.dataset, folder)
    assert refused.value.fields == {
        "table": f"`theirs` would lie in {tmp_path}/days, as `flights-by-day` does, which is made from `theirs`: a pipeline cannot read what it makes. "
        "Name another table, or first change the pipeline so that it no longer reads `theirs`."
    }  # fmt: skip
    assert beside.dataset.feed.object == "lake/days"
    move(beside.dataset, "lake/other")
    moved = DatasetCopy.objects.get(pk=beside.pk)
    assert moved.source == (beside.dataset.feed.connection, "lake/other")


def test_nor_by_another_url_of_its_connection(beside: DatasetCopy, tmp_path: Path) -> None:
    feed, root = beside.dataset.feed, given.connection("root", url=(tmp_path / "lake").as_uri(), plugin="hudi")
    Feed.objects.filter(pk=feed.pk).update(connection=root, object="days")
    for try_it in (check_connection_change, change_connection):
        with pytest.raises(Refused) as refused:
            try_it(root, tmp_path.as_uri(), actor="ana", now=NOW, by_operator=True)
        assert f"`theirs` would lie in {tmp_path}/days, as `flights-by-day` does" in refused.value.fields["url"]
    assert Connection.objects.get(pk=root.pk).url == root.url
    (tmp_path / "elsewhere").symlink_to(tmp_path / "lake")
    change_connection(root, (tmp_path / "elsewhere").as_uri(), actor="ana", now=NOW, by_operator=True)


def refused_restore(dataset: Dataset) -> str:
    with pytest.raises(Refused) as refused:
        restore_dataset(Dataset.objects.get(pk=dataset.pk), actor="ana", now=NOW)
    assert Dataset.objects.get(pk=dataset.pk).offboarded_at is not None
    return str(refused.value)


def test_nor_is_it_restored_where_what_was_made_from_it_meanwhile_lies(theirs: DatasetCopy, tmp_path: Path) -> None:
    register_pipeline(AGAIN, actor="ana", now=NOW)
    Dataset.objects.filter(pk=theirs.dataset_id).update(offboarded_at=NOW)
    register_pipeline(READS_AGAIN, actor="ana", now=NOW)
    assert f"`theirs` would lie in {tmp_path}/days, as `flights-by-day` does" in refused_restore(theirs.dataset)
    with pytest.raises(CommandError, match="a pipeline cannot read what it makes"):
        call_command("restore", "theirs")
    register_pipeline(TEXTS, actor="ana", now=NOW)
    restore_dataset(Dataset.objects.get(pk=theirs.dataset_id), actor="ana", now=NOW)


def test_nor_is_the_table_of_a_pipeline_that_has_another_name_by_now(beside: DatasetCopy, tmp_path: Path) -> None:
    made = Dataset.objects.get(name="flights-by-day")
    Dataset.objects.filter(pk=made.pk).update(offboarded_at=NOW)
    move(beside.dataset, "days")
    assert f"`theirs` would lie in {tmp_path}/days, as `flights-by-day` does" in refused_restore(made)
    move(beside.dataset, "lake/days")
    restore_dataset(made, actor="ana", now=NOW)
