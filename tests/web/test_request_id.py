"""A request has an id, in its answer and in what is logged meanwhile."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.json_log import json_log


def test_the_id_of_a_proxy_is_taken_and_answered(client: Client) -> None:
    with json_log() as lines:
        answer = client.get("/static/none.css", headers={"X-Request-ID": "proxy-7f3a:1"})
    assert answer.status_code == 404
    assert answer.headers["X-Request-ID"] == "proxy-7f3a:1"
    (line,) = (line for line in lines if line["logger"] == "django.request")
    assert (line["request_id"], line["status_code"]) == ("proxy-7f3a:1", 404)


def test_without_one_each_request_gets_its_own(client: Client) -> None:
    made = {client.get("/health").headers["X-Request-ID"] for _ in range(3)}
    assert len(made) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in made)


@pytest.mark.parametrize("sent", ["a b", "x\r\nSet-Cookie: a=b", "ä", "", "9" * 65, "<script>"])
def test_an_id_that_is_none_is_not_taken(client: Client, sent: str) -> None:
    answered = client.get("/health", headers={"X-Request-ID": sent}).headers["X-Request-ID"]
    assert re.fullmatch("[0-9a-f]{32}", answered)
