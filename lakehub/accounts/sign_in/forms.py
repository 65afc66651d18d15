"""The form that people sign in with, for the pages and the console: one rule for how often they may try."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from lakehub import clock
from lakehub.accounts.models import User
from lakehub.accounts.sign_in import known_browsers, passwords, throttle
from lakehub.http.client_address import client_address

logger = logging.getLogger(__name__)


class SignInForm(AuthenticationForm):
    """`wait_s`: how many seconds the next attempt must wait; None: it need not. `has_ended`: the password was right, until lately."""

    wait_s: int | None = None
    has_ended = False

    def clean(self) -> dict[str, Any]:
        assert self.request is not None
        if not settings.LAKEHUB_LOCAL_PASSWORDS:
            raise ValidationError("Passwords are turned off here. Use single sign-on.", "no_passwords")
        name = self.cleaned_data.get("username")
        if not name:
            return super().clean()
        attempt = throttle.SignInAttempt(
            name, client_address(self.request), known_browsers.known_browser(self.request, name)
        )
        now = clock.now()
        try:
            throttle.register_attempt(attempt, now=now)
        except throttle.SignInLocked as locked:
            self.wait_s = seconds_until(locked.until, now=now)
            raise ValidationError(
                f"Too many attempts have failed. Try again in {wait_in_words(self.wait_s)}.", "locked"
            ) from None
        try:
            cleaned = super().clean()
        except ValidationError:
            # People type passwords into the wrong field: only a name that is somebody's is shown.
            known = User.objects.filter(username=name).exists()
            logger.warning("A password was refused, of %s", name if known else "a name that nobody has")
            raise
        throttle.clear_failures(attempt)
        return cleaned

    def confirm_login_allowed(self, user: AbstractBaseUser) -> None:
        assert isinstance(user, User)
        super().confirm_login_allowed(user)
        until = passwords.first_password_until(user)
        if until is not None and until <= clock.now():
            self.has_ended = True
            raise ValidationError(
                "The password that was made for you has expired. Ask an administrator of Lakehub for a new one.",
                "first_password_ended",
            )


def seconds_until(instant: datetime, *, now: datetime) -> int:
    return max(1, round((instant - now).total_seconds()))


def wait_in_words(seconds: int) -> str:
    minutes = -(-seconds // 60)
    return f"{seconds} s" if seconds < 60 else f"{minutes} minute{'s' if minutes > 1 else ''}"
