"""What every channel keeps to, whatever it sends through."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from django.core import mail
from pytest_django import Settings

from incidents.channels import CHANNELS, CannotSend, Note, channel
from incidents.channels.webhook import SIGNATURE, TIMESTAMP, secret_for, signature
from lakehub.kernel.errors import Refused

NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)
NOTE = Note(
    7, "opened", "[opened] flights: rows\nare missing", "975 of 985, needs > 99.9%", {"id": 214, "dataset": "flights"}
)


@dataclass
class Receiver:
    """A web server that keeps what it got, and answers as it is told."""

    status: int = 200
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.got.append((dict(self.headers), body))
            self.send_response(kept.status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_port}/hook?team=ops"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield kept
    server.shutdown()
    thread.join()
    server.server_close()


@dataclass(frozen=True)
class Given:
    """A channel, an address that works, one that never can, and what arrived."""

    name: str
    address: str
    bad_address: str
    arrived: Callable[[], list[str]]


@pytest.fixture(params=list(CHANNELS))
def given(
    request: pytest.FixtureRequest, receiver: Receiver, settings: Settings, caplog: pytest.LogCaptureFixture
) -> Given:
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = True
    made = {
        "email": Given(
            "email", "ops@example.org", "ops at example", lambda: [f"{m.subject} {m.body}" for m in mail.outbox]
        ),
        "webhook": Given(
            "webhook", receiver.url, "ftp://example.org", lambda: [body.decode() for _, body in receiver.got]
        ),
        "log": Given("log", "flight-ops", "", lambda: [record.getMessage() for record in caplog.records]),
    }
    return made[request.param]


def test_a_note_arrives_once_with_what_it_says(given: Given) -> None:
    channel(given.name).check(given.address)
    channel(given.name).send(NOTE, given.address, now=NOW)
    (arrived,) = given.arrived()
    assert "rows" in arrived
    assert "are missing" in arrived


def test_an_address_that_can_never_work_is_refused_by_name(given: Given) -> None:
    if not given.bad_address:
        assert given.name == "log", "only the log takes every word"
        return
    with pytest.raises(Refused, match=given.bad_address):
        channel(given.name).check(given.bad_address)


# What is particular to one


def test_mail_has_one_line_of_subject_and_an_id_that_shows_a_note_that_comes_twice() -> None:
    channel("email").send(NOTE, "ops@example.org", now=NOW)
    (message,) = mail.outbox
    assert message.subject == "[opened] flights: rows are missing"
    assert message.extra_headers["Message-ID"].startswith("<lakehub-message-7@")


def test_a_mail_server_that_is_down_is_tried_again(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    with pytest.raises(CannotSend, match="did not take it") as caught:
        channel("email").send(NOTE, "ops@example.org", now=NOW)
    assert not caught.value.for_good


def test_without_a_mail_server_it_says_which_setting_is_missing(settings: Settings) -> None:
    settings.EMAIL_BACKEND, settings.EMAIL_HOST = "django.core.mail.backends.smtp.EmailBackend", ""
    with pytest.raises(CannotSend, match="LAKEHUB_SMTP_HOST"):
        channel("email").send(NOTE, "owner@example.org", now=NOW)


def test_a_receiver_can_check_who_sent_a_webhook_and_when(receiver: Receiver, settings: Settings) -> None:
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = True
    channel("webhook").send(NOTE, receiver.url, now=NOW)
    ((headers, body),) = receiver.got
    assert headers[SIGNATURE] == signature(secret_for(receiver.url), headers[TIMESTAMP], body)
    assert headers[TIMESTAMP] == str(int(NOW.timestamp()))
    assert json.loads(body)["incident"] == {"id": 214, "dataset": "flights"}


@pytest.mark.parametrize(("status", "for_good"), [(500, False), (429, False), (404, True), (302, True)])
def test_only_what_may_pass_is_tried_again(receiver: Receiver, settings: Settings, status: int, for_good: bool) -> None:
    settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = True
    receiver.status = status
    with pytest.raises(CannotSend, match=f"127.0.0.1 answered {status}") as caught:
        channel("webhook").send(NOTE, receiver.url, now=NOW)
    assert caught.value.for_good is for_good


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.7", "169.254.169.254", "192.168.1.1", "[fd00::1]"]
)
def test_a_webhook_never_reaches_into_this_network(receiver: Receiver, host: str) -> None:
    port = receiver.url.split(":")[2].split("/")[0]
    with pytest.raises(
        CannotSend, match=r"inside this network\. LAKEHUB_ALLOW_PRIVATE_WEBHOOKS=1 allows that"
    ) as caught:
        channel("webhook").send(NOTE, f"http://{host}:{port}/hook", now=NOW)
    assert caught.value.for_good
    assert receiver.got == []


def test_a_url_with_a_password_is_refused() -> None:
    with pytest.raises(Refused, match="no user and password"):
        channel("webhook").check("https://me:secret@example.org/hook")


def test_an_unknown_channel_is_answered_with_the_nearest() -> None:
    with pytest.raises(LookupError, match=r"no channel `e-mail`\. Did you mean `email`"):
        channel("e-mail")
