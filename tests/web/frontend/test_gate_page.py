"""The gate's question as a form, and its answer with reasons."""

from __future__ import annotations

import re

from django.test import Client

from incidents.models import GateOverride, GatePolicy, GateQuestion


def text_of(page: Client, query: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.get(f"/gate?{query}").content.decode()))


def test_it_answers_for_each_data_center(page: Client) -> None:
    text = text_of(page, "dataset=flights&from=2026-11-14&to=2026-11-17")
    assert "flights: dc1 may be read, dc2 must wait" in text
    assert "Read flights over [14 Nov, 17 Nov) in dc1." in text
    assert "Do not read flights over [14 Nov, 17 Nov) in dc2." in text
    assert "Mon 16 Nov fails: Cross-dc consistency, Rows of dc1, incident #" in text


def test_it_says_when_to_ask_again_and_what_to_ask_instead(page: Client) -> None:
    html = page.get("/gate?dataset=flights&from=2026-11-14&to=2026-11-17&dc=dc2").content.decode()
    assert "Ask again at" in html
    narrower = re.findall(r'href="(/gate[^"]*)">Ask for \[14 Nov, 16 Nov\) instead', html)
    assert "You may read" in text_of(
        page, narrower[0].partition("?")[2].replace("&amp;", "&")
    ) or "Read flights" in text_of(page, narrower[0].partition("?")[2].replace("&amp;", "&"))


def test_an_end_that_is_left_out_means_the_day_of_the_start(page: Client) -> None:
    assert "over Mon 16 Nov in dc2" in text_of(page, "dataset=flights&from=2026-11-16&dc=dc2")


def test_tomorrow_is_not_due(page: Client) -> None:
    assert "Wed 18 Nov is not due yet" in text_of(page, "dataset=flights&from=2026-11-18&dc=dc1")


def test_errors_name_the_value_and_the_remedy(page: Client) -> None:
    assert "There is no dataset fligths . Did you mean flights ?" in text_of(page, "dataset=fligths")
    assert "not after its start" in text_of(page, "dataset=flights&from=2026-11-16&to=2026-11-01")
    assert "yesterday is no time" in text_of(page, "dataset=flights&from=yesterday")
    assert page.get("/gate?dataset=flights&from=yesterday").status_code == 422
    assert "flights has no copy in dc9 . Did you mean dc" in text_of(page, "dataset=flights&dc=dc9")


def test_looking_is_no_question_of_a_job(page: Client) -> None:
    before = GateQuestion.objects.count()
    page.get("/gate?dataset=flights&from=2026-11-16")
    assert GateQuestion.objects.count() == before


def test_it_shows_the_call_that_does_the_same(page: Client) -> None:
    html = page.get("/gate?dataset=flights&from=2026-11-16&dc=dc2").content.decode()
    assert "GET /api/v1/gate?dataset=flights&amp;from=2026-11-16" in html
    assert "&quot;allowed&quot;: false" in html
    assert "&quot;start&quot;: &quot;2026-11-16T05:00:00Z&quot;" in html


SQL = "SELECT * FROM flights f JOIN planes p ON f.tailnum = p.tailnum WHERE f.flight_date >= '2026-11-16' AND f.flight_date < '2026-11-17'"


def test_a_query_is_asked_about_as_a_whole_where_nothing_bounds_it(page: Client) -> None:
    answer = page.post("/gate/query", {"sql": SQL, "dialect": "duckdb", "dc": "dc1"})
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))
    assert "Do not run the query" in text
    assert "It may read flights over Mon 16 Nov in dc1." in text
    assert "It may not read planes over all data in dc1." in text
    assert "by flight_date" in text
    assert "a query reads it as a whole" in text


def test_a_query_that_makes_no_sense_says_where(page: Client) -> None:
    for sql, message in (
        ("SELECT (", "line 1"),
        ("SELECT * FROM flihgts", "Did you mean"),
        ("DROP TABLE flights", "not DROP"),
    ):
        answer = page.post("/gate/query", {"sql": sql})
        assert (answer.status_code, message in answer.content.decode()) == (422, True), sql


def test_an_override_is_made_on_the_page_shown_and_ended(page: Client) -> None:
    asked = "/gate?dataset=flights&from=2026-11-16&to=2026-11-17&dc=dc2"
    assert "Override with a reason" in page.get(asked).content.decode()
    form = {"dataset": "flights", "from": "2026-11-16", "to": "2026-11-17", "dc": "dc2", "reason": "The mean is right."}
    assert (
        page.post("/gate/override", {**form, "until": "2026-11-18T09:00", "next": asked}).headers["Location"] == asked
    )
    text = text_of(page, asked.partition("?")[2])
    assert "You may read flights over Mon 16 Nov in dc2" in text
    assert "may be read by everybody: “The mean is right.”" in text
    assert page.post(f"/gate/overrides/{GateOverride.objects.get().pk}/end").status_code == 302
    assert "Do not read flights" in text_of(page, asked.partition("?")[2])
    assert page.post("/gate/overrides/4711/end").status_code == 404


def test_an_override_without_an_end_is_refused(page: Client) -> None:
    form = {"dataset": "flights", "from": "2026-11-16", "to": "2026-11-17", "reason": "x"}
    assert "Nothing was changed." in page.post("/gate/override", form, follow=True).content.decode()
    assert not GateOverride.objects.exists()


def test_a_policy_in_the_shadow_is_shown_as_such(page: Client) -> None:
    GatePolicy.objects.create(consumer="ines", tier=None, preset="strict", shadow=True)
    text = text_of(page, "dataset=flights&from=2026-11-16&dc=dc2")
    assert "fail, unknown, warn block, in the shadow: it only watches, and would block this; asked as ines" in text
