"""What nobody can vouch for is counted against coverage, and its owners are told once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail
from pytest_django import DjangoAssertNumQueries

from incidents import tasks
from incidents.models import UnverifiedMail
from incidents.notifications.periodic import letters, unverified_mail
from lakehub.accounts.models import Team
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.outcome import Outcome, Verdict
from lakehub.kernel.partitions import Grain
from quality.generation.coverage import coverage_of_tiers
from quality.models import Unit
from quality.state.unverified import days_text, unverified_units
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW

pytestmark = pytest.mark.django_db
YESTERDAY = factories.day("2026-11-16")


def dataset(name: str = "flights", tier: int = 2) -> Dataset:
    made = factories.dataset(name, tier=tier)
    Team.objects.filter(pk=made.team_id).update(email="owners@example.com")
    return made


def unknown_unit(
    made: Dataset, key: str = "completeness", *, due_after: timedelta = HOUR, sustain: timedelta = HOUR
) -> Unit:
    """Of yesterday, which ended 14 and a half hours before NOW."""
    test = factories.test(made, key=key, cadence=None)
    assert test.version is not None
    test.version.due_after, test.version.sustain = due_after, sustain
    test.version.save()
    return Unit.objects.create(
        test=test,
        copy=made.copies.get(),
        start=YESTERDAY.start,
        end=YESTERDAY.end,
        latest_outcome=Outcome.NO_DATA,
        reason="no_data",
    )


def told() -> list[str]:
    unverified_mail.write_due_letters(now=NOW)
    letters.send_due_letters(now=NOW)
    return [str(message.subject) for message in mail.outbox]


@pytest.mark.parametrize(
    ("due_after", "sustain", "counts"),
    [
        (HOUR, HOUR, True),
        (14 * HOUR, MINUTE, True),
        (14 * HOUR, HOUR, False),
        (HOUR, 14 * HOUR, False),
        (15 * HOUR, HOUR, False),
    ],
)
def test_a_range_counts_once_its_sustain_period_after_it_was_due_is_over(
    due_after: timedelta, sustain: timedelta, counts: bool
) -> None:
    unknown_unit(dataset(), due_after=due_after, sustain=sustain)
    assert unverified_units(now=NOW).exists() == counts


@pytest.mark.parametrize(
    "change",
    [{"verdict": Verdict.PASS}, {"verdict": Verdict.FAIL}, {"verdict_at": NOW - HOUR / 2}],
)
def test_what_has_a_verdict_or_lost_it_just_now_does_not_count(change: dict[str, object]) -> None:
    unknown_unit(dataset())
    Unit.objects.update(**change)
    assert not unverified_units(now=NOW).exists()


@pytest.mark.parametrize("change", [{"gating": False}, {"planned": False}, {"retired_at": NOW}])
def test_what_does_not_gate_does_not_count(change: dict[str, object]) -> None:
    test = unknown_unit(dataset()).test
    type(test).objects.filter(pk=test.pk).update(**change)
    assert not unverified_units(now=NOW).exists()


def test_coverage_is_what_is_verified() -> None:
    unknown_unit(dataset(tier=0))
    (uncovered,) = coverage_of_tiers(now=NOW).uncovered
    assert "not verified: `completeness` in dc1, 16 Nov: no data" in uncovered.reasons
    Unit.objects.update(verdict=Verdict.PASS)
    (uncovered,) = coverage_of_tiers(now=NOW).uncovered
    assert not any("not verified" in reason for reason in uncovered.reasons)


def test_owners_of_the_upper_tiers_are_told_at_once_and_once() -> None:
    unknown_unit(dataset())
    unknown_unit(dataset("rest", tier=3))
    assert told() == ["1 data range of flights is not verified"]
    assert "- `completeness` in dc1, 16 Nov: no data" in mail.outbox[0].body
    assert "/datasets/flights" in mail.outbox[0].body
    assert len(told()) == 1
    Unit.objects.update(verdict=Verdict.PASS)
    assert len(told()) == 1
    assert UnverifiedMail.objects.get().over_at == NOW
    Unit.objects.update(verdict=Verdict.UNKNOWN, verdict_at=NOW - DAY)
    assert len(told()) == 2


def test_the_mail_says_how_many_and_which_days() -> None:
    unit = unknown_unit(dataset())
    for day in ("2026-11-14", "2026-11-15"):
        over = factories.day(day)
        Unit.objects.create(test=unit.test, copy=unit.copy, start=over.start, end=over.end, reason="no_data")
    assert told() == ["3 data ranges of flights are not verified"]
    assert "- 3 ranges of `completeness` in dc1, 14 to 16 Nov: no data" in mail.outbox[0].body


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2026-11-16", "2026-11-16", "16 Nov"),
        ("2026-10-30", "2026-11-02", "30 Oct to 2 Nov"),
        ("2025-12-30", "2026-01-02", "30 Dec 2025 to 2 Jan 2026"),
        ("2001-01-01", "2001-06-30", "1 Jan to 30 Jun 2001"),
        ("2001-01-01", "2001-01-01", "1 Jan 2001"),
    ],
)
def test_days_are_those_of_the_dataset_with_the_year_of_another(first: str, last: str, words: str) -> None:
    span = Interval(factories.day(first).start, factories.day(last).end)
    assert days_text(span, dataset(), now=NOW) == words


def test_hours_are_named_and_a_table_as_a_whole_is_the_whole_table() -> None:
    hourly = dataset()
    hourly.grain = Grain.HOUR
    start = factories.day("2026-11-16").start
    assert days_text(Interval(start, start + 2 * HOUR), hourly, now=NOW) == "2026-11-16T00 to 2026-11-16T01"
    assert days_text(EVERYTHING, hourly, now=NOW) == "the whole table"


def test_the_task_tells() -> None:
    unknown_unit(dataset())
    Unit.objects.update(start=YESTERDAY.start - 900 * DAY, end=YESTERDAY.end - 900 * DAY)
    tasks.send_weekly_reports()
    assert sum("is not verified" in str(message.subject) for message in mail.outbox) == 1


def test_whose_owners_cannot_be_written_to_the_row_says_so() -> None:
    unknown_unit(dataset())
    Team.objects.update(email="")
    assert told() == []
    assert UnverifiedMail.objects.get().state == "dropped"


def test_however_many_datasets_there_are_the_queries_are_as_many(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(12):
        unknown_unit(dataset(f"d{number}", tier=0))
    with django_assert_max_num_queries(18):
        coverage_of_tiers(now=NOW)
