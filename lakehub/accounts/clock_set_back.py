"""Signing in after the clock was set back: see `lakehub.clock.set_back`."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakehub.accounts.models import BrowserSession, PasswordResetRequest, SignInTries, Token
from lakehub.clock.set_back import bring_back, shift


def put_right(*, now: datetime, back: timedelta) -> None:
    """Who has to wait waits for as long as was meant; a link by mail is sent, and no session lives longer for it."""
    shift(SignInTries.objects.all(), "locked_until", now=now, back=back)
    bring_back(SignInTries.objects.all(), "last_at", now=now)
    bring_back(PasswordResetRequest.objects.all(), "at", "claimed_at", now=now)
    bring_back(BrowserSession.objects.all(), "begun_at", "last_seen_at", now=now)
    bring_back(Token.objects.all(), "last_used_at", now=now)
