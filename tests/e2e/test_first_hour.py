"""The first hour by hand and keyboard: a connection is tested in place, and new pages have no finding."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from ingestion.models import JobKind, JobRun, JobState
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from tests import factories as make
from tests.e2e.test_accessible import THEMES, WIDTHS, in_theme

SETUP_PAGES = ("/", "/setup", "/new-team", "/new-data-center", "/new-connection", "/new-person", "/account/password")


@pytest.fixture
def operator(ines: User) -> User:
    User.objects.filter(pk=ines.pk).update(is_superuser=True)
    return ines


def test_a_connection_is_tested_in_place_and_what_was_typed_stays(
    tab: Callable[..., Page], ines: User, tmp_path: Path, settings: Settings
) -> None:
    settings.LAKEHUB_SOURCE_ROOTS = [tmp_path.resolve()]
    with sqlite3.connect(tmp_path / "ops.db") as database:
        database.execute("CREATE TABLE airlines (carrier TEXT)")
    page = tab("/new-connection")
    page.get_by_label("Name").fill("ops_db")
    page.get_by_label("Kind").select_option("sql")
    page.get_by_label("URL").fill("sqlite:////nowhere/ops.db")
    page.get_by_role("button", name="Test connection").press("Enter")
    expect(page.locator("#tested")).to_contain_text("The connection does not work.")
    page.get_by_label("URL").fill(f"sqlite:///{tmp_path}/ops.db")
    page.get_by_role("button", name="Test connection").press("Enter")
    expect(page.locator("#tested")).to_contain_text("It lists 1 table, such as airlines.")
    page.get_by_role("button", name="Save connection").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Connection ops_db of team flight-ops was reached")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_pages_of_an_empty_instance_have_no_finding(tab: Callable[..., Page], operator: User, width: str) -> None:
    page = tab("/", viewport={"width": WIDTHS[width], "height": 900}, reduced_motion="reduce")
    problems = []
    for where in (*SETUP_PAGES, "/teams/flight-ops/members"):
        page.goto(where)
        problems += [f"{theme}: {problem}" for theme in THEMES for problem in in_theme(page, theme)]
    assert problems == []


@pytest.mark.parametrize("width", WIDTHS)
def test_runs_that_run_and_fail_have_no_finding(tab: Callable[..., Page], whole_fleet: None, width: str) -> None:
    copy = make.copy_of(Dataset.objects.get(name="flights"), "dc1")
    JobRun.objects.filter(copy=copy, state=JobState.RUNNING).delete()
    make.run(copy, JobKind.BACKFILL, JobState.FAILED, attempt=5, error="SourceError: Connection refused")
    progress = {"phase": "read", "phase_s": 60.0, "rows_read": 1_000_000, "rows_total": 3_000_000}
    fields = {"started_at": make.NOW - make.MINUTE, "ended_at": None, "progress": progress, "progress_at": make.NOW}
    make.run(copy, JobKind.BOOTSTRAP, JobState.RUNNING, **fields)
    page = tab("/", viewport={"width": WIDTHS[width], "height": 900}, reduced_motion="reduce")
    problems = []
    for where in ("/", "/?teams=all", "/onboarding/flights", "/datasets/flights", "/datasets/flights/ingestion"):
        page.goto(where)
        problems += [f"{theme}: {problem}" for theme in THEMES for problem in in_theme(page, theme)]
    assert problems == []
