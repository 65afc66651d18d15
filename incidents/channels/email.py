"""E-mail through Django's mail settings, in plain text. A note that comes twice has the same Message-ID."""

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


class Email:
    """`address`: one, or several by comma."""

    def check(self, address: str) -> None:
        for one in address.split(","):
            try:
                validate_email(one.strip())
            except ValidationError:
                raise Refused(f"`{one}` is no e-mail address: write name@example.org.") from None

    def send(self, note: Note, address: str, *, now: datetime) -> None:
        if settings.EMAIL_BACKEND.endswith("smtp.EmailBackend") and not settings.EMAIL_HOST:
            raise CannotSend("No mail server is named: set LAKEHUB_SMTP_HOST.")
        domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip(">") or "lakehub"
        message = EmailMessage(
            subject=" ".join(note.subject.split()),
            body=note.body,
            to=[one.strip() for one in address.split(",")],
            headers={"Message-ID": f"<lakehub-{note.kind}-{note.id}@{domain}>", "Auto-Submitted": "auto-generated"},
            connection=get_connection(timeout=TIMEOUT),
        )
        try:
            message.send()
        except smtplib.SMTPRecipientsRefused as error:
            raise CannotSend(f"The mail server refused {address}: {error}", for_good=True) from error
        except (smtplib.SMTPException, OSError) as error:
            raise CannotSend(f"The mail server did not take it: {error}") from error
