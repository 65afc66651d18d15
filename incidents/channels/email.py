"""E-mail through Django's mail settings, in plain text: one thread an incident. A note that comes twice has the same Message-ID."""

from __future__ import annotations

import smtplib
from datetime import datetime

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email

from incidents.channels import CannotSend, Note
from lakehub.kernel.errors import Refused

TIMEOUT = 10
MOST_REFERENCES = 20


class Email:
    """`address`: one, or several by comma."""

    def check(self, address: str) -> None:
        for one in address.split(","):
            try:
                validate_email(one.strip())
            except ValidationError:
                raise Refused(f"`{one}` is no e-mail address: write name@example.org.") from None

    def shown(self, address: str) -> str:
        return address

    def send(self, note: Note, address: str, *, now: datetime) -> str:
        if settings.EMAIL_BACKEND.endswith("smtp.EmailBackend") and not settings.EMAIL_HOST:
            raise CannotSend("No mail server is named: set LAKEHUB_SMTP_HOST.")
        message = EmailMessage(
            subject=" ".join(note.subject.split()),
            body=note.body,
            to=[one.strip() for one in address.split(",")],
            headers=headers(note),
            connection=get_connection(timeout=TIMEOUT),
        )
        try:
            message.send()
        except smtplib.SMTPRecipientsRefused as error:
            raise _refused(error) from error
        except smtplib.SMTPResponseException as error:
            why = f"The mail server did not take it: {error}"
            raise CannotSend(why, for_good=_for_good(error), status=str(error.smtp_code)) from error
        except (smtplib.SMTPException, OSError) as error:
            raise CannotSend(f"The mail server did not take it: {error}") from error
        return "250"


def headers(note: Note) -> dict[str, str]:
    """The first note of a thread begins it; each later one names those that this address had before (RFC 5322)."""
    made = {"Message-ID": _id_of(note.kind, note.id), "Auto-Submitted": "auto-generated"}
    if note.after:
        earlier = [note.after[0], *note.after[1:][-MOST_REFERENCES:]]
        made["In-Reply-To"] = _id_of(note.kind, note.after[-1])
        made["References"] = " ".join(_id_of(note.kind, one) for one in earlier)
    if note.thread:
        made["X-Lakehub-Thread"] = note.thread
    return made


def _id_of(kind: str, number: int) -> str:
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip(">") or "lakehub"
    return f"<lakehub-{kind}-{number}@{domain}>"


def _refused(error: smtplib.SMTPRecipientsRefused) -> CannotSend:
    """For good unless the server says of one of them that it may take it later (4yz)."""
    codes = [code for code, _ in error.recipients.values()]
    who = "; ".join(f"{one}: {code} {said.decode(errors='replace')}" for one, (code, said) in error.recipients.items())
    later = any(code < 500 for code in codes)
    return CannotSend(f"The mail server refused {who}", for_good=not later, status=str(max(codes, default="")))


def _for_good(error: smtplib.SMTPResponseException) -> bool:
    """The message itself was refused; who may log in or send can be mended by the operator meanwhile."""
    return isinstance(error, smtplib.SMTPDataError) and error.smtp_code >= 500
