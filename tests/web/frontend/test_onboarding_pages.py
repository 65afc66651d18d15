"""Onboarding through the form: checked against the real table, nothing half done."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from django.test import Client

from frontend.screens.onboarding.onboarding_form import proposed_name
from lakehub.accounts.models import Role
from lakehub.catalog.models import Dataset
from quality.models import SkippedCheck
from tests import factories as make

FORM = {
    "connection": "ops_db",
    "table": "airlines",
    "name": "carriers",
    "team": "flight-ops",
    "tier": "3",
    "kind": "append-plus-update",
    "data_centers": ["dc1"],
    "primary_key": "carrier",
    "reference_key": "updated_at",
    "cursor_column": "updated_at",
    "grain": "none",
    "partition_tz": "UTC",
    "ingested": "on",
}


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("airlines", "airlines"),
        ("ops.Flights", "flights"),
        ("readings.parquet", "readings"),
        ("raw/Orders 2024.csv.gz", "orders_2024"),
        ("raw/orders/dt=*/*.parquet", "orders"),
        ("*.parquet", ""),
        ("größe", "gr_e"),
        ("ops.trips?row_key=uuid&delete=x.y", "trips"),
    ],
)
def test_a_name_is_proposed_that_says_what_the_table_is(table: str, name: str) -> None:
    assert proposed_name(table) == name


@pytest.fixture
def source(page: Client, tmp_path: Path) -> Path:
    file = tmp_path / "ops.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE airlines (carrier TEXT NOT NULL PRIMARY KEY, name TEXT, updated_at TEXT)")
        database.executemany("INSERT INTO airlines VALUES (?, ?, '2026-11-16')", [("UA", "United"), ("B6", "JetBlue")])
    make.connection("ops_db", f"sqlite:///{file}")
    return file


def text_of(answer: object) -> str:
    html = answer.content.decode()  # type: ignore[attr-defined]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_it_starts_with_the_source(page: Client, source: Path) -> None:
    assert "ops_db" in text_of(page.get("/onboarding"))
    assert "Tables of ops_db 1 table" in text_of(page.get("/onboarding?connection=ops_db"))


def test_the_form_is_filled_from_the_real_table(page: Client, source: Path) -> None:
    html = page.get("/onboarding?connection=ops_db&table=airlines").content.decode()
    assert 'name="primary_key" value="carrier"' in html
    assert 'name="reference_key" value="updated_at"' in html
    assert "2 keys in 2 rows, no nulls" in html


def test_some_rows_are_shown(page: Client, source: Path) -> None:
    with sqlite3.connect(source) as database:
        database.execute("INSERT INTO airlines VALUES ('<b>', ?, NULL)", ["x" * 61])
    html = page.get("/onboarding?connection=ops_db&table=airlines").content.decode()
    rows = re.findall(r"<td>(.*?)</td>", html.partition('id="rows"')[2])
    assert rows[:6] == ["UA", "United", "2026-11-16", "B6", "JetBlue", "2026-11-16"]
    assert rows[6:9] == ["&lt;b&gt;", "x" * 59 + "…", ""]


def test_what_each_tier_promises_stands_beside_the_form(page: Client, source: Path) -> None:
    text = text_of(page.get("/onboarding?connection=ops_db&table=airlines"))
    assert "Tier 1 2 h &gt; 99.9% none &gt; 99.9% 30 min" in text


def test_onboarding_writes_the_dataset_and_shows_what_comes_of_it(page: Client, source: Path) -> None:
    answer = page.post("/onboarding", FORM, follow=True)
    made = Dataset.objects.get(name="carriers")
    assert (made.tier, made.primary_key, made.team.name) == (3, ["carrier"], "flight-ops")
    assert [copy.data_center.name for copy in made.copies.all()] == ["dc1"]
    text = text_of(answer)
    assert "carriers is onboarded" in text
    assert "Its rows are brought into 1 data center" in text
    assert "Primary key: 2 keys in 2 rows, no nulls; all rows were read." in text


def test_what_the_data_says_is_filled_in_and_said(page: Client, source: Path) -> None:
    """`day` is no column here, and the names say nothing."""
    with sqlite3.connect(source) as database:
        database.execute("CREATE TABLE legs (id INTEGER, flown TEXT, took_off TIMESTAMP, updated_at TIMESTAMP)")
        rows = [(n, f"2026-11-{n:02}", f"2026-11-{n:02} 08:00:00", "2026-11-20 00:00:00") for n in range(1, 9)]
        database.executemany("INSERT INTO legs VALUES (?, ?, ?, ?)", rows)
    answer = page.get("/onboarding?connection=ops_db&table=legs")
    html, text = answer.content.decode(), text_of(answer)
    assert 'name="event_time" value="took_off"' in html
    assert "By its values took_off says when a row happened. It is filled in" in text
    assert 'name="partition_column" value="took_off"' in html
    assert "says the partition, by day, written as time : 2026-11-08T08:00:00 = 8 November 2026, UTC." in text
    with sqlite3.connect(source) as database:
        database.execute("DROP TABLE legs")
        database.execute("CREATE TABLE legs (id INTEGER, flown TEXT)")
        database.executemany("INSERT INTO legs VALUES (?, ?)", [row[:2] for row in rows])
    html = page.get("/onboarding?connection=ops_db&table=legs").content.decode()
    assert 'name="partition_column" value="flown"' in html
    assert 'name="event_time" value=""' in html


def test_a_source_without_a_table_and_a_table_without_a_row_say_so(page: Client, source: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).close()
    make.connection("hollow", f"sqlite:///{empty}")
    text = text_of(page.get("/onboarding?connection=hollow"))
    assert "hollow lists no table. Check that the account may see the tables that you need" in text
    (tmp_path / "drop").mkdir()
    make.connection("folder", (tmp_path / "drop").as_uri(), plugin="files")
    assert "folder lists no table. Put files with one of the endings" in text_of(
        page.get("/onboarding?connection=folder")
    )
    with sqlite3.connect(source) as database:
        database.execute("DELETE FROM airlines")
    assert "the table has no rows yet" in text_of(page.get("/onboarding?connection=ops_db&table=airlines"))


def test_a_dataset_may_only_be_watched_and_grace_is_the_tiers(page: Client, source: Path) -> None:
    watched = {name: value for name, value in FORM.items() if name not in ("ingested", "reference_key")}
    text = text_of(page.post("/onboarding", watched, follow=True))
    assert "It stays where it lies" in text
    assert "brought into" not in text
    made = Dataset.objects.get(name="carriers")
    assert not made.ingested
    assert made.grace_until is not None
    assert made.grace_until.date() == (make.NOW + 3 * make.DAY).date()


def test_generated_tests_and_skipped_ones_are_listed(page: Client, source: Path) -> None:
    page.post("/onboarding", FORM)
    made = Dataset.objects.get(name="carriers")
    make.quality_test(made, title="Primary key")
    SkippedCheck.objects.create(dataset=made, check_name="row_count_cross_dc", reason="a copy in one data center only")
    text = text_of(page.get("/onboarding/carriers"))
    assert "Primary key duplicates(this) &lt; 0.1%" in text
    assert "Row count cross dc a copy in one data center only" in text


def test_a_wrong_column_is_answered_with_the_right_one(page: Client, source: Path) -> None:
    answer = page.post("/onboarding", {**FORM, "primary_key": "carier", "reference_key": "updated"})
    assert answer.status_code == 422
    text = text_of(answer)
    assert "There is no column carier . Did you mean carrier ?" in text
    assert "There is no column updated . Did you mean updated_at ?" in text
    assert 'value="carier"' in answer.content.decode()  # what was typed stays
    assert not Dataset.objects.filter(name="carriers").exists()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tier", "²", "tiers go from 0 (highest) to 5"),
        ("grace_days", "²", "² is no number of days"),
        ("grace_days", "5000000", "is no length of time to go by"),
        ("grace_days", "9" * 30, "is no number of days"),
        ("tier", "9", "tiers go from 0 (highest) to 5"),
        ("name", "flights", "There is a dataset flights already"),
        ("grain", "day", "no partition column is named"),
        ("partition_tz", "Mars", "There is no time zone Mars"),
        ("upstream", "fligts", "Did you mean flights ?"),
        ("name", "Two Words", "Use small letters"),
        ("table", "nothing", "nothing"),
    ],
)
def test_each_mistake_is_explained(page: Client, source: Path, field: str, value: str, message: str) -> None:
    answer = page.post("/onboarding", {**FORM, field: value})
    assert answer.status_code == 422
    assert message in text_of(answer)
    assert not Dataset.objects.filter(name="carriers").exists()


def test_a_form_without_a_table_of_files_is_given_back(page: Client, source: Path) -> None:
    make.connection("drop", source.parent.as_uri(), plugin="files")
    answer = page.post("/onboarding", {**FORM, "connection": "drop", "table": ""})
    assert answer.status_code == 422
    assert not Dataset.objects.filter(name="carriers").exists()


def test_a_source_that_cannot_be_reached_says_so(page: Client) -> None:
    make.connection("gone", "sqlite:////nowhere/at/all.db")
    text = text_of(page.get("/onboarding?connection=gone"))
    assert "Tables of" not in text
    assert "nowhere" in text or "gone" in text or "reach" in text


def test_a_guest_may_not_onboard(guest: Client, source: Path) -> None:
    assert "You need a role in a team." in text_of(guest.get("/onboarding"))
    assert guest.post("/onboarding", FORM).status_code == 403
    assert not Dataset.objects.filter(name="carriers").exists()


def test_another_teams_connection_is_not_shown(page: Client, source: Path) -> None:
    pricing = make.team("pricing")
    person = make.user("pia")
    make.member(person, pricing, Role.OWNER)
    client = Client()
    client.force_login(person)
    assert "ops_db" not in text_of(client.get("/onboarding"))
    assert "airlines" not in text_of(client.get("/onboarding?connection=ops_db&table=airlines"))
    assert client.post("/onboarding", {**FORM, "team": "pricing"}).status_code == 403


def test_two_copies_of_one_table_are_refused_and_each_may_lie_elsewhere(page: Client, source: Path) -> None:
    make.data_center("dc2")
    with sqlite3.connect(source.with_name("ops2.db")) as db, sqlite3.connect(source) as first:
        first.backup(db)
    make.connection("ops2", url=f"sqlite:///{source.with_name('ops2.db')}")
    watched = {name: value for name, value in FORM.items() if name not in ("ingested", "reference_key")}
    both = watched | {"data_centers": ["dc1", "dc2"]}
    refused = page.post("/onboarding", both)
    assert refused.status_code == 422
    assert "dc1 and dc2 would read the same table" in text_of(refused)
    typed = page.post("/onboarding", both | {"copy_connection.dc2": "ops2", "copy_table.dc2": "nowhere"})
    assert 'value="nowhere"' in typed.content.decode()
    page.post("/onboarding", both | {"copy_connection.dc2": "ops2"})
    assert [copy.source_name for copy in Dataset.objects.get(name="carriers").copies.all()] == ["ops_db", "ops2"]


@pytest.fixture
def daily(page: Client, tmp_path: Path) -> Path:
    file = tmp_path / "days.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE sales (id INTEGER, ds INTEGER, sold_at TIMESTAMP, share REAL)")
        rows = [(n, int(f"202601{n:02}"), f"2026-01-{n:02} 10:00:00.000000", 0.5) for n in range(1, 17)]
        database.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", rows)
    make.connection("days_db", f"sqlite:///{file}")
    return file


SALES = FORM | {
    "connection": "days_db",
    "table": "sales",
    "name": "sales",
    "primary_key": "id",
    "partition_tz": "Europe/Berlin",
    "kind": "append-only",
    "reference_key": "",
    "cursor_column": "",
}


def test_a_likely_partition_column_is_proposed_with_what_its_newest_value_means(page: Client, daily: Path) -> None:
    html = page.get("/onboarding?connection=days_db&table=sales").content.decode()
    assert 'name="partition_column" value="ds"' in html
    assert "<option selected>day</option>" in html
    assert 'name="partition_form" value="%Y%m%d"' in html
    assert "20260116 = 16 January 2026, UTC" in html


def test_choosing_a_column_proposes_its_grain_and_form_and_onboards_nothing(page: Client, daily: Path) -> None:
    answer = page.post("/onboarding", SALES | {"partition_column": "sold_at", "propose": "partition"})
    assert answer.status_code == 200
    html = answer.content.decode()
    assert 'name="partition_form" value="time"' in html
    assert "2026-01-16T10:00:00 = 16 January 2026, Europe/Berlin" in html
    assert not Dataset.objects.filter(name="sales").exists()


def test_a_column_of_times_is_onboarded_with_its_form_and_the_lake_gets_a_column_of_names(
    page: Client, daily: Path
) -> None:
    page.post("/onboarding", SALES | {"partition_column": "sold_at", "grain": "day"})
    made = Dataset.objects.get(name="sales")
    assert (made.partition_form, made.lake_partition_column) == ("time", "_lakehub_partition")


def test_a_column_that_says_no_partition_is_refused_in_its_field(page: Client, daily: Path) -> None:
    answer = page.post("/onboarding", SALES | {"partition_column": "share", "grain": "day"})
    assert answer.status_code == 422
    assert "Column share is float and says no partition." in text_of(answer)
