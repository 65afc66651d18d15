"""A new password: one's own, or by a link that is mailed. Other browsers are signed out by it.

Whether somebody has an address shows nowhere: each request is a row, and a worker looks who is meant. The link is Django's token:
it works once, as it covers the password that it replaces, and for an hour (settings.PASSWORD_RESET_TIMEOUT).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Min, Q
from django.urls import reverse
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import PasswordResetRequest, User
from lakehub.accounts.sign_in import throttle
from lakehub.accounts.sign_in.sessions import end_sessions
from lakehub.processes.task_wakeup import wake_task
from lakehub.processes.wakeups import earliest

MAX_PEOPLE = 5
"""With one address, who get a link each."""
_CLAIM_LASTS = timedelta(minutes=5)
_MAX_BATCH = 50


def can_mail() -> bool:
    """Whether this instance sends mail, and lets people in by passwords."""
    sends = not settings.EMAIL_BACKEND.endswith("smtp.EmailBackend") or bool(settings.EMAIL_HOST)
    return bool(sends and settings.LAKEHUB_LOCAL_PASSWORDS)


def change_password(person: User, password: str, *, action: str, now: datetime, session_key: str | None = None) -> None:
    """A password that was checked; `session_key` names the browser that stays signed in."""
    name = person.get_username()
    with transaction.atomic():
        person.set_password(password)
        person.save(update_fields=["password", "first_password_until"])
        audit_log.record(name, action, f"person:{name}", now=now)
        end_sessions(person, actor=name, now=now, keep=session_key)


def first_password_until(person: User) -> datetime | None:
    """Until when the password that was made for the person opens; None: it is one of their own."""
    until: datetime | None = User.objects.values_list("first_password_until", flat=True).get(pk=person.pk)
    return until


def request_reset(email: str, *, address: str, now: datetime) -> None:
    """Takes the same time and leaves the same row for everybody. Raises SignInLocked."""
    throttle.register_attempt(throttle.MailAttempt(email, address), now=now)
    with transaction.atomic():
        PasswordResetRequest.objects.create(email=email, at=now)
        wake_task("lakehub.accounts.tasks.send_password_links")


def send_links(*, now: datetime) -> int:
    """Mails what was asked for within the hour. The number of mails; one that cannot be sent is tried again, and raises."""
    PasswordResetRequest.objects.filter(at__lt=now - timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)).delete()
    free = Q(claimed_at=None) | Q(claimed_at__lt=now - _CLAIM_LASTS)
    sent = 0
    for request in PasswordResetRequest.objects.filter(free).order_by("pk")[:_MAX_BATCH]:
        if PasswordResetRequest.objects.filter(free, pk=request.pk).update(claimed_at=now):
            sent += sum(_send_link(person) for person in _people_with(request.email))
            request.delete()
    return sent


def next_link_at() -> datetime | None:
    """When there is a mail to send, or one to try again; None: nobody waits for one."""
    waiting = PasswordResetRequest.objects.aggregate(
        asked_at=Min("at", filter=Q(claimed_at=None)), claimed_at=Min("claimed_at")
    )
    claimed_at = waiting["claimed_at"]
    return earliest(waiting["asked_at"], claimed_at + _CLAIM_LASTS if claimed_at else None)


def person_of_link(key: str, token: str) -> User | None:
    """Whose link it is; None where it was used, is too old, or nobody's."""
    try:
        person = User.objects.filter(pk=int(urlsafe_base64_decode(key).decode()), is_active=True).first()
    except (ValueError, OverflowError):
        return None
    return person if person and default_token_generator.check_token(person, token) else None


def _people_with(email: str) -> list[User]:
    people = User.objects.filter(email__iexact=email, is_active=True).order_by("pk")[:MAX_PEOPLE]
    return [person for person in people if email and person.has_usable_password()]


def _send_link(person: User) -> int:
    key = urlsafe_base64_encode(str(person.pk).encode())
    path = reverse("password-reset", args=[key, default_token_generator.make_token(person)])
    text = (
        f"Somebody, probably you, asked for a new password for {person.get_username()} in Lakehub.\n\n"
        f"{settings.LAKEHUB_BASE_URL}{path}\n\n"
        "The link works once, within an hour. If it was not you, ignore this mail: your password does not change.\n"
    )
    return EmailMessage("A new password for Lakehub", text, settings.DEFAULT_FROM_EMAIL, [person.email]).send()
