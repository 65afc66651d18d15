"""What the browser keeps for us on the way in: signed, for this host, out of reach of scripts. None of it opens anything by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase


def cookie_name(name: str) -> str:
    """With HTTPS, one that browsers take from this very host only, and over HTTPS."""
    return f"__Host-{name}" if settings.SESSION_COOKIE_SECURE else name


def remember(response: HttpResponseBase, name: str, value: Any, *, lasts: timedelta, is_secure: bool) -> None:
    """`value` is JSON; its signature counts for this cookie only."""
    response.set_cookie(
        cookie_name(name),
        signing.dumps(value, salt=_salt(name)),
        max_age=lasts,
        httponly=True,
        samesite="Lax",
        secure=is_secure or settings.SESSION_COOKIE_SECURE,
    )


def remembered(request: HttpRequest, name: str, *, lasts: timedelta) -> Any:
    """None where there is no such cookie, it was made by somebody else, or is too old."""
    try:
        return signing.loads(request.COOKIES.get(cookie_name(name), ""), salt=_salt(name), max_age=lasts)
    except signing.BadSignature:
        return None


def forget(response: HttpResponseBase, name: str) -> None:
    response.delete_cookie(cookie_name(name), samesite="Lax")


def _salt(name: str) -> str:
    return f"{__name__}.{name}"
