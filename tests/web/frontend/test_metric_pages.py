"""Business metrics: registered by a form, listed with their verdict, shown with the tests that they make."""

from __future__ import annotations

import html as entities
import re
from typing import Any

import pytest
from django.test import Client

from lakehub.catalog.models import Dataset
from quality.models import Metric

FORM = {
    "name": "ontime_share",
    "dataset": "flights",
    "sql": "SELECT avg(CASE WHEN carrier = 'UA' THEN 1 ELSE 0 END) FROM this",
    "low": "0",
    "high": "1",
    "week_over_week": "20%",
    "description": "Share of flights on time",
}


def text_of(answer: Any) -> str:
    return entities.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode())))


def test_none_teaches_the_first(page: Client) -> None:
    assert "Register the first" in text_of(page.get("/business-metrics"))


def test_a_metric_is_registered_with_its_tests(page: Client, flights: Dataset) -> None:
    answer = page.post("/new-metric", FORM, follow=True)
    text = text_of(answer)
    assert "ontime_share is saved" in text
    assert "Share of flights on time." in text
    assert "ontime_share is within its bounds" in text
    assert "ontime_share against last week" in text
    assert "ontime_share" in text_of(page.get("/business-metrics"))


def test_a_change_keeps_the_name_and_the_dataset(page: Client, flights: Dataset) -> None:
    page.post("/new-metric", FORM)
    assert 'value="20%"' in page.get("/business-metrics/ontime_share/edit").content.decode()
    page.post("/business-metrics/ontime_share/edit", {**FORM, "name": "other", "week_over_week": "", "anomaly": "on"})
    metric = Metric.objects.get()
    assert (metric.name, metric.week_over_week, metric.anomaly) == ("ontime_share", "", True)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "Two Words", "cannot be the name of a metric"),
        ("dataset", "fligths", "Did you mean flights?"),
        ("sql", "DELETE FROM this", ""),
        ("low", "much", "is no number"),
        ("low", "2", "is not below the high bound"),
        ("week_over_week", "a lot", "write it in percent"),
    ],
)
def test_each_mistake_is_explained(page: Client, field: str, value: str, message: str) -> None:
    answer = page.post("/new-metric", {**FORM, field: value})
    assert answer.status_code == 422
    assert message in text_of(answer)
    assert not Metric.objects.exists()


def test_a_new_one_never_takes_the_place_of_another(page: Client, flights: Dataset) -> None:
    page.post("/new-metric", FORM)
    assert "already: change that one" in text_of(page.post("/new-metric", {**FORM, "high": "2"}))


def test_it_is_let_go(page: Client, flights: Dataset) -> None:
    page.post("/new-metric", FORM)
    page.post("/business-metrics/ontime_share/remove")
    assert not Metric.objects.exists()
    assert not flights.tests.filter(key__startswith="metric:", retired_at=None).exists()


def test_an_unknown_metric_names_the_nearest(page: Client, flights: Dataset) -> None:
    page.post("/new-metric", FORM)
    answer = page.get("/business-metrics/ontime_shar")
    assert answer.status_code == 404
    assert "Did you mean ontime_share?" in text_of(answer).replace("`", "")


def test_a_viewer_sees_no_control(page: Client, guest: Client) -> None:
    page.post("/new-metric", FORM)
    assert "Register" not in text_of(guest.get("/business-metrics"))
    assert "Edit…" not in text_of(guest.get("/business-metrics/ontime_share"))
    assert guest.post("/new-metric", {**FORM, "name": "mine"}).status_code == 403
    assert guest.get("/business-metrics/ontime_share/edit").status_code == 403
    assert guest.post("/business-metrics/ontime_share/remove").status_code == 403
