"""What every channel keeps to, whatever it sends through."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from pytest_django import Settings

from incidents.channels import CHANNELS, DeliveryError, redacted_address
from lakehub.kernel.errors import Refused
from tests.contracts.conftest import NOTE, NOW, ROUTING_KEY
from tests.mail_server import Mailbox
from tests.webhook_receiver import Receiver


@dataclass(frozen=True)
class Given:
    """A channel, an address that works, one that never can, what arrived, and what of the address is a secret."""

    name: str
    address: str
    bad_address: str
    arrived: Callable[[], list[str]]
    secret: str = ""


@pytest.fixture(params=list(CHANNELS))
def given(
    request: pytest.FixtureRequest, receiver: Receiver, mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> Given:
    def posted() -> list[str]:
        return [body.decode() for _, body in receiver.got]

    def mailed() -> list[str]:
        return [f"{message['Subject']} {message.get_content()}" for _, message in mailbox.got]

    made = {
        "email": Given("email", "ops@example.org", "ops at example", mailed),
        "webhook": Given("webhook", receiver.url, "ftp://example.org", posted, secret="team=ops"),
        "slack": Given("slack", receiver.url, "ftp://example.org", posted, secret="team=ops"),
        "pagerduty": Given("pagerduty", ROUTING_KEY, "hunter2", posted, secret=ROUTING_KEY[6:]),
        "apprise": Given(
            "apprise", f"json://127.0.0.1:{receiver.port}/hunter2", "pigeon://loft", posted, secret="hunter2"
        ),
        "log": Given("log", "flight-ops", "", lambda: [record.getMessage() for record in caplog.records]),
    }
    return made[request.param]


def test_a_note_arrives_once_with_what_it_says(given: Given) -> None:
    CHANNELS.get(given.name)().check(given.address)
    assert CHANNELS.get(given.name)().send(NOTE, given.address, now=NOW) in ("200", "250", "sent", "logged")
    (arrived,) = given.arrived()
    assert "rows are missing" in " ".join(arrived.replace("\\n", " ").split())


def test_an_address_that_can_never_work_is_refused_by_name(given: Given) -> None:
    if not given.bad_address:
        assert given.name == "log", "only the log takes every word"
        return
    shown_bad = (
        given.bad_address
        if not given.secret or "ftp" in given.bad_address
        else redacted_address(given.name, given.bad_address)
    )
    with pytest.raises(Refused, match=re.escape(shown_bad)):
        CHANNELS.get(given.name)().check(given.bad_address)


def test_what_is_secret_in_an_address_is_not_shown(given: Given) -> None:
    seen = redacted_address(given.name, given.address)
    assert seen
    assert not given.secret or given.secret not in seen


def test_what_does_not_arrive_is_said_without_the_secret(given: Given, receiver: Receiver, settings: Settings) -> None:
    receiver.status, settings.EMAIL_PORT = 503, 1
    if given.name == "log":
        return
    with pytest.raises(DeliveryError) as caught:
        CHANNELS.get(given.name)().send(NOTE, given.address, now=NOW)
    assert not caught.value.is_permanent
    assert not given.secret or given.secret not in str(caught.value)


def test_an_unknown_channel_is_answered_with_the_nearest() -> None:
    with pytest.raises(LookupError, match=r"no channel `e-mail`\. Did you mean `email`"):
        CHANNELS.get("e-mail")()
    assert redacted_address("e-mail", "ops@example.org") == "…"
