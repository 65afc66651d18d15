"""Two copies of one dataset are two places: each is read where it lies, and one place is refused as two copies."""

from __future__ import annotations

import os
import shutil
import sqlite3
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from django.test import Client

from incidents.gate.answer import CopyQuestion, ask_gate
from lakehub.accounts.models import Role
from lakehub.catalog.datasets import copies
from lakehub.catalog.datasets.connection_change import check_connection_change
from lakehub.catalog.lineage import TableName, missing_tables
from lakehub.catalog.lineage.resolver import Resolver
from lakehub.catalog.models import Connection, DataCenter, Dataset, Rebuild
from lakehub.catalog.onboarding.onboard import check_request, onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.outcome import Verdict
from quality.execution import worker
from quality.generation import generate
from quality.models import Unit
from quality.planning import baseline
from tests import factories
from tests.factories import HOUR, NOW, day

pytestmark = pytest.mark.django_db

DAYS = ("2026-11-14", "2026-11-15", "2026-11-16")
AT_OPS = OnboardingRequest(
    name="flights",
    team="flight-ops",
    tier=2,
    connection="ops",
    table="flights",
    data_centers=("dc1", "dc2"),
    copies=(CopyRequest("dc2", "ops2", "flights"),),
    kind="append-only",
    primary_key=("id",),
    partition_column="flight_date",
    grain="day",
    partition_tz="America/New_York",
    ingested=False,
)


def database(file: Path, rows_by_day: dict[str, int]) -> str:
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE flights (id INTEGER PRIMARY KEY, flight_date TEXT)")
        for name, rows in rows_by_day.items():
            first = 10_000 * DAYS.index(name)
            db.executemany("INSERT INTO flights VALUES (?, ?)", [(first + row, name) for row in range(rows)])
    return f"sqlite:///{file}"


@pytest.fixture(autouse=True)
def two_sources(tmp_path: Path) -> None:
    """A day of dc2 lacks half of its rows."""
    for name in ("dc1", "dc2"):
        factories.data_center(name)
    factories.connection("ops", url=database(tmp_path / "ops.db", dict.fromkeys(DAYS, 1000)))
    factories.connection("ops2", url=database(tmp_path / "ops2.db", {**dict.fromkeys(DAYS, 1000), DAYS[1]: 500}))


def onboard(application: OnboardingRequest = AT_OPS) -> Dataset:
    dataset = onboard_dataset(application, actor="ines", now=NOW).dataset
    generate.generate_outdated(now=NOW)
    baseline.start_missing_baselines(now=NOW)
    worker.run_due_units(now=NOW, worker="test", most=200)
    worker.run_due_units(now=NOW + 12 * HOUR, worker="test", most=200)
    return dataset


def refused(application: OnboardingRequest) -> str:
    with pytest.raises(Refused) as caught:
        check_request(application)
    assert set(caught.value.fields) == {"copies"}
    return caught.value.fields["copies"]


def verdict(name: str, data_center: str) -> tuple[Verdict, bool]:
    question = CopyQuestion("flights", day(name), "pricing", data_center)
    answer = ask_gate(question, now=NOW + 13 * HOUR).answer
    return answer.verdict, answer.allowed


def test_rows_that_only_dc2_lacks_fail_in_dc2() -> None:
    onboard()
    compared = Unit.objects.filter(test__category="consistency", latest_at__isnull=False, copy__data_center__name="dc2")
    assert {unit.latest_outcome for unit in compared.filter(start=day(DAYS[1]).start)} == {"fail"}
    assert {unit.latest_outcome for unit in compared.exclude(start=day(DAYS[1]).start)} == {"pass"}
    assert verdict(DAYS[1], "dc2") == (Verdict.FAIL, False)


def test_a_copy_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    onboard_dataset(AT_OPS, actor="ines", now=NOW)
    (tmp_path / "ops2.db").unlink()
    generate.generate_outdated(now=NOW)
    baseline.start_missing_baselines(now=NOW)
    for later in (0, 12, 13):
        worker.run_due_units(now=NOW + later * HOUR, worker="test", most=200)
    assert not Unit.objects.filter(copy__data_center__name="dc2", latest_outcome="pass").exists()
    assert {verdict(name, "dc2") for name in DAYS} == {(Verdict.UNKNOWN, False)}
    assert verdict(DAYS[0], "dc1")[0] is not Verdict.FAIL


@pytest.mark.parametrize(
    "copies", [(), (CopyRequest("dc2", "ops", "flights"),), (CopyRequest("dc2", "ops", "main.FLIGHTS"),)]
)
def test_one_table_for_two_copies_is_refused(copies: tuple[CopyRequest, ...]) -> None:
    assert "dc1 and dc2 would read the same" in refused(replace(AT_OPS, copies=copies))


def test_two_connections_to_one_file_are_one_place(tmp_path: Path) -> None:
    os.symlink(tmp_path, tmp_path / "link")
    factories.connection("mirror", url=f"sqlite:///{tmp_path}/link/ops.db")
    why = refused(replace(AT_OPS, copies=(CopyRequest("dc2", "mirror", "flights"),)))
    assert "the same rows, as ops.flights and as mirror.flights" in why


def test_globs_that_share_a_file_are_one_place(tmp_path: Path) -> None:
    for name in ("a1.csv", "a2.csv", "b1.csv"):
        (tmp_path / name).write_text("id,flight_date\n1,2026-11-14\n")
    factories.connection("files", url=tmp_path.as_uri(), plugin="files")
    at_files = replace(AT_OPS, connection="files", table="a*.csv", copies=(CopyRequest("dc2", "files", "*1.csv"),))
    assert "dc1 and dc2 would read the same rows" in refused(at_files)
    check_request(replace(at_files, copies=(CopyRequest("dc2", "files", "b*.csv"),)))


def test_a_copy_without_the_columns_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ops2.db") as db:
        db.execute("CREATE TABLE legs (id INTEGER PRIMARY KEY, day TEXT)")
    why = refused(replace(AT_OPS, copies=(CopyRequest("dc2", "ops2", "legs"),)))
    assert why == "dc2: There is no column `flight_date`. There are: `day`, `id`."
    assert "dc2: There is no table `nowhere`" in refused(
        replace(AT_OPS, copies=(CopyRequest("dc2", "ops2", "nowhere"),))
    )


def test_a_copy_elsewhere_is_for_a_data_center_that_was_named() -> None:
    assert "`dc3` must be one of" in refused(
        replace(AT_OPS, data_centers=("dc1",), copies=(CopyRequest("dc3", "ops2", "flights"),))
    )


BY_YEAR_AND_MONTH = replace(
    AT_OPS, name="legs", connection="legs1", table="legs", copies=(CopyRequest("dc2", "legs2", "legs"),),
    partition_column="year, month", partition_form="%Y, %m", grain="month",
)  # fmt: skip


@pytest.fixture
def by_year_and_month(tmp_path: Path) -> None:
    """A table whose partitions are told by two columns, in two places."""
    for name in ("legs1", "legs2"):
        with sqlite3.connect(tmp_path / f"{name}.db") as db:
            db.execute("CREATE TABLE legs (id INTEGER, year INTEGER, month TEXT)")
            db.execute("INSERT INTO legs VALUES (1, 2026, '10')")
        factories.connection(name, url=f"sqlite:///{tmp_path / name}.db")


def test_each_of_several_partition_columns_is_looked_for_in_each_copy(by_year_and_month: None, tmp_path: Path) -> None:
    check_request(BY_YEAR_AND_MONTH)
    with sqlite3.connect(tmp_path / "legs2.db") as db:
        db.execute("ALTER TABLE legs DROP COLUMN month")
    assert refused(BY_YEAR_AND_MONTH) == "dc2: There is no column `month`. There are: `id`, `year`."


def test_a_connection_of_a_table_with_several_partition_columns_may_move(
    by_year_and_month: None, tmp_path: Path
) -> None:
    onboard_dataset(BY_YEAR_AND_MONTH, actor="ines", now=NOW)
    shutil.copy(tmp_path / "legs1.db", tmp_path / "moved.db")
    connection = Connection.objects.get(name="legs1")
    check_connection_change(connection, f"sqlite:///{tmp_path}/moved.db", actor="ann", now=NOW, by_operator=True)


def test_two_data_centers_with_one_lake_are_refused() -> None:
    factories.data_center("dc3", lake_uri="file:///lake/../lake/dc1/")
    ingested = replace(AT_OPS, ingested=True, copies=(), data_centers=("dc1", "dc3"))
    with pytest.raises(Refused) as caught:
        check_request(ingested)
    assert "dc1 and dc3 keep their lakes in one folder" in caught.value.fields["data_centers"]


def test_over_the_api_and_with_the_right_to_each_connection() -> None:
    other = factories.team("radar")
    factories.connection("theirs", url="sqlite:////nowhere.db", owner=other)
    person = factories.user("ines")
    factories.member(person, factories.team(), Role.OWNER)
    browser = Client()
    browser.force_login(person)
    body = {
        "name": "flights", "team": "flight-ops", "tier": 2, "connection": "ops", "table": "flights", "ingested": False,
        "data_centers": ["dc1", "dc2"], "kind": "append-only", "partition_column": "flight_date", "grain": "day",
    }  # fmt: skip

    def post(connection: str) -> tuple[int, dict[str, object]]:
        copies = [{"data_center": "dc2", "connection": connection, "table": "flights"}]
        answer = browser.post("/api/v1/datasets", body | {"copies": copies}, content_type="application/json")
        return answer.status_code, answer.json()

    assert post("theirs")[0] == 403
    assert post("ops")[0] == 422
    status, made = post("ops2")
    assert status == 201
    assert [(copy["connection"], copy["table"]) for copy in made["copies"]] == [  # type: ignore[attr-defined]
        ("ops", "flights"), ("ops2", "flights"),
    ]  # fmt: skip


def test_a_dataset_is_missing_where_every_copy_is_gone(tmp_path: Path) -> None:
    dataset = onboard_dataset(AT_OPS, actor="ines", now=NOW).dataset

    def drop(file: str) -> tuple[set[str], set[str]]:
        with sqlite3.connect(tmp_path / file) as db:
            db.execute("DROP TABLE flights")
        looked = missing_tables.check_tables(offboard_after=None, now=NOW)
        return set(looked.missing), set(looked.unreadable)

    assert drop("ops2.db") == (set(), {dataset.name})
    assert drop("ops.db") == ({dataset.name}, set())


def test_lineage_knows_each_copy_by_its_table() -> None:
    dataset = onboard_dataset(AT_OPS, actor="ines", now=NOW).dataset
    resolver = Resolver()
    assert resolver.dataset(TableName("ops", "flights")) == dataset
    assert resolver.dataset(TableName("ops2", "flights")) == dataset


@pytest.mark.parametrize(("races", "table"), [(1, "flights-3"), (9, None)])
def test_two_tables_that_are_made_at_the_same_moment_lie_apart(
    monkeypatch: pytest.MonkeyPatch, races: int, table: str | None
) -> None:
    """A rebuild of `flights` looks for a free table, and `flights-2` is onboarded before it is written down."""
    flights, center = factories.dataset("flights"), factories.data_center("dc1")
    look, others = copies._free_lake_table, iter(range(2, 2 + races))

    def look_and_lose(dataset: Dataset, data_center: DataCenter) -> str:
        uri = look(dataset, data_center)
        for number in islice(others, 1):
            other = factories.dataset(f"flights-{number}", copies=())
            assert factories.copy(other, "dc1").uri == uri
        return uri

    monkeypatch.setattr(copies, "_free_lake_table", look_and_lose)
    rebuild = Rebuild.objects.create(dataset=flights, asked_by="ana", asked_at=NOW)
    if table is None:
        with pytest.raises(Conflict, match="flights-6 of the lake just now"):
            copies.create_copy(flights, center, None, rebuild=rebuild)
    else:
        assert copies.create_copy(flights, center, None, rebuild=rebuild).uri == f"{center.lake_uri}/{table}"
