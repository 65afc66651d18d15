"""Browsers that somebody has signed in with before carry a signed cookie, so that a stranger's failures do not keep them out.

It opens nothing: it only says by what a failed attempt is counted (OWASP calls it a device cookie).
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from hashlib import sha256

from django.core import signing
from django.http import HttpRequest, HttpResponse

COOKIE = "known"
KEPT = timedelta(days=180)
_SALT = "lakehub.accounts.known"


def browser_of(request: HttpRequest, name: str) -> str:
    """What names the browser, where `name` has signed in with it; empty: nobody has, or somebody else."""
    try:
        said = signing.loads(request.COOKIES.get(COOKIE, ""), salt=_SALT, max_age=KEPT)
    except signing.BadSignature:
        return ""
    whose, browser = said
    return str(browser) if whose == _digest(name) else ""


def remember(request: HttpRequest, response: HttpResponse, name: str) -> None:
    """`name` has just signed in with this browser."""
    browser = browser_of(request, name) or secrets.token_hex(16)
    response.set_cookie(
        COOKIE,
        signing.dumps([_digest(name), browser], salt=_SALT),
        max_age=KEPT,
        httponly=True,
        samesite="Lax",
        secure=request.is_secure(),
    )


def _digest(name: str) -> str:
    return sha256(name.strip().lower().encode()).hexdigest()
