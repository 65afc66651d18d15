"""The daily look: the newest lineage adds and prunes edges; a table that stays gone is off-boarded, never silently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion import tasks
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.lineage import LineageSnapshot, TableLink, TableName, daily, edges, missing_tables
from lakehub.catalog.lineage.events import EventFolderSource
from lakehub.catalog.models import Connection, Dataset, LineageDay, LineageEdge, LineageLink, LineageTable
from lakehub.catalog.models.lineage import PIPELINE_SOURCE
from lakehub.catalog.storages.sql.urls import openlineage_address
from lakehub.kernel.errors import Refused
from lakehub.kernel.registry import Registry
from tests import factories as make
from tests.factories import DAY, HOUR, NOW
from tests.web.catalog.conftest import known_edges

pytestmark = pytest.mark.django_db


def name(text: str) -> TableName:
    return TableName(*text.split("/"))


def reading(*pairs: str, dropped: tuple[str, ...] = ()) -> LineageSnapshot:
    """`ops/flights>ops/delays`; `=>` where rows map one to one."""
    links = set()
    for pair in pairs:
        up, down = pair.replace("=>", ">").split(">")
        links.add(TableLink(name(up), name(down), "=>" in pair))
    return LineageSnapshot(frozenset(links), frozenset(map(name, dropped)))


def take_in(*pairs: str, **more: Any) -> dict[str, list[str]]:
    return edges.replace_lineage(reading(*pairs), source="file", now=NOW, **more)


def test_new_lineage_adds_edges_and_old_ones_are_pruned(ops: Path) -> None:
    assert take_in("ops/airlines>ops/flights", "ops/flights=>ops/delays")["added"] == [
        "airlines → flights (not one to one)",
        "flights → delays (one to one)",
    ]
    changes = take_in("ops/airlines>ops/flights", "ops/airlines>ops/delays")
    assert changes == {"added": ["airlines → delays (not one to one)"], "pruned": ["flights → delays (one to one)"]}
    assert known_edges() == {"airlines → flights", "airlines → delays"}
    assert take_in("ops/airlines>ops/flights", "ops/airlines>ops/delays") == {"added": [], "pruned": []}


def test_only_what_is_compared_gets_a_new_version_of_its_metadata(ops: Path) -> None:
    take_in("ops/airlines>ops/flights", "ops/flights=>ops/delays")
    versions = dict(Dataset.objects.values_list("name", "metadata_version"))
    assert versions == {"airlines": 1, "flights": 1, "delays": 2}
    assert AuditEntry.objects.filter(actor="lineage", subject="dataset:delays").get().action == "edge added"


def test_what_a_person_said_stays(ops: Path) -> None:
    flights, delays = (Dataset.objects.get(name=dataset_name) for dataset_name in ("flights", "delays"))
    make.edge(flights, delays, one_to_one=True)
    take_in("ops/airlines>ops/flights", "ops/flights>ops/delays")
    take_in("ops/airlines>ops/flights")
    assert known_edges() == {"airlines → flights", "flights → delays one to one"}


def test_edges_of_pipelines_stay_whatever_events_tell(ops: Path) -> None:
    airlines, flights, delays = (Dataset.objects.get(name=each) for each in ("airlines", "flights", "delays"))
    for upstream, downstream in ((flights, delays), (airlines, flights)):
        LineageEdge.objects.create(upstream=upstream, downstream=downstream, source=PIPELINE_SOURCE)
    assert take_in("ops/airlines>ops/flights") == {"added": [], "pruned": []}
    assert take_in("ops/airlines>ops/delays")["pruned"] == []
    assert known_edges() == {"airlines → flights", "flights → delays", "airlines → delays"}


def test_tables_that_nobody_onboarded_are_known_too(ops: Path) -> None:
    take_in("ops/airlines>ops/planes", "kafka/events>ops/planes")
    connections = {str(table_row): str(table_row.connection) for table_row in LineageTable.objects.all()}
    assert connections == {"ops/airlines": "ops", "ops/planes": "ops", "kafka/events": "None"}
    assert LineageEdge.objects.count() == 0


def test_tables_of_which_nothing_new_is_known_are_not_written_again(ops: Path) -> None:
    take_in("ops/airlines>ops/planes", "kafka/events>ops/planes")
    with CaptureQueriesContext(connection) as seen:
        edges.rebuild_edges(source="file", now=NOW)
    assert not [query["sql"] for query in seen if "UPDATE" in query["sql"]]
    Connection.objects.filter(name="ops").update(name="operations")
    edges.rebuild_edges(source="file", now=NOW)
    assert LineageTable.objects.exclude(connection=None).count() == 0


def test_a_source_that_lost_its_events_takes_nothing_along(ops: Path) -> None:
    many = [f"ops/t{number}>ops/flights" for number in range(20)]
    take_in(*many, "ops/airlines>ops/flights")
    with pytest.raises(Refused, match=r"3 links, and of 21 the last time.*--accept-loss"):
        take_in(*many[:3])
    assert (LineageLink.objects.count(), known_edges()) == (21, {"airlines → flights"})
    take_in(*many[:3], accept_loss=True)
    assert (LineageLink.objects.count(), known_edges()) == (3, set())


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql+psycopg://me:secret@db.example.org/ops", ("postgres://db.example.org:5432", "ops")),
        ("mysql+pymysql://db:3307/ops", ("mysql://db:3307", "ops")),
        ("postgresql://me:sec#ret@DB/ops", ("postgres://db:5432", "ops")),
        ("mariadb+pymysql://[::1]/ops", ("mysql://[::1]:3306", "ops")),
        ("sqlite:////tmp/ops.db", ("", "tmp/ops.db")),
    ],
)
def test_a_server_has_the_name_that_open_lineage_gives_it(url: str, expected: tuple[str, str]) -> None:
    assert openlineage_address(url)[0] == expected[0]
    assert expected[0] == "" or openlineage_address(url)[1] == expected[1]


def test_names_of_open_lineage_are_found(ops: Path) -> None:
    make.connection("pg", url="postgresql://db/ops")
    make.connection("lake", url="file:///lake/dc1", plugin="hudi")
    weather = make.dataset("weather")
    links = {
        TableLink(TableName("postgres://db:5432", "ops.public.raw"), TableName("file", "/lake/dc1/hourly")),
        TableLink(TableName("file", "/lake/dc1/weather"), TableName("lakehub", "delays"), True),
    }
    edges.replace_lineage(LineageSnapshot(frozenset(links)), source="file", now=NOW)
    matches = {
        table_row.name: (str(table_row.connection), table_row.object)
        for table_row in LineageTable.objects.exclude(connection=None)
    }
    assert matches["ops.public.raw"] == ("pg", "raw")
    assert matches["/lake/dc1/hourly"] == ("lake", "hourly")
    assert known_edges() == {f"{weather} → delays one to one"}


@pytest.mark.parametrize(
    ("plugin", "url"),
    [
        ("sql", "postgresql://u:p@ss:w0rd@h/x"),
        ("sql", "postgresql://u:pa/ss@h:1/x"),
        ("sql", "hunter2"),
        ("files", "file://[hunter2"),
        ("hudi", "s3a://lake/dc1"),
    ],
)
def test_a_url_that_is_not_understood_does_not_stop_the_rest(ops: Path, plugin: str, url: str) -> None:
    make.connection("a-bad", url=url, plugin=plugin)
    make.connection("pg", url="postgresql://db/ops")
    raw = (TableName("a-bad", "raw"), TableName("file", "/lake/x"))
    links = {TableLink(upstream, TableName("ops", "flights")) for upstream in raw}
    links.add(TableLink(TableName("postgres://db:5432", "ops.public.raw"), TableName("ops", "delays")))
    links.add(TableLink(TableName("ops", "flights"), TableName("ops", "delays")))
    edges.replace_lineage(LineageSnapshot(frozenset(links)), source="file", now=NOW)
    assert known_edges() == {"flights → delays"}
    connections = {str(row): str(row.connection) for row in LineageTable.objects.exclude(name="flights")}
    assert connections["a-bad/raw"] == "a-bad"
    assert connections["postgres://db:5432/ops.public.raw"] == "pg"


# The look at the tables


def look(folder: Path, now: Any = NOW) -> LineageDay | None:
    return daily.run_daily_lineage(lambda: EventFolderSource(folder.as_uri()), name="file", now=now)


def test_it_happens_once_a_day_however_often_it_is_woken_up(folder: Path) -> None:
    first = look(folder)
    assert first is not None
    assert first.report["added"] == ["flights → delays (one to one)"]
    assert look(folder, NOW + HOUR) is None
    assert look(folder, NOW + DAY) is not None
    assert LineageDay.objects.count() == 2


def test_lineage_that_cannot_be_read_is_told_and_tried_again(folder: Path) -> None:
    (folder / "load.json").write_text('{"eventType": "COMPLETE"}')
    day = look(folder)
    assert day is not None
    assert "This is no lineage event (KeyError: 'job')" in day.error
    assert (day.report, day.ended_at) == ({}, None)
    assert look(folder, NOW + timedelta(minutes=4)) is None
    (folder / "load.json").unlink()
    again = look(folder, NOW + timedelta(minutes=5))
    assert again is not None
    assert (again.error, again.attempt) == ("", 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", b"[" * 100_000),
        ("a.jsonl", b'{"a":' * 100_000),
        ("a.yaml", b"[" * 20_000),
        ("a.yml", b"- &a [x, x]\n- &b [*a, *a]\n- job: *b\n"),
        ("a.json", b"\xff\xfe"),
        ("a.json", b'"'),
    ],
)
def test_a_file_that_nobody_means_well_is_named(folder: Path, name: str, text: bytes) -> None:
    """The folder is written by pipelines."""
    (folder / name).write_bytes(text)
    day = look(folder)
    assert day is not None
    assert f"{folder / name} cannot be read: " in day.error


def test_the_task_reads_what_the_settings_name(folder: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.LAKEHUB_LINEAGE, settings.LAKEHUB_LINEAGE_URI = "file", folder.as_uri()
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)
    for _ in range(2):
        tasks.check_lineage()
        tasks.check_tables()
    assert known_edges() == {"flights → delays one to one"}
    assert list(LineageDay.objects.values_list("source", "attempt")) == [("", 1), ("file", 1)]
    assert [set(day.report) for day in LineageDay.objects.all()] == [
        {field.name for field in fields(missing_tables.TableCheckReport)},
        {"added", "pruned"},
    ]


@pytest.mark.parametrize("source", list(settings.LAKEHUB_LINEAGE_SOURCES))
def test_each_source_is_made_from_a_uri(source: str) -> None:
    made: Callable[[str], object] = Registry[Callable[[str], object]](
        "lineage source", settings.LAKEHUB_LINEAGE_SOURCES
    ).get(source)
    assert hasattr(made("file:///nowhere"), "read")
