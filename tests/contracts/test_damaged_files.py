"""A file or a timeline that is damaged is an error that names the file, the fault and what to do, whoever reads it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.sources import SOURCES, SourceConfig, SourceError
from ingestion.spark.tables.timeline import CommitArchived, DamagedTable, Timeline
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.tables import Files, HudiCopy, SqlTable, StoredTable
from lakehub.catalog.storages import STORAGES
from quality.domain.language.measures import ROWS, Measure
from quality.engines import engine_for, run_scan
from quality.engines.scans.parts import CannotRead, OnePartition, WholeTable
from quality.engines.scans.scan import Limits, Scan
from tests import hudi_tables

DISTINCT = Measure("distinct", ("name",))
AVRO = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
REMEDY = "Write that file again, or take it away."


def rows(count: int = 3000) -> pa.Table:
    return pa.table({"id": range(count), "name": [f"name {number}" for number in range(count)]})


def write_parquet(file: Path) -> None:
    pq.write_table(rows(), file)


def write_avro(file: Path) -> None:
    with file.open("wb") as out:
        fastavro.writer(out, AVRO, rows().to_pylist())


def write_csv(file: Path) -> None:
    file.write_text("id,name\n" + "".join(f"{number},name {number}\n" for number in range(3000)))


def write_json_lines(file: Path) -> None:
    file.write_text("".join(f'{{"id": {number}, "name": "name {number}"}}\n' for number in range(3000)))


def cut_in_half(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def other_bytes(file: Path) -> None:
    file.write_bytes(b'id,name\n1,"\xff\xfe\x00a\n2,b\n')


WRITERS = {"parquet": write_parquet, "avro": write_avro, "csv": write_csv, "jsonl": write_json_lines}
DAMAGES = [
    ("parquet", cut_in_half, "was cut off"),
    ("parquet", empty, "is empty|too small"),
    ("parquet", other_bytes, "not a Parquet file|No magic bytes|too small"),
    ("avro", cut_in_half, "it was cut off"),
    ("avro", empty, "is empty"),
    ("csv", other_bytes, "CSV Error on Line"),
    ("jsonl", cut_in_half, "Malformed JSON"),
    ("jsonl", other_bytes, "Malformed JSON"),
]


def measured(table: StoredTable, *measures: Measure) -> object:
    return run_scan(engine_for(table), Scan(table, measures or (ROWS,), WholeTable()), Limits()).answers


@pytest.mark.parametrize(("ending", "damage", "fault"), DAMAGES)
@pytest.mark.parametrize("measure", [ROWS, DISTINCT])
def test_a_test_of_files_names_the_one_that_is_damaged(
    tmp_path: Path, ending: str, damage: Callable[[Path], None], fault: str, measure: Measure
) -> None:
    whole, broken = (tmp_path / f"{name}.{ending}" for name in ("a", "b"))
    for file in (whole, broken):
        WRITERS[ending](file)
    assert measured(Files(str(tmp_path / f"*.{ending}"), ending), measure)
    damage(broken)
    with pytest.raises(CannotRead) as error:
        measured(Files(str(tmp_path / f"*.{ending}"), ending), measure)
    _assert_told(str(error.value), broken, whole, fault, REMEDY)


@pytest.mark.parametrize(("ending", "damage", "fault"), DAMAGES)
def test_onboarding_names_the_one_that_is_damaged_and_shows_no_value_of_it(
    tmp_path: Path, ending: str, damage: Callable[[Path], None], fault: str
) -> None:
    whole, broken = (tmp_path / f"{name}.{ending}" for name in ("a", "b"))
    for file in (whole, broken):
        WRITERS[ending](file)
    damage(broken)
    storage = STORAGES.get("files")(tmp_path.as_uri())
    with pytest.raises(MetadataUnavailable) as error:
        storage.key_evidence(f"*.{ending}", ["id"])
    _assert_told(str(error.value), broken, whole, fault, REMEDY)


def _assert_told(message: str, broken: Path, whole: Path, fault: str, remedy: str) -> None:
    assert str(broken) in message
    assert str(whole) not in message
    assert re.search(fault, message), message
    assert message.endswith(remedy)
    assert "SELECT" not in message
    assert "\n" not in message


@pytest.mark.parametrize("ending", ["parquet", "avro"])
def test_a_job_names_the_one_that_is_damaged(tmp_path: Path, ending: str) -> None:
    broken = tmp_path / f"b.{ending}"
    WRITERS[ending](broken)
    cut_in_half(broken)
    with pytest.raises(SourceError, match=rf"The file b\.{ending} cannot be read: .*Is it whole"):
        source = SOURCES.get("files")(SourceConfig(tmp_path.as_uri(), f"*.{ending}", None))
        list(source.snapshot().batches)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    days: dict[str | None, pa.Table] = {
        day: rows().append_column("day", pa.array([day] * 3000)) for day in ("2026-11-14", "2026-11-15")
    }
    hudi_tables.hudi_table(tmp_path / "flights", days, column="day")
    return tmp_path / "flights"


def newest_commit(table: Path) -> Path:
    return sorted((table / ".hoodie").rglob("*.commit"))[-1]


def some_rows(table: Path) -> Path:
    return sorted(table.glob("*2026-11-15/*.parquet"))[0]


def properties(table: Path) -> Path:
    return table / ".hoodie" / "hoodie.properties"


@pytest.mark.parametrize(
    ("which", "damage", "fault"),
    [
        (some_rows, cut_in_half, "it was cut off"),
        (some_rows, empty, "it is empty"),
        (newest_commit, cut_in_half, "it is not the record of a commit"),
        (newest_commit, empty, "it is empty"),
        (properties, other_bytes, "can't decode byte"),
        (properties, empty, "it does not name the table"),
    ],
)
@pytest.mark.parametrize("measure", [ROWS, DISTINCT])
def test_a_test_of_a_lake_table_names_what_is_damaged(
    table: Path, which: Callable[[Path], Path], damage: Callable[[Path], None], fault: str, measure: Measure
) -> None:
    assert measured(HudiCopy(table.as_uri()), measure)
    damage(which(table))
    with pytest.raises(CannotRead) as error:
        measured(HudiCopy(table.as_uri()), measure)
    assert f"The file {which(table)} cannot be read: " in str(error.value)
    assert fault in str(error.value)
    assert "load the copy again" in str(error.value)


COMMIT, PROPERTIES = ".hoodie/timeline/20261116120000000_20261116120001000.commit", ".hoodie/hoodie.properties"


@pytest.mark.parametrize(
    ("name", "damage"),
    # Of properties that were cut off the lines that are left are properties.
    [(COMMIT, cut_in_half), (COMMIT, empty), (COMMIT, other_bytes), (PROPERTIES, empty), (PROPERTIES, other_bytes)],
)
def test_a_timeline_that_is_damaged_names_the_file(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    schema = {"type": "record", "name": "c", "fields": [{"name": "operationType", "type": "string"}]}
    commit = io.BytesIO()
    fastavro.writer(commit, schema, [{"operationType": "UPSERT"}])
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_bytes(commit.getvalue() if name == COMMIT else b"hoodie.table.name=flights\n")
    timeline = Timeline(tmp_path.as_uri())
    look = timeline.commits if name == COMMIT else lambda: timeline.properties
    assert len(look()) == 1
    damage(file)
    with pytest.raises(
        DamagedTable, match=f"The file {tmp_path.as_uri()}/{re.escape(name)} cannot be read: .*drop the copy"
    ):
        look()


@pytest.mark.parametrize("damage", [cut_in_half, empty, other_bytes])
def test_so_is_the_record_of_a_commit_that_a_pipeline_follows(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    file = tmp_path / COMMIT
    file.parent.mkdir(parents=True)
    with file.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "c", "fields": []}, [{}])
    timeline = Timeline(tmp_path.as_uri())
    (commit,) = timeline.completed()
    assert timeline.record(commit) == {}
    damage(file)
    with pytest.raises(DamagedTable, match=f"The file {file.as_uri()} cannot be read: ") as error:
        timeline.record(commit)
    assert error.value.fault in str(error.value)
    file.unlink()
    with pytest.raises(CommitArchived):
        timeline.record(commit)


def test_an_sqlite_file_that_is_none_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ops.db"
    file.write_bytes(b"not a database at all" * 100)
    with pytest.raises(
        CannotRead, match=f"The table .*{file} cannot be read .file is not a database.*Check that the database is whole"
    ):
        measured(SqlTable(f"sqlite:///{file}", "flights"))
    with pytest.raises(MetadataUnavailable, match=f"{file} cannot be read: file is not a database"):
        STORAGES.get("sql")(f"sqlite:///{file}").describe("flights")
    with pytest.raises(SourceError, match=f"{file} cannot be read: file is not a database"):
        list(SOURCES.get("sql")(SourceConfig(f"sqlite:///{file}", "flights", None)).snapshot().batches)


def test_a_test_of_one_partition_names_the_file_that_its_listing_needs(table: Path) -> None:
    """To filter by partition the listing asks the newest file for its columns."""
    for file in table.glob("*/*.parquet"):
        cut_in_half(file)
    scan = Scan(HudiCopy(table.as_uri()), (ROWS,), OnePartition("day", "2026-11-15"))
    with pytest.raises(CannotRead, match=r"The file .*\.parquet cannot be read: it was cut off.*load the copy again"):
        run_scan("duckdb", scan, Limits())
