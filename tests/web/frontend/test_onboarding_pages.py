"""Onboarding through the form: checked against the real table, nothing half done."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from django.test import Client

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
    assert "Primary key: 2 keys in 2 rows, no nulls." in text


def test_a_dataset_may_only_be_watched_and_grace_is_the_tiers(page: Client, source: Path) -> None:
    page.post("/onboarding", {name: value for name, value in FORM.items() if name not in ("ingested", "reference_key")})
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
    assert "You cannot finish this." in text_of(guest.get("/onboarding"))
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
