"""What the plan of a pipeline says of the rows and bytes that would be written, by API and command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.core.management import call_command
from django.test import Client

from ingestion.models import Replica
from ingestion.pipelines.registering import register_pipeline
from lakehub.accounts.models import Role
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests import hudi_tables
from tests.factories import NOW
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM

pytestmark = pytest.mark.django_db
TEXTS = {"table.sql": TABLE, "pipeline.yaml": PIPELINE, "transform.sql": TRANSFORM}
OTHER_ROWS = {**TEXTS, "transform.sql": TRANSFORM.replace("sum(f.delay)", "max(f.delay)")}
SAME_ROWS = {**TEXTS, "pipeline.yaml": PIPELINE.replace("tier: 2", "tier: 1")}
NOTHING = {"size": {"rows": 0, "bytes": 0, "files": 0}, "is_estimate": False, "reason": ""}


@pytest.fixture(autouse=True)
def _inputs() -> None:
    for name, columns in {"flights": ("id", "day", "carrier", "delay"), "airlines": ("carrier", "name")}.items():
        given.dataset(name, columns=[{"name": column, "type": "string", "nullable": True} for column in columns])


@pytest.fixture
def table(tmp_path: Path) -> DatasetCopy:
    """Registered, and never loaded: its folder is not there."""
    copy = given.copy_of(register_pipeline(TEXTS, actor="ana", now=NOW).dataset)
    copy.uri = (tmp_path / "table").as_uri()
    copy.save()
    return copy


def folder_of(copy: DatasetCopy) -> Path:
    return Path(copy.uri.removeprefix("file://"))


def load(copy: DatasetCopy, **rows_of_days: int) -> None:
    days = {
        day[1:].replace("_", "-"): pa.table({"day": [day] * rows, "flights": range(rows)})
        for day, rows in rows_of_days.items()
    }
    hudi_tables.hudi_table(folder_of(copy), days, column="day")


def writes(client: Client, texts: Mapping[str, str]) -> Any:
    given.member(person := given.user(), given.team(), Role.OWNER)
    client.force_login(person)
    answer = client.post("/api/v1/modelled-tables?check=1", {"files": texts}, "application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()["writes"]


def printed(folder: Path, texts: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> str:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    call_command("pipelines", "check", str(folder))
    return capsys.readouterr().out


def test_a_rebuild_writes_about_as_many_rows_as_the_table_holds(
    table: DatasetCopy, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(table, d2013_01_01=20, d2013_01_02=22)
    bytes_now = sum(file.stat().st_size for file in folder_of(table).rglob("*.parquet"))
    size = {"rows": 42, "bytes": bytes_now, "files": 2}
    assert writes(client, OTHER_ROWS) == {"size": size, "is_estimate": True, "reason": ""}
    shown = f"writes about 42 rows, {bytes_now / 2**20:,.1f} MiB in 2 files: as many as the table holds now, which they replace\n"  # fmt: skip
    assert shown in printed(tmp_path / "files", OTHER_ROWS, capsys)


def test_one_row_in_one_file_is_said_so(table: DatasetCopy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(table, d2013_01_01=1)
    assert "writes about 1 row, 0.0 MiB in 1 file: as many as" in printed(tmp_path / "files", OTHER_ROWS, capsys)


@pytest.mark.parametrize("texts", [SAME_ROWS, TEXTS])
def test_a_change_that_makes_no_rows_writes_none(
    texts: dict[str, str], table: DatasetCopy, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(table, d2013_01_01=20)
    assert writes(client, texts) == NOTHING
    assert "  reads nothing and writes 0 rows\n" in printed(tmp_path / "files", texts, capsys)


def test_what_a_new_table_will_hold_is_not_known(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = "There is no table yet: its size is known after its first run."
    assert writes(client, TEXTS) == {"size": None, "is_estimate": False, "reason": reason}
    assert f"  writes: size unknown. {reason}\n" in printed(tmp_path / "files", TEXTS, capsys)


def test_a_table_that_was_never_loaded_is_named(
    table: DatasetCopy, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = f"There is no table at {table.uri} yet: its size is known after its first run."
    assert writes(client, OTHER_ROWS) == {"size": None, "is_estimate": False, "reason": reason}
    assert f"  writes: size unknown. {reason}\n" in printed(tmp_path / "files", OTHER_ROWS, capsys)


def test_an_empty_table_says_nothing_of_the_rows_to_come(
    table: DatasetCopy, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(table, d2013_01_01=0)
    reason = "flights-by-day@dc1 holds no rows now, so there is nothing to estimate from."
    assert writes(client, OTHER_ROWS) == {"size": None, "is_estimate": False, "reason": reason}
    assert f"  writes: size unknown. {reason}\n" in printed(tmp_path / "files", OTHER_ROWS, capsys)


@pytest.mark.parametrize(
    ("damaged", "fault"),
    [
        (".hoodie/hoodie.properties", "it does not name the table (hoodie.table.name)"),
        (f".hoodie/{hudi_tables.INSTANT}.commit", "it is empty"),
        ("day=2013-01-01/*.parquet", "it is empty"),
    ],
)
def test_of_a_damaged_table_the_file_the_fault_and_the_remedy_are_named(
    damaged: str, fault: str, table: DatasetCopy, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(table, d2013_01_01=20)
    (file,) = folder_of(table).glob(damaged)
    file.write_bytes(b"")
    answer = writes(client, OTHER_ROWS)
    assert (answer["size"], answer["is_estimate"]) == (None, False)
    assert f"The size of flights-by-day@dc1 cannot be read: The file {file} cannot be read: {fault}" in answer["reason"]
    assert "Restore it from a backup; or load the copy again" in answer["reason"]
    assert f"  writes: size unknown. {answer['reason']}\n" in printed(tmp_path / "files", OTHER_ROWS, capsys)


def test_a_lake_that_is_not_on_files_is_named(table: DatasetCopy, client: Client) -> None:
    DatasetCopy.objects.filter(pk=table.pk).update(uri="s3://lake/flights-by-day")
    reason = "The size of flights-by-day@dc1 is not read: s3://lake/flights-by-day is not a folder of this machine."
    assert writes(client, OTHER_ROWS) == {"size": None, "is_estimate": False, "reason": reason}


def test_it_is_estimated_by_the_copy_that_jobs_rebuild(table: DatasetCopy, client: Client, tmp_path: Path) -> None:
    """And not by its replica, though that is the first."""
    load(table, d2013_01_01=20)
    replica = given.copy(table.dataset, "dc0", uri=(tmp_path / "replica").as_uri())
    load(replica, d2013_01_01=10)
    Replica.objects.create(copy=replica, source=table, asked_by="ana", asked_at=NOW)
    assert writes(client, OTHER_ROWS)["size"]["rows"] == 20
