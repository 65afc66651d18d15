"""The last part of every way in: a code where the person has a second step, then the session."""

from __future__ import annotations

import logging

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect

from lakehub.accounts.models import User
from lakehub.accounts.sign_in import known_browsers, passwords, pending, second_step, sessions

logger = logging.getLogger(__name__)

BY_PASSWORD = "a password"  # noqa: S105 - a word for the log
"""What a person has shown, in words for the log."""


def enter(request: HttpRequest, person: User, *, next_url: str, factor: str) -> HttpResponse:
    """Somebody who is who they say, by `factor`: a password or single sign-on. `next_url` is a place of ours."""
    if not second_step.is_enrolled(person):
        return _begin(request, person, next_url, factor, with_code=False)
    response = redirect("sign-in-code")
    pending.remember_pending(request, response, pending.PendingSignIn(person, next_url, factor))
    return response


def enter_with_code(request: HttpRequest, given: pending.PendingSignIn) -> HttpResponse:
    """The code was right."""
    response = _begin(request, given.person, given.next_url, given.factor, with_code=True)
    pending.forget_pending(response)
    return response


def _begin(request: HttpRequest, person: User, next_url: str, factor: str, *, with_code: bool) -> HttpResponse:
    by_first_password = factor == BY_PASSWORD and passwords.first_password_until(person) is not None
    sessions.begin_session(request, person, second_step=with_code, first_password=by_first_password)
    logger.info("%s signed in by %s", person.get_username(), f"{factor} and a code" if with_code else factor)
    response = HttpResponseRedirect(next_url)  # `redirect` would take a word for the name of a page
    known_browsers.remember_browser(request, response, person.get_username())
    return response
