"""The main job in a browser: onboard a dataset, see it fail, resolve the incident, ask the gate.

The dataset is watched where it lies (a real SQLite file, no Spark); everything else is what production runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from incidents.models import Incident
from lakehub import clock
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.clock.models import ClockShift
from tests import factories as make
from tests.e2e.conftest import findings


@pytest.fixture
def operations(tmp_path: Path) -> sqlite3.Connection:
    """The operational database: 40 planes, of which one is there twice."""
    file = tmp_path / "operations.db"
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("CREATE TABLE planes (tailnum TEXT NOT NULL, model TEXT, updated_at TIMESTAMP NOT NULL)")
    planes = [(f"N{number}", "A320", "2026-11-17 19:20:00") for number in range(39)]
    database.executemany("INSERT INTO planes VALUES (?, ?, ?)", [*planes, planes[7]])
    make.connection("operations", f"sqlite:///{file}")
    make.data_center("dc1", f"file://{tmp_path}/dc1")
    return database


def test_onboard_a_dataset_and_resolve_its_incident(
    tab: Callable[..., Page], ines: User, operations: sqlite3.Connection, work: Callable[[], None]
) -> None:
    page = tab("/")
    expect(page.get_by_role("heading", name="No datasets yet")).to_be_visible()
    onboard(page)
    made = Dataset.objects.get(name="planes")
    assert (made.tier, made.primary_key, made.ingested) == (0, ["tailnum"], False)

    work()
    expect(page.get_by_role("table")).to_contain_text("duplicates(this) <= 0%")  # the live part fills by itself
    page.get_by_role("link", name="Open planes").click()
    expect(page.get_by_role("main")).to_contain_text("Warn")

    pass_time(timedelta(minutes=16), work)  # the sustain period of tier 0 is 15 minutes
    acknowledge(page)
    operations.execute("DELETE FROM planes WHERE rowid = 40")
    page.get_by_role("button", name="Rerun now").click()
    expect(page.get_by_role("status")).to_contain_text("under way")
    work()
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("A rerun by hand passed")
    expect(page.get_by_label("Life of the incident")).to_contain_text("Resolved")
    assert Incident.objects.get().resolution == "manual_rerun"

    page.goto("/gate?dataset=planes")
    expect(page.get_by_role("heading", level=1)).to_have_text("planes may be read in dc1")


def onboard(page: Page) -> None:
    """Through the form, with a mistake on the way."""
    page.get_by_role("link", name="Onboard a dataset").click()
    page.get_by_role("link", name="operations").click()
    page.get_by_role("link", name="planes").click()
    page.get_by_role("radio", name="Tier 0").check()
    page.get_by_label("Primary key").fill("tailnumber")
    page.get_by_label("Bring its rows into the lake").uncheck()
    page.get_by_label("Event time").fill("updated_at")
    page.get_by_label("Days in grace").fill("0")
    page.get_by_role("button", name="Check and onboard").click()
    expect(page.get_by_text("There is no column tailnumber. Did you mean tailnum?")).to_be_visible()
    assert findings(page) == []
    page.get_by_label("Primary key").fill("tailnum")
    page.get_by_role("button", name="Check and onboard").click()
    expect(page.get_by_role("heading", name="planes is onboarded")).to_be_visible()
    expect(page.get_by_role("status").first).to_contain_text("39 keys in 40 rows")


def acknowledge(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 thing needs a decision")
    page.get_by_role("link", name="planes").first.click()
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("status")).to_contain_text("is yours")
    expect(page.get_by_label("Life of the incident")).to_contain_text("by Inês Duarte")


def pass_time(span: timedelta, work: Callable[[], None]) -> None:
    """The clock goes on in two steps, so that reruns that fall due on the way are run."""
    for _ in range(2):
        ClockShift.move_to(clock.now() + span / 2)
        work()
