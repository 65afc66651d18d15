"""Incidents of datasets that no connection feeds: their likely cause, and the backfill that they cannot have."""

from __future__ import annotations

import pytest
from django.test import Client

from incidents.lifecycle import backfills
from incidents.models import Incident
from incidents.record.likely_cause import CauseKind, LikelyCause, likely_cause
from incidents.record.texts import spans_with_details
from ingestion.models import JobRun
from lakehub.accounts.models import Role
from lakehub.catalog.models import Dataset, Feed, FeedKind
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.outcome import Verdict
from quality.models import Category
from tests import factories as make
from tests.factories import HOUR, NOW, day

pytestmark = pytest.mark.django_db
WITHOUT_CONNECTION = [FeedKind.CHANGELOG, FeedKind.PIPELINE]


@pytest.fixture
def flights() -> Dataset:
    make.feed(dataset := make.dataset("flights"))
    return dataset


def failing(dataset: Dataset, category: Category = Category.FRESHNESS, over: Interval | None = None) -> Incident:
    """Passed six hours ago, fails since three."""
    times = {"first_fail_at": NOW - 3 * HOUR, "last_pass_at": NOW - 6 * HOUR}
    test = make.test(dataset, category)
    unit = make.unit(test, make.copy_of(dataset), over or day("2026-11-16"), Verdict.FAIL, **times)
    return make.incident(dataset, category, unit)


def cause(incident: Incident) -> LikelyCause:
    return likely_cause(incident, now=NOW, spans=spans_with_details(incident))


@pytest.mark.parametrize("kind", FeedKind)
def test_runs_are_late_only_where_they_are_scheduled(flights: Dataset, kind: FeedKind) -> None:
    make.feed_of_kind(flights, kind)
    incident = failing(flights)
    expected = CauseKind.LATE_RUN if kind == FeedKind.CONNECTION else CauseKind.UNKNOWN
    assert cause(incident).kind == expected


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_a_table_that_nothing_was_written_to_since_it_passed(flights: Dataset, kind: FeedKind) -> None:
    make.feed_of_kind(flights, kind)
    make.commit(make.copy_of(flights), completed_at=NOW - 7 * HOUR)
    assert cause(failing(flights)).text == "late run: the last commit ended at 2026-11-17 12:32 UTC"


@pytest.mark.parametrize("kind", FeedKind)
@pytest.mark.parametrize("category", [Category.FRESHNESS, Category.COMPLETENESS])
def test_a_feed_that_is_paused_says_so(flights: Dataset, kind: FeedKind, category: Category) -> None:
    make.feed_of_kind(flights, kind)
    Feed.objects.update(paused=True)
    assert cause(failing(flights, category)).text.endswith("has ended yet; the feed is paused")


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
@pytest.mark.parametrize("over", [day("2026-11-16"), EVERYTHING])
def test_a_backfill_is_refused_with_the_remedy(flights: Dataset, kind: FeedKind, over: Interval) -> None:
    make.feed_of_kind(flights, kind)
    with pytest.raises(Refused, match=f"cannot be loaded by the job `backfill`: its feed is a {kind}"):
        backfills.start_backfill(failing(flights, over=over).pk, actor="ana", now=NOW)
    assert not JobRun.objects.exists()


@pytest.mark.parametrize("kind", FeedKind)
def test_the_page_offers_a_backfill_only_where_one_can_run(flights: Dataset, kind: FeedKind, client: Client) -> None:
    make.feed_of_kind(flights, kind)
    make.member(person := make.user(), flights.team, Role.ADMIN)
    client.force_login(person)
    shown = client.get(f"/incidents/{failing(flights).pk}").content.decode()
    assert ("Start a backfill" in shown) == (kind == FeedKind.CONNECTION)
