"""One dataset: the verdict with one sentence of why, tests with what they saw, history, partitions, sums."""

from __future__ import annotations

import json
import re

from django.test import Client

from lakehub.catalog.models import Dataset
from quality.models import QualityTest, Unit
from tests import factories as make


def html_of(page: Client, where: str = "/datasets/flights") -> str:
    return page.get(where).content.decode()


def test_the_first_lines_say_what_is_wrong_and_who_has_it(page: Client) -> None:
    html = re.sub(r"<[^>]+>", "", html_of(page))
    assert "98.98% (975 of 985), needs &gt; 99.9%, Mon 16 Nov in dc2. Incident #" in html
    assert "acknowledged by Inês Duarte, recovery expected at 15:30." in html


def test_tests_show_observed_against_needs(page: Client) -> None:
    html = html_of(page)
    row = html[html.index("Rows of dc1") :]
    assert "<strong>98.98%</strong>" in row[:1500]
    assert "&gt; 99.9%" in row[:1500]
    assert 'class="spark"' in row[:2500]


def test_a_row_opens_to_its_history(page: Client) -> None:
    test = QualityTest.objects.get(dataset__name="flights", category="consistency")
    html = html_of(page, f"/datasets/flights?test={test.pk}-dc2&days=30")
    plot = json.loads(re.findall(r'<script id="history" type="application/json">(.*?)</script>', html)[0])
    assert plot["limit"] == 0.999
    assert plot["points"][-1]["state"] == "fail"
    assert plot["points"][-1]["label"] == "Mon 16 Nov"
    assert plot["shades"][0]["label"].startswith("#")
    assert "<td>Mon 16 Nov</td>" in html  # the same as a table
    assert "plotly.min.js" in html


def test_a_test_of_everything_has_its_runs_as_history(page: Client) -> None:
    test = QualityTest.objects.get(dataset__name="flights", category="freshness")
    html = html_of(page, f"/datasets/flights?test={test.pk}-dc1")
    plot = json.loads(re.findall(r'<script id="history" type="application/json">(.*?)</script>', html)[0])
    assert plot["unit"] == "s"
    assert plot["limit"] == 3600
    assert len(plot["points"]) == 29


def test_an_address_that_opens_nothing_shows_the_page(page: Client) -> None:
    assert 'id="history"' not in html_of(page, "/datasets/flights?test=0-dc9&days=x")


def test_the_calendar_marks_the_bad_day(page: Client) -> None:
    html = html_of(page, "/datasets/flights/data")
    assert "Mon 16 Nov: 984 rows written, Rows of dc1 fail in dc2" in html
    assert "Today, not over" in html


def test_rows_are_accounted_for(page: Client) -> None:
    html = html_of(page, "/datasets/flights/ingestion")
    assert "The sum holds in dc1" in html
    copy = make.copy_of(Dataset.objects.get(name="flights"), "dc1")
    make.commit(copy, make.NOW - make.MINUTE, read=100, applied=90)
    html = html_of(page, "/datasets/flights/ingestion")
    assert "dc1: the sum does not hold" in html


def test_in_grace_a_failure_goes_by_that_name_and_nobody_is_paged(page: Client) -> None:
    html = html_of(page, "/datasets/carrier_contracts")
    assert "Nobody is paged until" in html
    assert 'data-state="grace"' in html


def test_what_was_skipped_says_why(page: Client) -> None:
    html = html_of(page, "/datasets/seat_capacity")
    assert "Duplicates" in html
    assert "It needs a primary key." in html


def test_a_bootstrap_that_runs_is_the_reason_for_unknown(page: Client) -> None:
    assert "Bootstrap of dc1 is running; tests start after it." in html_of(page, "/datasets/route_stats")


def test_an_offboarded_dataset_keeps_its_page(page: Client) -> None:
    Dataset.objects.filter(name="airports").update(offboarded_at=make.NOW - make.DAY)
    html = html_of(page, "/datasets/airports")
    assert "Off-boarded" in html
    assert "Run tests now" not in html


def test_neighbours_show_their_state(page: Client) -> None:
    html = html_of(page, "/datasets/flights/lineage")
    assert (
        html.index("planes")
        < html.index('aria-current="true"><span class="clip">flights')
        < html.index("carrier_daily")
    )


def test_run_tests_now_makes_what_matters_due(page: Client) -> None:
    answer = page.post("/datasets/flights/rerun", follow=True)
    assert "test runs of flights are under way." in answer.content.decode()
    failing = Unit.objects.get(test__dataset__name="flights", verdict="fail")
    assert (failing.lane, failing.due_at is not None and failing.due_at <= make.NOW + make.MINUTE) == (0, True)


def test_a_guest_may_look_but_not_run(guest: Client) -> None:
    assert "Run tests now" not in html_of(guest)
    answer = guest.post("/datasets/flights/rerun")
    assert answer.status_code == 403
    assert "you need to be owner or on call or admin of team flight-ops" in answer.content.decode()
