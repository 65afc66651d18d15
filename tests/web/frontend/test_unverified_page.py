"""What nobody can vouch for is counted on the first page, and listed with since when and why: of my teams, or of all."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from frontend.screens.coverage import queries
from lakehub.catalog.models import Dataset
from lakehub.kernel.outcome import Outcome, Verdict
from quality.models import QualityTest, Unit
from tests import factories as make
from tests.factories import DAY, HOUR


def text_of(page: Client, where: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.get(where).content.decode()))


@pytest.fixture(autouse=True)
def all_is_verified(flights: Dataset) -> None:
    Unit.objects.filter(verdict=Verdict.UNKNOWN).update(verdict=Verdict.PASS)


def unverified(name: str, days: int = 3, *, team: str = "flight-ops", tier: int = 1) -> Dataset:
    """Of the last days there was nothing to compare with; the first of them lost its verdict two days ago."""
    dataset = make.dataset(name, team=make.team(team), tier=tier)
    add_unverified(make.quality_test(dataset, key="completeness", cadence=None), days)
    return dataset


def add_unverified(test: QualityTest, days: int) -> None:
    for ago in range(1, days + 1):
        over = make.day(f"{make.NOW - (ago + 1) * DAY:%Y-%m-%d}")
        facts = {"latest_outcome": Outcome.NO_DATA, "reason": "no_data", "verdict_at": make.NOW - 2 * DAY + ago * HOUR}
        make.unit(test, over=over, verdict=Verdict.UNKNOWN, **facts)


def test_home_counts_what_nobody_can_vouch_for_and_leads_to_it(page: Client) -> None:
    assert "Not verified Everything that is due is verified." in text_of(page, "/")
    unverified("prices")
    assert "Not verified 1 dataset Unknown 3 ranges cannot be vouched for" in text_of(page, "/")
    assert 'href="/coverage/unverified">1 dataset' in page.get("/").content.decode()


def test_the_list_says_which_since_when_and_why(page: Client) -> None:
    unverified("prices")
    text = text_of(page, "/coverage/unverified")
    assert "3 ranges of 1 dataset cannot be vouched for" in text
    assert "prices 3 ranges of completeness in dc1: no data 3 15 Nov 15:32 1 d 23 h ago Tier 1 flight-ops" in text


def test_what_was_never_run_is_unknown_since_it_was_due(page: Client) -> None:
    unverified("prices", 1)
    Unit.objects.filter(test__dataset__name="prices").update(verdict_at=None, latest_at=None, reason="")
    text = text_of(page, "/coverage/unverified")
    assert "prices completeness in dc1: never run 1 16 Nov 01:00" in text


def test_what_is_another_teams_is_counted_and_listed_with_all_only(page: Client) -> None:
    unverified("their_prices", team="pricing")
    assert "Everything that is due is verified" in text_of(page, "/")
    assert "3 ranges cannot be vouched for" in text_of(page, "/?teams=all")
    assert 'href="/coverage/unverified?teams=all"' in page.get("/?teams=all").content.decode()
    assert "their_prices" not in text_of(page, "/coverage/unverified")
    assert "their_prices" in text_of(page, "/coverage/unverified?teams=all")


def test_the_list_is_bounded_and_says_so(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MAX_LISTED", 2)
    monkeypatch.setattr(queries, "MAX_TESTS_LISTED", 1)
    for name in ("a", "b", "c"):
        dataset = unverified(name, tier=2)
        add_unverified(make.quality_test(dataset, key="other", cadence=None), 1)
    text = text_of(page, "/coverage/unverified")
    assert "12 ranges of 3 datasets cannot be vouched for" in text
    assert "3 datasets, the highest tiers first, the first 2" in text
    assert "a 3 ranges of completeness in dc1: no data and 1 test more 4" in text
    assert not re.search(r"\bc 3 ranges", text)


@pytest.mark.parametrize("where", ["/", "/coverage/unverified"])
def test_the_number_of_queries_does_not_grow(page: Client, where: str) -> None:
    def queries_of() -> int:
        with CaptureQueriesContext(
            connection,
        ) as counted:
            page.get(where)
        return len(counted)

    unverified("a")
    page.get(where)
    few = queries_of()
    for number in range(8):
        unverified(f"b{number}", 5)
    assert queries_of() == few


def test_the_live_part_of_home_does_not_count_it(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, now: object) -> None:
        raise AssertionError

    monkeypatch.setattr("frontend.screens.home.views.unverified_count", never)
    assert page.get("/", headers={"X-Fragment": "now"}).status_code == 200
