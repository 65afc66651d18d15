"""The browsers in which somebody is signed in: begun in one place, listed, and ended."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth import login
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import BrowserSession, User
from lakehub.accounts.sign_in.browser_names import browser_name
from lakehub.accounts.sign_in.session_store import ORIGIN_KEYS, ended, key_digest
from lakehub.http.client_address import client_address
from lakehub.kernel.errors import NotFound

MAX_SESSIONS = 20
"""Of one person: the one that was seen longest ago ends for the next."""
SECOND_STEP_KEY = "second_step"
"""In a session: a code was asked for and was right, or was agreed on in it."""
FIRST_PASSWORD_KEY = "first_password"  # noqa: S105 - a key of sessions
"""In a session: it began with a password that was made for the person."""


def begin_session(request: HttpRequest, person: User, *, second_step: bool, first_password: bool = False) -> None:
    """Signs the person in: the only way in, for the pages, the console and single sign-on."""
    values = (client_address(request), browser_name(request.headers.get("User-Agent", "")))
    if request.user.is_authenticated:
        # Django keeps the session of somebody who signs in again, with its key and its age.
        request.session.flush()
    login(request, person, backend="django.contrib.auth.backends.ModelBackend")
    request.session.update(dict(zip(ORIGIN_KEYS, values, strict=True)))
    if second_step:
        request.session[SECOND_STEP_KEY] = True
    if first_password:
        request.session[FIRST_PASSWORD_KEY] = True
    newest = BrowserSession.objects.filter(user=person).order_by("-last_seen_at", "-pk").values_list("pk", flat=True)
    # The new one is the person's when the request ends, so one place is kept for it.
    surplus = list(newest[MAX_SESSIONS - 1 :])
    if surplus:
        BrowserSession.objects.filter(pk__in=surplus).delete()


def live_sessions(person: User) -> QuerySet[BrowserSession]:
    """Newest first."""
    return (
        BrowserSession.objects.filter(user=person).exclude(ended(now=timezone.now())).order_by("-last_seen_at", "-pk")
    )


def end_session(person: User, number: int, *, now: datetime) -> None:
    """One of the person's own. Raises NotFound."""
    with transaction.atomic():
        if not BrowserSession.objects.filter(user=person, pk=number).delete()[0]:
            raise NotFound("That session has already ended.")
        name = person.get_username()
        audit_log.record(name, "end session", f"person:{name}", now=now, sessions=1)


def end_sessions(person: User, *, actor: str, now: datetime, keep: str | None = None) -> int:
    """All of the person's, but the one with the key `keep`. The number that ended."""
    sessions = BrowserSession.objects.filter(user=person)
    if keep:
        sessions = sessions.exclude(digest=key_digest(keep))
    with transaction.atomic():
        session_count = sessions.delete()[0]
        if session_count:
            subject = f"person:{person.get_username()}"
            audit_log.record(actor, "end sessions", subject, now=now, sessions=session_count)
    return session_count
