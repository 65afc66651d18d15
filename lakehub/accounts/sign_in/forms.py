"""The forms that people sign in with, on the pages and on the console: one rule for how often they may try."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from lakehub import clock
from lakehub.accounts.sign_in import known_browsers, throttle


class SignInForm(AuthenticationForm):
    """`wait_s`: how many seconds the next attempt must wait; None: it need not."""

    wait_s: int | None = None

    def clean(self) -> dict[str, Any]:
        assert self.request is not None
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
            self.wait_s = max(1, round((locked.until - now).total_seconds()))
            raise ValidationError(
                f"Too many attempts have failed. Try again in {wait_in_words(self.wait_s)}.", "locked"
            ) from None
        cleaned = super().clean()
        throttle.clear_failures(attempt)
        return cleaned


class ConsoleSignInForm(SignInForm, AdminAuthenticationForm):
    """For staff only."""


def client_address(request: HttpRequest) -> str:
    """Where the request comes from: behind LAKEHUB_PROXIES proxies, what the first of them saw; anybody can write the rest."""
    addresses = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",") if part.strip()]
    proxies = settings.LAKEHUB_PROXIES
    if proxies and len(addresses) >= proxies:
        return addresses[-proxies]
    return str(request.META.get("REMOTE_ADDR", ""))


def wait_in_words(seconds: int) -> str:
    minutes = -(-seconds // 60)
    return f"{seconds} s" if seconds < 60 else f"{minutes} minute{'s' if minutes > 1 else ''}"
