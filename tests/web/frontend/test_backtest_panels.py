"""A test tried on the past: on its page, before it is saved, and for all that onboarding made."""

from __future__ import annotations

import html as entities
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from lakehub.catalog.models import Dataset
from quality.models import Category, QualityTest
from tests import factories as make

COLUMNS = [{"name": "id", "type": "integer", "nullable": False}, {"name": "day", "type": "string", "nullable": False}]
EXPRESSION = "rows(this) > 5 with sustain=1h"
WHERE = "/datasets/trips"


@pytest.fixture
def trips(page: Client, tmp_path: Path) -> Dataset:
    """Ten rows a day for a month; of 10 November there are only two."""
    file = tmp_path / "trips.db"
    days = [(make.NOW - back * make.DAY).date().isoformat() for back in range(30, 0, -1)]
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE trips (id INTEGER, day TEXT)")
        rows = [(number, day) for day in days for number in range(2 if day == "2026-11-10" else 10)]
        database.executemany("INSERT INTO trips VALUES (?, ?)", rows)
    made = make.dataset(
        "trips", ingested=False, columns=COLUMNS, partition_column="day", primary_key=["id", "day"], copies=()
    )
    make.copy(made, monitored_from=make.NOW - 30 * make.DAY)
    make.feed(made, connection=make.connection("tripsdb", f"sqlite:///{file}"))
    make.quality_test(
        made, Category.OTHERS, key="enough", title="Enough rows", expression=EXPRESSION, sustain=make.HOUR
    )
    return made


def text_of(answer: Any) -> str:
    return entities.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode())))


def test_it_runs_only_when_asked(page: Client, trips: Dataset) -> None:
    text = text_of(page.get(f"{WHERE}/tests/enough"))
    assert "Try it on 90 days" in text
    assert "would have" not in text.replace("would it have", "")


def test_it_says_how_often_it_would_have_paged_and_lists_the_days(page: Client, trips: Dataset) -> None:
    answer = page.get(f"{WHERE}/tests/enough?backtest=90")
    text = text_of(answer)
    assert "sent you a message once in 90 days." in text
    assert "2026-11-10 , 2, needs > 5" in text.replace("2026-11-10,", "2026-11-10 ,")
    assert "28 passed 1 failed" in text or "29 passed 1 failed" in text
    plot = json.loads(
        re.findall(r'<script id="backtest-dc1" type="application/json">(.*?)</script>', answer.content.decode())[0]
    )
    assert plot["limit"] == 5
    assert not QualityTest.objects.get(key="enough").units.exists()  # nothing is stored


def test_a_draft_is_tried_before_it_is_saved(page: Client, trips: Dataset) -> None:
    answer = page.post(f"{WHERE}/new-test", {"expression": "rows(this) > 1", "title": "Any", "act": "backtest"})
    assert "not once in 90 days." in text_of(answer)
    assert not trips.tests.filter(title="Any").exists()


def test_a_draft_that_is_wrong_says_why_it_cannot_be_tried(page: Client, trips: Dataset) -> None:
    answer = page.post(f"{WHERE}/new-test", {"expression": "rowz(this) > 1", "act": "backtest"})
    assert "Did you mean" in text_of(answer)


def test_onboarding_tries_all_that_it_made(page: Client, trips: Dataset) -> None:
    assert "Try them on 90 days" in text_of(page.get("/onboarding/trips"))
    answer = page.get("/onboarding/trips?backtest=90")
    text = text_of(answer)
    assert "Pages in 90 days" in text
    assert "Would have paged flight-ops 1 time in 90 days" in text
    assert "data-live" not in answer.content.decode()  # it would be tried again every three seconds


def test_who_may_not_run_tests_may_not_try_them(guest: Client, trips: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **named: object) -> None:
        raise AssertionError  # it reads the data, which costs

    monkeypatch.setattr("frontend.results.backtest_panel.run_backtest", never)
    for where in (f"{WHERE}/tests/enough?backtest=90", "/onboarding/trips?backtest=90"):
        text = text_of(guest.get(where))
        assert "in 90 days" not in text
        assert "Try" not in text
