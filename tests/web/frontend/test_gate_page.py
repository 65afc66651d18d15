"""The gate's question as a form, and its answer with reasons."""

from __future__ import annotations

import re

from django.test import Client

from incidents.models import GateQuestion


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
