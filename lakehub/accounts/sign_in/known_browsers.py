"""Browsers that somebody has signed in with before carry a signed cookie, so that a stranger's failures do not keep them out.

It opens nothing: it only says by what a failed attempt is counted (OWASP calls it a device cookie).
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from hashlib import sha256

from django.http import HttpRequest, HttpResponse

from lakehub.accounts.sign_in import signed_cookies

COOKIE_NAME = "known"
COOKIE_AGE = timedelta(days=180)


def known_browser(request: HttpRequest, name: str) -> str:
    """What names the browser, where `name` has signed in with it; empty: nobody has, or somebody else."""
    value = signed_cookies.remembered(request, COOKIE_NAME, lasts=COOKIE_AGE)
    if value is None:
        return ""
    whose, browser = value
    return str(browser) if whose == _digest(name) else ""


def remember_browser(request: HttpRequest, response: HttpResponse, name: str) -> None:
    """`name` has just signed in with this browser."""
    browser = known_browser(request, name) or secrets.token_hex(16)
    value = [_digest(name), browser]
    signed_cookies.remember(response, COOKIE_NAME, value, lasts=COOKIE_AGE, is_secure=request.is_secure())


def _digest(name: str) -> str:
    return sha256(name.strip().lower().encode()).hexdigest()
