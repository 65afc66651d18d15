"""Mail over SMTP, as a mail server on loopback receives it: one thread an incident, and what a server refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.core.mail import get_connection
from pytest_django import Settings

from incidents.channels import CHANNELS, DeliveryError
from tests.contracts.conftest import NOTE, NOW
from tests.mail_server import Mailbox, mail_server


def test_mail_has_one_line_of_subject_and_an_id_that_shows_a_note_that_comes_twice(mailbox: Mailbox) -> None:
    for _ in range(2):
        assert CHANNELS.get("email")().send(NOTE, "ops@example.org", now=NOW) == "250"
    (to, first), (_, second) = mailbox.got
    assert to == ["ops@example.org"]
    assert first["Subject"] == "[opened] flights: rows are missing"
    assert first["Message-ID"] == second["Message-ID"] == "<lakehub-message-7@localhost>"
    assert first["In-Reply-To"] is None


def test_an_incident_is_one_thread(mailbox: Mailbox) -> None:
    notes = [
        NOTE,
        replace(NOTE, id=9, occasion="acknowledged", previous_ids=(7,)),
        replace(NOTE, id=12, occasion="resolved", previous_ids=(7, 9)),
    ]
    for note in notes:
        CHANNELS.get("email")().send(note, "ops@example.org", now=NOW)
    first, second, third = (message for _, message in mailbox.got)
    assert second["In-Reply-To"] == second["References"] == first["Message-ID"]
    assert third["In-Reply-To"] == second["Message-ID"]
    assert third["References"].split() == [first["Message-ID"], second["Message-ID"]]


def test_no_mail_waits_for_ever_for_a_server_that_goes_silent() -> None:
    """Also one that is not a note: a link for a new password held a worker for an hour."""
    assert get_connection("django.core.mail.backends.smtp.EmailBackend").timeout == 10


def test_a_long_thread_names_its_first_and_its_latest(mailbox: Mailbox) -> None:
    CHANNELS.get("email")().send(replace(NOTE, id=999, previous_ids=tuple(range(1, 101))), "ops@example.org", now=NOW)
    named = mailbox.got[0][1]["References"].split()
    assert len(named) == 21
    assert (named[0], named[-1]) == ("<lakehub-message-1@localhost>", "<lakehub-message-100@localhost>")


@pytest.mark.parametrize(
    "subject", ["a\r\nBcc: spy@example.org", "a\nBcc: spy@example.org", "a\rBcc: x", "a\x0bb\x0cc\x85d"]
)
def test_no_subject_adds_a_header_or_a_reader(mailbox: Mailbox, subject: str) -> None:
    CHANNELS.get("email")().send(replace(NOTE, subject=subject), "ops@example.org", now=NOW)
    ((to, message),) = mailbox.got
    assert to == ["ops@example.org"]
    assert message["Bcc"] is None
    assert message["Subject"].startswith("a ")


def test_a_body_may_look_like_the_end_of_a_mail(mailbox: Mailbox) -> None:
    CHANNELS.get("email")().send(
        replace(NOTE, body="one\n.\nRCPT TO:<spy@example.org>\n..two"), "ops@example.org", now=NOW
    )
    ((to, message),) = mailbox.got
    assert to == ["ops@example.org"]
    assert message.get_content().split() == ["one", ".", "RCPT", "TO:<spy@example.org>", "..two"]


def test_who_does_not_exist_is_not_written_to_again(mailbox: Mailbox) -> None:
    with pytest.raises(DeliveryError, match=r"nobody@example\.org: 550 nobody here by that name") as caught:
        CHANNELS.get("email")().send(NOTE, "nobody@example.org", now=NOW)
    assert (caught.value.is_permanent, caught.value.status) == (True, "550")


def test_who_may_not_be_written_to_yet_is(settings: Settings) -> None:
    with mail_server(later=("slow@example.org",)) as kept:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", kept.port
        with pytest.raises(DeliveryError, match="450") as caught:
            CHANNELS.get("email")().send(NOTE, "slow@example.org", now=NOW)
    assert (caught.value.is_permanent, caught.value.status) == (False, "450")


def test_a_mail_server_that_is_down_is_tried_again(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    with pytest.raises(DeliveryError, match="did not take it") as caught:
        CHANNELS.get("email")().send(NOTE, "ops@example.org", now=NOW)
    assert not caught.value.is_permanent


def test_without_a_mail_server_it_says_which_setting_is_missing(settings: Settings) -> None:
    settings.EMAIL_BACKEND, settings.EMAIL_HOST = "django.core.mail.backends.smtp.EmailBackend", ""
    with pytest.raises(DeliveryError, match="LAKEHUB_SMTP_HOST"):
        CHANNELS.get("email")().send(NOTE, "owner@example.org", now=NOW)
