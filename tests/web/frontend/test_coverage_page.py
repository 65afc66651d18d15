"""Coverage: the number that must be whole, what keeps it from that, and the weekly report of my teams."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from lakehub.accounts.models import Team, User
from lakehub.catalog.models import Dataset, DatasetCopy
from quality.generation.generate import generate_tests
from quality.models import GenerationStatus, Unit
from tests import factories as make


def text_of(page: Client, where: str = "/coverage") -> str:
    html = re.sub(r"<[^>]+>", " ", page.get(where).content.decode())
    return re.sub(r"\s+", " ", html)


@pytest.fixture
def covered(flights: Dataset) -> None:
    """Every dataset of the highest tiers has the tests that its metadata asks for."""
    for dataset in Dataset.objects.filter(tier__lte=1):
        if not hasattr(dataset, "feed"):
            make.feed(dataset)
        generate_tests(dataset, now=make.NOW - make.DAY)
    Unit.objects.filter(verdict="unknown").update(verdict="pass")


def test_what_is_not_covered_says_why_and_what_comes_next(page: Client) -> None:
    text = text_of(page)
    assert "5 of 5 datasets of tiers 0 and 1 are not covered" in text
    assert "Its tests are not made yet" in text
    assert "Its tests are made by itself" in text


def test_whole_is_said_with_the_number(page: Client, covered: None) -> None:
    text = text_of(page)
    assert "All 5 datasets of tiers 0 and 1 are covered 100%" in text


def test_one_that_lacks_something_breaks_it(page: Client, covered: None) -> None:
    GenerationStatus.objects.filter(dataset__name="flights").update(problem="sustain='soon' is not a duration")
    html = page.get("/coverage").content.decode()
    assert "1 of 5 datasets of tiers 0 and 1 is not covered" in html
    assert 'href="/datasets/flights/settings">Mend its settings' in html
    assert "80%" in html


def test_a_copy_that_is_not_monitored_leads_to_its_jobs(page: Client, covered: None) -> None:
    DatasetCopy.objects.filter(dataset__name="flights", data_center__name="dc2").update(monitored_from=None)
    html = page.get("/coverage").content.decode()
    assert "Its copy in dc2 is not monitored yet" in html
    assert 'href="/datasets/flights/ingestion">See its jobs' in html


def test_tests_that_could_not_be_had_say_what_is_missing(page: Client) -> None:
    assert "seat_capacity Duplicates It needs a primary key." in text_of(page)


def test_home_shows_the_number(page: Client, covered: None) -> None:
    assert "Coverage tiers 0 and 1, all teams 100% 5 of 5 datasets" in text_of(page, "/")


def test_the_live_part_of_home_does_not_count_it(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*, now: object) -> None:
        raise AssertionError

    monkeypatch.setattr("frontend.screens.home.views.recent_coverage", never)
    assert page.get("/", headers={"X-Fragment": "now"}).status_code == 200


def test_the_report_is_of_my_teams_one_at_a_time(page: Client, ines: User) -> None:
    assert "The week of flight-ops" in text_of(page, "/coverage?team=flight-ops")
    assert "The week of weather-data" in text_of(page, "/coverage?team=weather-data")
    make.team("secret")
    assert "The week of secret" not in text_of(page, "/coverage?team=secret")


def test_who_has_no_team_sees_no_report(page: Client) -> None:
    outsider = Client()
    outsider.force_login(make.user("outsider"))
    text = text_of(outsider)
    assert "The week of" not in text
    assert "What a tier promises" in text


def test_the_report_says_who_it_is_mailed_to(page: Client, ines: User) -> None:
    assert "Nobody can be written to" in text_of(page)
    User.objects.filter(pk=ines.pk).update(email="ines@example.org")
    assert "Mailed every week to ines@example.org." in text_of(page)


def test_whether_somebody_hears_of_it_is_a_number_too(page: Client) -> None:
    """The teams of the fleet named no address: their messages end in the log."""
    text = text_of(page, "/coverage")
    assert "Alerts tiers 0 and 1 0% 0 of 5 datasets" in text
    assert "Its messages end in the log: team flight-ops named no address" in text
    Team.objects.update(email="ops@example.org")
    assert "Alerts tiers 0 and 1 100% 5 of 5 datasets" in text_of(page, "/coverage")
    assert "5 of 5 datasets alerted" in text_of(page, "/")
