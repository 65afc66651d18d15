"""Between the password and the code: a signed cookie says who has given the first, for five minutes. It opens nothing by itself."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import timedelta

from django.http import HttpRequest, HttpResponseBase

from lakehub.accounts.models import User
from lakehub.accounts.sign_in import signed_cookies

COOKIE_NAME = "pending"
LASTS = timedelta(minutes=5)


@dataclass(frozen=True)
class PendingSignIn:
    """`next_url` is a place of ours: whoever made it has looked. `factor`: what the person has shown already."""

    person: User
    next_url: str
    factor: str


def remember_pending(request: HttpRequest, response: HttpResponseBase, pending: PendingSignIn) -> None:
    value = [pending.person.pk, pending.person.get_session_auth_hash(), pending.next_url, pending.factor]
    signed_cookies.remember(response, COOKIE_NAME, value, lasts=LASTS, is_secure=request.is_secure())


def pending_sign_in(request: HttpRequest) -> PendingSignIn | None:
    """None where nobody has given a password, it is too long ago, or the password was changed since."""
    value = signed_cookies.remembered(request, COOKIE_NAME, lasts=LASTS)
    if value is None:
        return None
    key, password_hash, next_url, factor = value
    person = User.objects.filter(pk=key, is_active=True).first()
    if person is None or not hmac.compare_digest(password_hash, person.get_session_auth_hash()):
        return None
    return PendingSignIn(person, next_url, factor)


def forget_pending(response: HttpResponseBase) -> None:
    signed_cookies.forget(response, COOKIE_NAME)
