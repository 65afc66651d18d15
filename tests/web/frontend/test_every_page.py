"""What holds for every page: signed in only, a strict policy, bounded queries, nothing inline."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from incidents.models import Incident
from ingestion.captures.records import topic_of
from lakehub.catalog.models import Dataset
from lakehub.http.security_headers import POLICY
from quality.models import Category, QualityTest
from tests import factories as make

PAGES = (
    "/",
    "/datasets",
    "/datasets/flights",
    "/datasets/flights/incidents",
    "/datasets/flights/data",
    "/datasets/flights/ingestion",
    "/datasets/flights/rejected",
    "/datasets/flights/positions",
    "/datasets/flights/loads",
    "/datasets/flights/lineage",
    "/datasets/flights/alerts",
    "/datasets/flights/settings",
    "/datasets/flights/definition",
    "/connections/ops",
    "/datasets/flights/tests/{test}",
    "/datasets/flights/new-test",
    "/datasets/flights/rules",
    "/datasets/flights/rules?kind=range",
    "/business-metrics",
    "/new-metric",
    "/incidents",
    "/incidents?view=resolved",
    "/incidents/report?dataset=flights",
    "/incidents/{incident}",
    "/teams/flight-ops/messages",
    "/teams/flight-ops/messages/opened",
    "/gate",
    "/gate?dataset=flights&from=2026-11-14&to=2026-11-17",
    "/gate/query",
    "/gate/policies",
    "/gate/policies?consumer=pricing&tier=0",
    "/help/glossary",
    "/coverage",
    "/coverage/unverified",
    "/schemas",
    "/schemas?name=book&team=flight-ops&rule=backward&mine=1",
    "/schemas/bookings-value",
    "/schemas/bookings-value?version=2",
    "/schemas/bookings-value/diff?from=1",
    "/schemas/bookings-value/propose",
    "/schemas/{topic}",
    "/schemas/{topic}/diff",
    "/new-schema",
    "/scores",
    "/scores?by=test&days=30&tier=1",
    "/scores?from=yesterday&team=nobody",
    "/incidents?behind=tp&days=30",
    "/teams/flight-ops/routes",
    "/account",
    "/tokens",
    "/tokens?all=1",
    "/audit",
    "/audit?subject=dataset:&since=2026-11-01",
    "/onboarding",
    "/new-pipeline",
    "/onboarding/flights",
    "/setup",
    "/new-connection",
    "/teams/flight-ops/members",
    "/account/password",
    "/account/second-step",
)
MOST_QUERIES = {
    "/": 52,
    "/datasets": 13,
    "/datasets/flights": 31,
    "/datasets/flights/settings": 23,
    "/datasets/flights/tests/{test}": 25,
    "/incidents": 14,
    "/incidents/{incident}": 30,
    "/gate?dataset=flights&from=2026-11-14&to=2026-11-17": 16,
    "/gate/policies": 9,
    "/audit": 6,
    "/tokens": 8,
    "/coverage": 40,
    "/coverage/unverified": 6,
    "/help/glossary": 3,
    "/business-metrics": 5,
    "/datasets/flights/rules": 20,
    "/schemas": 10,
    "/schemas/{topic}": 13,
}
"""With the session, the user and what the frame asks."""


ANSWERED: set[str] = set()
"""Links that another page had too: the fleet is the same for each test."""


def address(template: str) -> str:
    test = QualityTest.objects.get(dataset__name="flights", category=Category.CONSISTENCY)
    incident = Incident.objects.get(category=Category.CONSISTENCY)
    return template.format(incident=incident.pk, test=test.key, topic=topic_of(test.dataset))


@pytest.mark.parametrize("template", PAGES)
def test_it_shows(page: Client, template: str) -> None:
    answer = page.get(address(template))
    assert answer.status_code == 200
    assert answer.headers["Content-Security-Policy"] == POLICY
    html = answer.content.decode()
    assert not re.search(r"\sstyle=|\son\w+=\"|<style", html)
    assert not re.search(r"<script(?! src=)(?! id=\"[\w-]+\" type=\"application/json\")", html)
    assert "None" not in re.sub(r"<[^>]*>", "", html).replace("None.", "").replace("None yet", "")


@pytest.mark.parametrize("template", PAGES)
def test_it_is_for_people_who_are_signed_in(client: Client, flights: Dataset, template: str) -> None:
    answer = client.get(address(template))
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/sign-in?next=")


@pytest.mark.parametrize("template", PAGES)
def test_links_lead_somewhere(page: Client, template: str) -> None:
    """No dead entry: every link of a page that stays here is answered."""
    html = page.get(address(template)).content.decode()
    links = {link.replace("&amp;", "&") for link in re.findall(r'<a [^>]*href="(/[^"#]*)', html)}
    dead = {link for link in links - ANSWERED if page.get(link, follow=True).status_code != 200}
    assert dead == set()
    ANSWERED.update(links)


@pytest.mark.parametrize("template", MOST_QUERIES)
def test_queries_are_few_and_do_not_grow_with_the_fleet(page: Client, template: str) -> None:
    where = address(template)
    few = _queries(page, where)
    for number in range(6):
        dataset = make.dataset(f"more{number}", tier=number, copies=("dc1", "dc2"))
        for category in (Category.FRESHNESS, Category.DUPLICATES):
            test = make.quality_test(dataset, category)
            make.unit(test, make.copy_of(dataset, "dc1"), observed=3.0, threshold="< 1 h")
            bad = make.unit(test, make.copy_of(dataset, "dc2"), verdict="fail", observed=9.0, threshold="< 1 h")  # type: ignore[arg-type]
            make.incident(dataset, category, bad)
        make.schema_version(f"more{number}-value", {"type": "record", "name": "More", "fields": []})
    assert _queries(page, where) == few
    assert few == MOST_QUERIES[template]


def _queries(page: Client, where: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as seen:
        assert page.get(where).status_code == 200
    return len([query for query in seen if "clock_clockshift" not in query["sql"]])


def test_a_page_that_is_not_there_says_so(page: Client) -> None:
    answer = page.get("/datasets/fligths")
    assert answer.status_code == 404
    assert "Did you mean `flights`?" in answer.content.decode()
    assert "There is no incident #4711." in page.get("/incidents/4711").content.decode()
    assert page.get("/nothing/here").status_code == 404


def test_the_server_writes_the_theme(page: Client) -> None:
    assert "data-theme" not in page.get("/").content.decode().partition("<head>")[0]
    page.post("/theme")
    assert page.cookies["theme"].value == "light"
    assert '<html lang="en" data-theme="light">' in page.get("/").content.decode()


def test_an_unknown_theme_or_zone_in_a_cookie_is_ignored(page: Client) -> None:
    page.cookies["theme"] = '"><script>'
    page.cookies["zone"] = "../../etc/passwd"
    html = page.get("/").content.decode()
    assert "data-theme" not in html.partition("<head>")[0]
    assert "Times are in UTC." in html


def test_times_are_the_viewers(page: Client) -> None:
    assert "14:32 EST" in page.get("/").content.decode()
    page.cookies["zone"] = "Europe/Lisbon"
    assert "19:32 WET" in page.get("/").content.decode()


def test_a_live_part_comes_alone(page: Client) -> None:
    answer = page.get("/datasets", headers={"X-Fragment": "list"})
    assert answer.headers["X-As-Of"] == "14:32 EST"
    assert "X-Fragment" in answer.headers["Vary"]
    html = answer.content.decode()
    assert "<html" not in html
    assert "flights" in html


def test_an_unknown_part_is_the_whole_page(page: Client) -> None:
    assert "<html" in page.get("/datasets", headers={"X-Fragment": "nothing"}).content.decode()


def test_signing_in_and_out(client: Client, flights: Dataset) -> None:
    wrong = client.post("/sign-in", {"username": "ines", "password": "wrong"})
    assert "Name or password is wrong." in wrong.content.decode()
    right = client.post("/sign-in?next=/datasets", {"username": "ines", "password": make.PASSWORD, "next": "/datasets"})
    assert right.headers["Location"] == "/datasets"
    assert client.get("/sign-out").status_code == 405
    assert client.post("/sign-out").headers["Location"] == "/sign-in"
    assert client.get("/").status_code == 302


def test_plotly_is_served_from_here(client: Client) -> None:
    answer = client.get("/static/plotly/plotly.min.js")
    assert answer.status_code == 200
    assert b"plotly.js v" in next(iter(answer.streaming_content))  # type: ignore[attr-defined]
