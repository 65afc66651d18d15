"""What the suites of the channels share: a note, and receivers on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pytest_django import Settings

from incidents.channels import Notification
from tests.mail_server import Mailbox, mail_server
from tests.webhook_receiver import Receiver, web_server

NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)
FACTS = {
    "id": 214,
    "url": "https://lakehub.example/incidents/214",
    "dataset": "flights",
    "category": "consistency",
    "severity": "high",
    "state": "open",
    "cause": "weather <!channel> is late",
}
NOTE = Notification(
    7,
    "opened",
    "[opened] flights: rows\nare missing",
    "975 of 985, needs > 99.9%",
    FACTS,
    written_at=NOW,
    thread="incident-214",
)
ROUTING_KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    """On loopback, which is allowed: some tests take that back. PagerDuty is there too."""
    with web_server() as kept:
        settings.LAKEHUB_ALLOW_PRIVATE_WEBHOOKS = True
        settings.LAKEHUB_PAGERDUTY_URL = kept.url
        yield kept


@pytest.fixture
def mailbox(settings: Settings) -> Iterator[Mailbox]:
    """The mail server that the settings name; it tells nobody@example.org that there is no such person."""
    with mail_server("nobody@example.org") as kept:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", kept.port
        yield kept
