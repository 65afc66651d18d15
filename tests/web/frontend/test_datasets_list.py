"""The list of datasets: worst first, filters in the address, why under the verdict."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from incidents.models import Incident
from lakehub.catalog.models import Dataset
from quality.models import Category
from tests import factories as make


def names(page: Client, query: str = "") -> list[str]:
    html = page.get(f"/datasets{query}").content.decode()
    return re.findall(r'class="name" href="/datasets/([\w-]+)"', html)


def test_the_worst_come_first(page: Client) -> None:
    assert names(page) == [
        *("flights", "weather"),  # fail, by tier
        *("planes", "route_stats"),  # unknown
        "carrier_daily",  # warn
        "carrier_contracts",  # in grace
        *("departures_live", "fare_inputs", "crew_pairings", "airports", "airlines"),  # pass, by tier and name
        "seat_capacity",  # no tests
    ]


def test_a_row_says_why(page: Client) -> None:
    html = page.get("/datasets").content.decode()
    assert "Cross-dc consistency: 98.98% (975 of 985), needs &gt; 99.9%, Mon 16 Nov in dc2" in html
    assert "Duplicates: all data in dc1: DuckDB was stopped after 60 s, twice" in html
    assert "turns to fail at 15:32 if reruns do not pass" in html


def test_filters_are_in_the_address(page: Client) -> None:
    assert names(page, "?state=unknown") == ["planes", "route_stats"]
    assert names(page, "?tier=0&tier=3&state=pass") == ["departures_live", "fare_inputs", "airports"]
    assert names(page, "?team=fleet") == ["planes"]
    assert names(page, "?source=ops&dc=dc2") == ["flights"]
    assert names(page, "?no_key=1") == ["seat_capacity"]
    assert names(page, "?q=FARE") == ["fare_inputs"]


def test_what_cannot_be_a_filter_is_dropped(page: Client) -> None:
    assert len(names(page, "?state=purple&tier=99&page=x")) == 12


def test_nothing_found_offers_to_clear_the_filters(page: Client) -> None:
    html = page.get("/datasets?q=nothing").content.decode()
    assert "Nothing matches" in html
    assert "Clear the filters" in html


def test_an_empty_instance_teaches_the_next_step(page: Client) -> None:
    Dataset.objects.update(offboarded_at=make.NOW)
    assert "Onboard the first one" in page.get("/datasets").content.decode()
    assert "Start here" in page.get("/").content.decode()


def test_a_number_goes_to_the_incident(page: Client) -> None:
    incident = Incident.objects.get(category=Category.CONSISTENCY)
    assert page.get(f"/datasets?q=%23{incident.pk}").headers["Location"] == reverse("incident", args=[incident.pk])


def test_long_lists_have_pages(page: Client) -> None:
    for number in range(60):
        make.dataset(f"copy{number:02}", copies=())
    html = page.get("/datasets?tier=2&page=2").content.decode()
    assert "51 to 63 of 63" in html
    assert "?tier=2&amp;page=1" in html


def test_a_finding_test_without_a_finding_is_good_news(page: Client) -> None:
    calm = make.dataset("calm")
    make.quality_test(calm, Category.INGESTION, planned=False)
    assert "calm" in names(page, "?state=pass")


def test_a_test_that_never_ran_is_unknown_not_green(page: Client) -> None:
    fresh = make.dataset("fresh")
    make.quality_test(fresh, Category.DUPLICATES)
    assert "fresh" in names(page, "?state=unknown")


def test_a_partition_that_is_not_due_does_not_make_it_unknown(page: Client) -> None:
    fine = make.dataset("fine")
    test = make.quality_test(fine, Category.DUPLICATES)
    make.unit(test, None, make.day("2026-11-16"))
    waiting = make.unit(test, None, make.day("2026-11-17"), latest_at=None, due_at=make.NOW + make.DAY)
    type(waiting).objects.filter(pk=waiting.pk).update(verdict="unknown")
    assert "fine" in names(page, "?state=pass")


@pytest.mark.parametrize("asked", ["%23²", "%23" + "9" * 30, "%23９", "%23"])
def test_what_is_no_number_of_an_incident_is_looked_for_by_name(page: Client, asked: str) -> None:
    assert page.get(f"/datasets?q={asked}").status_code == 200
