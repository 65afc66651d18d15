"""The way to the provider and back. What must come back the same is in a signed cookie of this browser, for ten minutes."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse

from lakehub.accounts.sign_in import signed_cookies
from lakehub.accounts.single_sign_on import provider

COOKIE_NAME = "sso"
LASTS = timedelta(minutes=10)
_MAX_CODE_LENGTH = 4096


class RoundTripRefused(Exception):
    """What came back is not what was sent. The message is for the person."""


@dataclass(frozen=True)
class RoundTrip:
    """One attempt to sign in; `next_url` is a place of ours."""

    state: str
    nonce: str
    verifier: str
    next_url: str


def begin(next_url: str, *, again: bool = False) -> tuple[str, RoundTrip]:
    """Where the browser goes, and what to remember in it. `again`: the provider asks though it knows who it is. Raises ProviderError."""
    trip = RoundTrip(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48), next_url)
    url = provider.authorization_url(
        redirect_uri=redirect_uri(), state=trip.state, nonce=trip.nonce, verifier=trip.verifier, again=again
    )
    return url, trip


def finish(request: HttpRequest, parameters: Mapping[str, str]) -> tuple[dict[str, Any], RoundTrip]:
    """The verified claims of who came back. Raises RoundTripRefused, ProviderError."""
    trip = _remembered(request)
    if trip is None or not hmac.compare_digest(trip.state.encode(), parameters.get("state", "").encode()):
        raise RoundTripRefused("This sign-in did not start in this browser, or it started more than ten minutes ago.")
    if (issuer := parameters.get("iss")) is not None and issuer != settings.LAKEHUB_OIDC_ISSUER:
        raise RoundTripRefused("The answer came from a different provider than the one that was asked.")
    code = parameters.get("code", "")
    if not code or len(code) > _MAX_CODE_LENGTH:
        raise RoundTripRefused("The provider refused the sign-in.")
    claims = provider.claims_for_code(code, redirect_uri=redirect_uri(), nonce=trip.nonce, verifier=trip.verifier)
    return claims, trip


def redirect_uri() -> str:
    """Where the provider sends the browser back to: to be registered there."""
    return f"{settings.LAKEHUB_BASE_URL}{reverse('single-sign-on-back')}"


def remember(request: HttpRequest, response: HttpResponseBase, trip: RoundTrip) -> None:
    value, is_secure = astuple(trip), request.is_secure()
    signed_cookies.remember(response, COOKIE_NAME, value, lasts=LASTS, is_secure=is_secure)


def forget(response: HttpResponseBase) -> None:
    """Each attempt comes back once."""
    signed_cookies.forget(response, COOKIE_NAME)


def _remembered(request: HttpRequest) -> RoundTrip | None:
    value = signed_cookies.remembered(request, COOKIE_NAME, lasts=LASTS)
    return None if value is None else RoundTrip(*value)
