"""The weekly report tells owners what is not tested, what was silent, what to look at and what is gone."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django.test import Client

from lakehub.accounts.models import Role, Team
from lakehub.catalog.models import Dataset
from lakehub.kernel.outcome import Outcome, Verdict
from quality.generation import generate
from quality.generation.weekly_report import MissingDataset, ReviewItem, SilentTest, SkippedTest, weekly_report
from quality.models import Flip
from tests import factories
from tests.factories import DAY, HOUR, NOW

pytestmark = pytest.mark.django_db
STALE = {"verdict": Verdict.UNKNOWN, "latest_at": NOW - HOUR, "last_pass_at": NOW - 9 * DAY}


@pytest.fixture
def team() -> Team:
    made = factories.team("flight-ops")
    Team.objects.filter(pk=made.pk).update(email="ops@example.org")
    return Team.objects.get(pk=made.pk)


@pytest.fixture
def planes(team: Team) -> Dataset:
    made = factories.dataset("planes", ingested=False, by_day=False, tier=1)
    factories.feed(made)
    return made


def test_skipped_types_of_test_say_what_is_missing_highest_tier_first(team: Team, planes: Dataset) -> None:
    Dataset.objects.filter(pk=planes.pk).update(primary_key=[])
    generate.generate_outdated(now=NOW)
    skipped = {skipped_check.check: skipped_check for skipped_check in weekly_report(team, now=NOW).skipped}
    assert skipped["duplicates"] == SkippedTest("planes", 1, "duplicates", "no primary key")
    assert "row_count_cross_dc" not in skipped, "nobody is asked for another data center"


def test_it_is_filed_under_its_monday_and_covers_the_week(team: Team, planes: Dataset) -> None:
    report = weekly_report(team, now=NOW)
    assert (report.week, report.start, report.end) == (date(2026, 11, 16), NOW - 7 * DAY, NOW)
    assert (report.datasets, report.coverage.covered, report.is_clean) == (1, 0, False)


def test_datasets_of_a_team_that_nobody_can_write_to_are_listed(planes: Dataset) -> None:
    team = factories.team("flight-ops")
    Team.objects.filter(pk=team.pk).update(email="")
    team.refresh_from_db()
    assert weekly_report(team, now=NOW).without_contact == ("planes",)
    factories.member(factories.user("ines", email="ines@example.org"), team, Role.OWNER)
    factories.member(factories.user("bo", email="bo@example.org"), team, Role.VIEWER)
    report = weekly_report(team, now=NOW)
    assert (report.addresses, report.without_contact) == (("ines@example.org",), ())


def test_a_test_in_error_for_a_week_is_told_once_for_all_its_ranges(team: Team) -> None:
    flights = factories.dataset("flights")
    test = factories.test(flights, key="duplicates")
    for day in ("2026-11-14", "2026-11-15"):
        factories.unit(
            test, over=factories.day(day), latest_outcome=Outcome.ERROR, detail={"cause": "no such file"}, **STALE
        )
    factories.unit(test, over=factories.day("2026-11-13"), verdict=Verdict.PASS)
    (silent,) = weekly_report(team, now=NOW).silent
    assert silent == SilentTest(
        "flights", "duplicates", "Primary key", "dc1", "error", 2, NOW - 9 * DAY, "no such file"
    )


@pytest.mark.parametrize(
    "facts",
    [
        {"last_pass_at": NOW - DAY},
        {"last_fail_at": NOW - DAY},
        {"latest_outcome": Outcome.PASS},
        {"latest_at": NOW - 8 * DAY},
    ],
)
def test_one_that_said_something_this_week_is_not(team: Team, facts: dict[str, Any]) -> None:
    test = factories.test(factories.dataset("flights"))
    factories.unit(test, **{"latest_outcome": Outcome.NO_DATA, **STALE, **facts})
    assert weekly_report(team, now=NOW).silent == ()


def test_tests_to_look_at_say_why(team: Team) -> None:
    flights = factories.dataset("flights")
    wrong, flapping, idle = (factories.test(flights, key=key, title=key) for key in ("a", "b", "c"))
    factories.unit(wrong, waiver="false_positive", waived_at=NOW - DAY)
    unit = factories.unit(flapping)
    for hour in range(4):
        Flip.objects.create(unit=unit, was="warn", becomes="fail", at=NOW - hour * HOUR)
    Flip.objects.create(unit=unit, was="warn", becomes="fail", at=NOW - 8 * DAY)
    factories.unit(idle, latest_at=None)
    assert list(weekly_report(team, now=NOW).look_at) == [
        ReviewItem("flights", "a", "a", "1 failure was called a false positive"),
        ReviewItem("flights", "b", "b", "it began to fail 4 times"),
        ReviewItem("flights", "c", "c", "it was never run"),
    ]


def test_a_table_that_is_gone_says_when_it_is_off_boarded(team: Team, planes: Dataset) -> None:
    Dataset.objects.filter(pk=planes.pk).update(missing_since=NOW - DAY)
    assert weekly_report(team, now=NOW).gone == (MissingDataset("planes", NOW - DAY, NOW + 13 * DAY, None),)
    Dataset.objects.filter(pk=planes.pk).update(offboarded_at=NOW)
    assert weekly_report(team, now=NOW).gone == (MissingDataset("planes", NOW - DAY, None, NOW),)


def test_another_team_s_datasets_are_not_told(team: Team) -> None:
    theirs = factories.dataset("theirs", team=factories.team("others"), missing_since=NOW)
    factories.unit(factories.test(theirs), latest_outcome=Outcome.ERROR, **STALE)
    report = weekly_report(team, now=NOW)
    assert (report.datasets, report.silent, report.gone, report.is_clean) == (0, (), (), True)


def test_the_api_gives_the_report_of_a_team(team: Team, planes: Dataset) -> None:
    client = Client()
    client.force_login(factories.user("ann"))
    report = client.get("/api/v1/reports/weekly?team=flight-ops").json()
    assert (report["team"], report["addresses"], report["datasets"]) == ("flight-ops", ["ops@example.org"], 1)
    assert report["coverage"]["uncovered"][0]["dataset"] == "planes"
    missing = client.get("/api/v1/reports/weekly?team=flight-opps")
    assert (missing.status_code, "Did you mean `flight-ops`?" in missing.json()["error"]["message"]) == (404, True)
