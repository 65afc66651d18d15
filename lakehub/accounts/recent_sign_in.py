"""What changes how somebody gets in needs a recent sign-in: a browser that was left open, or a stolen session, is not enough."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from lakehub.accounts.models import BrowserSession
from lakehub.accounts.sign_in.session_store import key_digest

RECENT = timedelta(minutes=15)
"""So long after signing in, what changes how somebody gets in is not asked about again."""
NOT_RECENT = "You signed in more than 15 minutes ago. Sign in again to do that; nothing was changed."
AGAIN = "again"
"""In the query of the sign-in page: it is shown to somebody who is signed in."""

_View = Callable[..., HttpResponseBase]


def signed_in_recently(session: SessionBase) -> bool:
    """Whether this session was begun, and its person shown to be who they are, within RECENT."""
    digest = key_digest(session.session_key or "")
    return BrowserSession.objects.filter(digest=digest, begun_at__gt=timezone.now() - RECENT).exists()


def sign_in_again_url(next_url: str) -> str:
    """Where somebody signs in anew and goes on at a place of ours."""
    return f"{reverse('sign-in')}?{urlencode({AGAIN: 1, 'next': next_url})}"


def needs_recent_sign_in(*, then: str | None = None) -> Callable[[_View], _View]:
    """For views that change something when they are posted to. Whoever signed in too long ago does so again, comes to the page
    `then` (without it, to the same address), and decides anew there: nothing is done yet."""

    def wrap(view: _View) -> _View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method == "POST" and not signed_in_recently(request.session):
                return redirect(sign_in_again_url(reverse(then) if then else request.get_full_path()))
            return view(request, *args, **kwargs)

        return guarded

    return wrap
