"""E-mail through Django's mail settings, in plain text: one thread an incident. A note that comes twice has the same Message-ID."""

from __future__ import annotations

import smtplib
from datetime import datetime

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email

from incidents.channels import Channel, DeliveryError, Notification
from lakehub.kernel.errors import Refused

MAX_REFERENCES = 20


class Email(Channel):
    """`address`: one, or several by comma."""

    def check(self, address: str) -> None:
        for part in address.split(","):
            try:
                validate_email(part.strip())
            except ValidationError:
                raise Refused(f"`{part}` is no e-mail address: write name@example.org.") from None

    def shown(self, address: str) -> str:
        return address

    def send(self, note: Notification, address: str, *, now: datetime) -> str:
        if settings.EMAIL_BACKEND.endswith("smtp.EmailBackend") and not settings.EMAIL_HOST:
            raise DeliveryError("No mail server is named: set LAKEHUB_SMTP_HOST.")
        message = EmailMessage(
            subject=" ".join(note.subject.split()),
            body=note.body,
            to=[part.strip() for part in address.split(",")],
            headers=thread_headers(note),
        )
        try:
            message.send()
        except smtplib.SMTPRecipientsRefused as error:
            raise _recipients_refused(error) from error
        except smtplib.SMTPResponseException as error:
            why = f"The mail server did not take it: {error}"
            raise DeliveryError(why, is_permanent=_is_permanent(error), status=str(error.smtp_code)) from error
        except (smtplib.SMTPException, OSError) as error:
            raise DeliveryError(f"The mail server did not take it: {error}") from error
        return "250"


def thread_headers(note: Notification) -> dict[str, str]:
    """The first note of a thread begins it; each later one names those that this address had before (RFC 5322)."""
    headers = {"Message-ID": _message_id(note.kind, note.id), "Auto-Submitted": "auto-generated"}
    if note.previous_ids:
        earlier = [note.previous_ids[0], *note.previous_ids[1:][-MAX_REFERENCES:]]
        headers["In-Reply-To"] = _message_id(note.kind, note.previous_ids[-1])
        headers["References"] = " ".join(_message_id(note.kind, previous_id) for previous_id in earlier)
    if note.thread:
        headers["X-Lakehub-Thread"] = note.thread
    return headers


def _message_id(kind: str, number: int) -> str:
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip(">") or "lakehub"
    return f"<lakehub-{kind}-{number}@{domain}>"


def _recipients_refused(error: smtplib.SMTPRecipientsRefused) -> DeliveryError:
    """For good unless the server says of one of them that it may take it later (4yz)."""
    codes = [code for code, _ in error.recipients.values()]
    who = "; ".join(
        f"{address}: {code} {reason.decode(errors='replace')}" for address, (code, reason) in error.recipients.items()
    )
    later = any(code < 500 for code in codes)
    return DeliveryError(f"The mail server refused {who}", is_permanent=not later, status=str(max(codes, default="")))


def _is_permanent(error: smtplib.SMTPResponseException) -> bool:
    """The message itself was refused; who may log in or send can be mended by the operator meanwhile."""
    return isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500
