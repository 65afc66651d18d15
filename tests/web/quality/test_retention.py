"""Old results go; what they add up to stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lakehub.kernel.outcome import Outcome
from quality.execution import retention
from quality.models import Flip, HourlyResults, Result
from quality.state.baseline_exclusions import confirmed_bad_ranges
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW

pytestmark = pytest.mark.django_db
THEN = NOW - 40 * DAY


def measured(at_minutes: dict[int, tuple[Outcome, float | None]]) -> None:
    unit = factories.unit(factories.test(factories.dataset()))
    for minute, (outcome, observed) in at_minutes.items():
        result = factories.result(unit, outcome, read_at=THEN + minute * MINUTE, observed=observed)
        Flip.objects.create(unit=unit, result=result, was="pass", becomes="fail", at=result.read_at)


def test_results_are_added_up_by_the_hour() -> None:
    measured({0: (Outcome.PASS, 1.0), 10: (Outcome.FAIL, 0.5), 20: (Outcome.NO_DATA, None), 70: (Outcome.ERROR, None)})
    assert (retention.roll_up_results(now=NOW), retention.roll_up_results(now=NOW)) == (2, 0)
    first, second = HourlyResults.objects.order_by("hour")
    assert (first.passed, first.failed, first.no_data, first.errors) == (1, 1, 1, 0)
    assert (first.min_observed, first.max_observed, first.sum_observed, first.observed_count) == (0.5, 1.0, 1.5, 2)
    assert (second.errors, second.observed_count, second.sum_observed) == (1, 0, None)


def test_the_hour_that_is_going_on_waits() -> None:
    measured({0: (Outcome.PASS, 1.0)})
    assert retention.roll_up_results(now=THEN + 30 * MINUTE) == 0
    assert retention.roll_up_results(now=THEN + 4 * HOUR) == 1


def test_only_what_was_added_up_is_forgotten() -> None:
    measured({0: (Outcome.PASS, 1.0), 70: (Outcome.FAIL, 1.0)})
    assert retention.delete_old_results(now=NOW, retention=timedelta(days=30)) == 0
    retention.roll_up_results(now=NOW)
    assert retention.delete_old_results(now=NOW, retention=timedelta(days=30)) == 2
    assert not Result.objects.exists()
    assert Flip.objects.filter(result=None).count() == 2


def test_young_results_stay() -> None:
    measured({0: (Outcome.PASS, 1.0)})
    retention.roll_up_results(now=NOW)
    assert retention.delete_old_results(now=NOW, retention=timedelta(days=50)) == 0


def test_old_changes_of_a_verdict_go_but_for_the_newest_and_those_not_taken_in() -> None:
    test = factories.test(factories.dataset())
    quiet, busy = factories.unit(test), factories.unit(test, over=factories.day("2026-11-01"))
    flips = [
        Flip.objects.create(unit=unit, was="pass", becomes=becomes, at=THEN, claimed_at=claimed_at)
        for unit, becomes, claimed_at in (
            (quiet, "warn", THEN),
            (quiet, "pass", THEN),
            (busy, "warn", THEN),
            (busy, "fail", None),
            (busy, "pass", NOW),
        )
    ]
    assert retention.delete_old_flips(now=NOW, retention=30 * DAY) == 2
    assert list(Flip.objects.order_by("pk")) == [flips[1], flips[3], flips[4]]


def test_what_baselines_leave_out_is_not_forgotten() -> None:
    """The newest FAIL of a unit stays, and that it was a false alarm."""
    dataset = factories.dataset()
    test, copy = factories.test(dataset), factories.copy_of(dataset)
    repaired, alarmed = (factories.unit(test, over=factories.day(name)) for name in ("2026-10-01", "2026-10-03"))
    for unit, becomes, reason in (
        (repaired, "fail", "sustained"),
        (repaired, "pass", "passing"),
        (repaired, "warn", "in_sustain"),
        (repaired, "fail", "sustained"),
        (repaired, "pass", "passing"),
        (repaired, "unknown", "retest_overdue"),
        (alarmed, "fail", "sustained"),
        (alarmed, "pass", "false_positive"),
        (alarmed, "unknown", "retest_overdue"),
        (alarmed, "pass", "passing"),
    ):
        Flip.objects.create(unit=unit, was="warn", becomes=becomes, reason=reason, at=THEN, claimed_at=THEN)
    known = confirmed_bad_ranges(copy)
    assert known == (factories.day("2026-10-01"),)
    assert retention.delete_old_flips(now=NOW, retention=30 * DAY) == 5
    assert confirmed_bad_ranges(copy) == known
    assert list(alarmed.flips.order_by("pk").values_list("reason", flat=True)) == [
        "sustained",
        "false_positive",
        "passing",
    ]
