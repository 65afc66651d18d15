"""Who is signed in and must first set a password of their own, or a second step (LAKEHUB_REQUIRE_TOTP), may do that and nothing else.

Tokens are not concerned.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from lakehub.accounts.models import User
from lakehub.accounts.sign_in import second_step
from lakehub.accounts.sign_in.sessions import FIRST_PASSWORD_KEY, SECOND_STEP_KEY

_LEAVING = frozenset({"sign-out", "sign-in", "turn-theme"})
_OPEN = {
    "account-password": _LEAVING | {"account-password"},
    "second-step": _LEAVING | {"second-step", "second-step-begin", "second-step-confirm"},
}
"""By the page that one must see first: addresses, by name, without which nobody could do what is asked there, or leave."""
_ERRORS = {
    "account-password": (
        "own_password_required",
        "Choose your own password first: you still have the one that was made for you.",
    ),
    "second-step": ("second_step_required", "Set up your second step first: this instance asks it of you."),
}


class UnfinishedSignInMiddleware:
    """Middleware, after the one that knows who is signed in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)

    def process_view(self, request: HttpRequest, *_: object) -> HttpResponseBase | None:
        page = _page_to_see_first(request)
        if not page or (request.resolver_match and request.resolver_match.view_name in _OPEN[page]):
            return None
        if request.path_info.startswith("/api/"):
            code, message = _ERRORS[page]
            return JsonResponse({"error": {"code": code, "message": message}}, status=HTTPStatus.FORBIDDEN)
        return redirect(page)


def _page_to_see_first(request: HttpRequest) -> str:
    """By name; empty: none."""
    if request.path_info.startswith("/api/") and request.headers.get("Authorization", "").lower().startswith("bearer "):
        return ""  # there the header counts, and no session
    if request.session.get(FIRST_PASSWORD_KEY):
        return "account-password"
    return "second-step" if settings.LAKEHUB_REQUIRE_TOTP != "nobody" and _lacks_second_step(request) else ""


def _lacks_second_step(request: HttpRequest) -> bool:
    person = request.user
    if not isinstance(person, User) or request.session.get(SECOND_STEP_KEY):
        return False
    return second_step.is_required(person)
