"""Work that runs only on data that may be read, against a server on the loopback that answers as Lakehub does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lakehub_client import Blocked, Client, Input, LakehubError, require_quality, wait_for

DAY = ("2026-11-16", "2026-11-17")
FLIGHTS = [Input("flights", *DAY)]


def said(allowed: bool, retry_after: float | None = None) -> dict[str, Any]:
    reasons = [{"verdict": "fail", "reason": "sustained", "blocks": True}]
    answer = {"dataset": "flights", "data_center": "dc1", "allowed": allowed, "reasons": reasons, "incidents": [214]}
    return {
        "verdict": "pass" if allowed else "fail",
        "allowed": allowed,
        "retry_after": retry_after,
        "answers": [answer],
    }


class Lakehub(ThreadingHTTPServer):
    """Answers what it was told to, in turn; the last one for ever."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[tuple[int, dict[str, str], Any]] = []
        self.asked: list[tuple[str, dict[str, str], Any]] = []

    def will_say(self, body: Any, status: int = 200, **headers: str) -> None:
        self.script.append((status, {name.replace("_", "-"): value for name, value in headers.items()}, body))

    @property
    def client(self) -> Client:
        return Client(f"http://127.0.0.1:{self.server_port}", "lh_secret")


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.asked.append((self.path, dict(self.headers), body))
        status, headers, answer = server.script.pop(0) if len(server.script) > 1 else server.script[0]
        sent = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(sent)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def lakehub() -> Iterator[Lakehub]:
    with Lakehub() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Time:
    """Sleeping moves it."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


def test_a_block_runs_where_all_may_be_read(lakehub: Lakehub) -> None:
    lakehub.will_say(said(True))
    with require_quality(["flights", "weather@dc2"], DAY, client=lakehub.client, request_id="run 7") as answer:
        assert answer.verdict == "pass"
    (path, headers, body) = lakehub.asked[0]
    assert (path, headers["Authorization"]) == ("/api/v1/gate", "Bearer lh_secret")
    assert body == {
        "request_id": "run 7",
        "inputs": [
            {"dataset": "flights", "from": DAY[0], "to": DAY[1], "dc": ""},
            {"dataset": "weather", "from": DAY[0], "to": DAY[1], "dc": "dc2"},
        ],
    }


def test_a_block_does_not_run_while_one_is_blocked(lakehub: Lakehub) -> None:
    lakehub.will_say(said(False, 540.0))
    needed = require_quality("flights", DAY, client=lakehub.client)
    with pytest.raises(Blocked, match=r"flights@dc1 is fail: sustained, incident #214") as blocked, needed:
        raise AssertionError("It ran.")
    assert blocked.value.answer.retry_after == 540.0
    assert len(lakehub.asked) == 1


def test_a_function_asks_at_each_call_about_the_range_of_that_moment(lakehub: Lakehub) -> None:
    lakehub.will_say(said(True))
    days = iter([16, 17])

    @require_quality(
        "flights", lambda: (date(2026, 11, day := next(days)), date(2026, 11, day + 1)), client=lakehub.client
    )
    def experiment(by: int) -> int:
        return 2 * by

    assert [experiment(1), experiment(2)] == [2, 4]
    assert [body["inputs"][0]["from"] for _, _, body in lakehub.asked] == ["2026-11-16", "2026-11-17"]


def test_what_the_block_raises_passes(lakehub: Lakehub) -> None:
    lakehub.will_say(said(True))
    with pytest.raises(KeyError), require_quality("flights", DAY, client=lakehub.client):
        raise KeyError("x")


def test_it_waits_as_long_as_the_gate_says_and_no_longer_than_a_minute(lakehub: Lakehub, time: Time) -> None:
    for wait in (5.0, 540.0, 0.2):
        lakehub.will_say(said(False, wait))
    lakehub.will_say(said(True))
    answer = wait_for(FLIGHTS, deadline_s=600, client=lakehub.client, sleep=time.sleep, clock=time)
    assert (answer.allowed, time.slept) == (True, [5.0, 60.0, 1.0])


def test_it_gives_up_at_the_deadline(lakehub: Lakehub, time: Time) -> None:
    lakehub.will_say(said(False, 40.0))
    with pytest.raises(Blocked):
        wait_for(FLIGHTS, deadline_s=100, client=lakehub.client, sleep=time.sleep, clock=time)
    assert (time.slept, len(lakehub.asked)) == ([40.0, 40.0, 20.0], 4)


def test_who_asks_too_often_waits_as_it_is_told(lakehub: Lakehub, time: Time) -> None:
    lakehub.will_say({"error": {"code": "throttled", "message": "Too often."}}, 429, Retry_After="7")
    lakehub.will_say({"error": {"code": "error", "message": "Down."}}, 503)
    lakehub.will_say(said(True))
    assert wait_for(FLIGHTS, deadline_s=0, client=lakehub.client, sleep=time.sleep, clock=time).allowed
    assert time.slept[0] == 7.0
    assert 1.0 <= time.slept[1] <= 2.0


def test_a_question_that_is_refused_is_not_asked_again(lakehub: Lakehub, time: Time) -> None:
    lakehub.will_say({"error": {"code": "not_found", "message": "There is no dataset `flihgts`."}}, 404)
    with pytest.raises(LakehubError, match="There is no dataset") as refused:
        wait_for(FLIGHTS, deadline_s=600, client=lakehub.client, sleep=time.sleep, clock=time)
    assert (refused.value.status, time.slept) == (404, [])


def test_who_is_out_of_reach_is_tried_for_a_while(time: Time) -> None:
    nobody = Client("http://127.0.0.1:9", "lh_secret")
    with pytest.raises(LakehubError, match="was not reached"):
        wait_for(FLIGHTS, deadline_s=0, client=nobody, sleep=time.sleep, clock=time)
    assert 3 <= len(time.slept) <= 10
    assert time.now <= 30


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"<html>Sign in to the proxy</html>", {}),
        (b'{"verdict": "pa', {}),
        (b'{"verdict": "pass"}', {}),
        (b'["pass"]', {}),
        (b"\xff", {}),
        (b"{}", {"Content-Length": "99"}),
    ],
    ids=["a proxy's page", "cut json", "parts are missing", "no object", "no text", "cut answer"],
)
def test_what_is_no_answer_is_asked_again(lakehub: Lakehub, time: Time, body: bytes, headers: dict[str, str]) -> None:
    lakehub.script.append((200, headers, body))
    with pytest.raises(LakehubError, match="is no answer of Lakehub's") as problem:
        lakehub.client.gate(FLIGHTS)
    assert (problem.value.status, problem.value.is_transient) == (0, True)
    lakehub.will_say(said(True))
    assert wait_for(FLIGHTS, deadline_s=0, client=lakehub.client, sleep=time.sleep, clock=time).allowed
    assert len(time.slept) == 1


def test_a_refusal_that_is_cut_short_is_a_refusal(lakehub: Lakehub) -> None:
    lakehub.script.append((403, {"Content-Length": "99"}, b'{"error": '))
    with pytest.raises(LakehubError, match="answered 403") as refused:
        lakehub.client.gate(FLIGHTS)
    assert refused.value.status == 403


def test_the_token_is_not_taken_elsewhere(lakehub: Lakehub) -> None:
    lakehub.will_say({}, 307, Location="http://127.0.0.1:9/")
    with pytest.raises(LakehubError) as refused:
        lakehub.client.gate(FLIGHTS)
    assert refused.value.status == 307
    assert len(lakehub.asked) == 1


def test_a_query_is_asked_about(lakehub: Lakehub) -> None:
    lakehub.will_say(said(True))
    assert lakehub.client.gate_of_query("SELECT * FROM flights", dialect="spark").allowed
    assert lakehub.asked[0][0] == "/api/v1/gate/query"


def test_where_lakehub_is_comes_from_the_environment() -> None:
    with pytest.raises(LakehubError, match="Set LAKEHUB_TOKEN"):
        Client.from_environment({"LAKEHUB_URL": "https://lakehub.example.org"})
    assert Client.from_environment({"LAKEHUB_URL": "https://h/", "LAKEHUB_TOKEN": "x"}).url == "https://h"


def test_a_time_without_an_offset_is_refused_before_it_is_sent(lakehub: Lakehub) -> None:
    with pytest.raises(ValueError, match="has no offset"):
        lakehub.client.gate([Input("flights", datetime(2026, 11, 16), datetime(2026, 11, 17, tzinfo=UTC))])
    assert lakehub.asked == []
