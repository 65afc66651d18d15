"""Browsers that somebody has signed in with before carry a signed cookie, so that a stranger's failures do not keep them out.

It opens nothing: it only says by what a failed attempt is counted (OWASP calls it a device cookie).
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from hashlib import sha256

from django.core import signing
from django.http import HttpRequest, HttpResponse

COOKIE_NAME = "known"
COOKIE_AGE = timedelta(days=180)
_SALT = "lakehub.accounts.sign_in.known_browsers"


def known_browser(request: HttpRequest, name: str) -> str:
    """What names the browser, where `name` has signed in with it; empty: nobody has, or somebody else."""
    try:
        cookie_value = signing.loads(request.COOKIES.get(COOKIE_NAME, ""), salt=_SALT, max_age=COOKIE_AGE)
    except signing.BadSignature:
        return ""
    whose, browser = cookie_value
    return str(browser) if whose == _digest(name) else ""


def remember_browser(request: HttpRequest, response: HttpResponse, name: str) -> None:
    """`name` has just signed in with this browser."""
    browser = known_browser(request, name) or secrets.token_hex(16)
    response.set_cookie(
        COOKIE_NAME,
        signing.dumps([_digest(name), browser], salt=_SALT),
        max_age=COOKIE_AGE,
        httponly=True,
        samesite="Lax",
        secure=request.is_secure(),
    )


def _digest(name: str) -> str:
    return sha256(name.strip().lower().encode()).hexdigest()
