"""The page of the scores: computed once within five minutes, one after the other, of a window that has an end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from incidents.scores import single_flight
from incidents.scores.cached_overview import recent_trend, rounded_now
from lakehub.clock.models import ClockShift
from lakehub.kernel.interval import Interval
from quality.models import Category
from tests import factories as make
from tests.factories import DAY, HOUR, MINUTE, NOW

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _clock(settings: Settings, db: None) -> None:
    settings.LAKEHUB_CLOCK = "shifted"
    ClockShift.move_to(NOW)


@pytest.fixture
def ana(client: Client) -> Client:
    client.force_login(make.user("ana"))
    return client


@pytest.fixture
def _kept(settings: Settings) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "overview"}}


def looks_at_spans(client: Client, address: str) -> int:
    """How often answering reads spans."""
    with CaptureQueriesContext(connection) as asked:
        assert client.get(address).status_code == 200
    return sum("incidents_span" in query["sql"] for query in asked)


def failing() -> None:
    test = make.quality_test(make.dataset("flights"))
    row = make.incident(test.dataset, Category.DUPLICATES, opened_at=NOW - 3 * HOUR)
    make.span(row, make.unit(test, over=Interval(NOW - DAY, NOW)), began_at=NOW - 3 * HOUR)


@pytest.mark.usefixtures("_kept")
def test_who_looks_again_within_five_minutes_sees_what_was_computed(ana: Client) -> None:
    failing()
    assert looks_at_spans(ana, "/scores") > 0
    ClockShift.move_to(NOW + 2 * MINUTE)
    assert looks_at_spans(ana, "/scores") == 0
    assert 0 < looks_at_spans(ana, "/scores?by=test") <= 4  # the groups alone
    assert looks_at_spans(ana, "/scores?team=nobody") == 0  # left out, so it is the same
    assert looks_at_spans(ana, "/scores?tier=1") > 0
    ClockShift.move_to(NOW + 5 * MINUTE)
    assert looks_at_spans(ana, "/scores") > 0


def test_a_window_without_an_end_is_everybodys_of_these_five_minutes() -> None:
    assert {rounded_now(NOW + timedelta(seconds=at)) for at in range(-120, 180, 20)} == {NOW - 2 * MINUTE}
    assert rounded_now(NOW + 3 * MINUTE) == NOW + 3 * MINUTE


def test_a_window_of_more_than_a_year_is_not_computed(ana: Client) -> None:
    for address in ("/scores?days=3000", "/scores?from=1990-01-01"):
        assert "is longer than this page shows: 366 days at most" in ana.get(address).content.decode()


@pytest.mark.parametrize("address", ["/scores", "/scores.csv", "/api/v1/scores", "/api/v1/scores/noisy-tests"])
def test_who_comes_third_is_asked_to_come_again(ana: Client, address: str) -> None:
    with single_flight.queue_slot(), single_flight.queue_slot():
        answer = ana.get(address)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, str(single_flight.RETRY_AFTER_SECONDS))
    assert "Ask again in a few seconds" in answer.content.decode()
    assert ana.get(address).status_code == 200


def test_the_first_page_does_without_them_where_others_are_at_work(ana: Client) -> None:
    failing()
    with single_flight.queue_slot(), single_flight.queue_slot():
        assert "Scores are being computed for others" in ana.get("/").content.decode()
    assert "Scores are being computed for others" not in ana.get("/").content.decode()


@pytest.mark.usefixtures("_kept")
def test_the_first_page_and_the_page_of_scores_share_a_trend(ana: Client) -> None:
    failing()
    ana.get("/scores")
    assert recent_trend(90, now=NOW) == recent_trend(90, now=NOW + MINUTE)
    with single_flight.queue_slot(), single_flight.queue_slot():
        assert recent_trend(90, now=NOW) is not None
        assert recent_trend(30, now=NOW) is None


def test_the_file_leaves_out_what_cannot_be_understood(ana: Client) -> None:
    assert ana.get("/scores.csv?team=nobody&by=taem").status_code == 200
