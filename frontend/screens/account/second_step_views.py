"""The second step of one's own: set up, recovery codes, removed."""

from __future__ import annotations

from collections.abc import Callable

import segno
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from frontend.ui.form_actions import actor_of, errors_as_messages
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.recent_sign_in import needs_recent_sign_in, signed_in_recently
from lakehub.accounts.sign_in import second_step
from lakehub.accounts.sign_in.forms import seconds_until, wait_in_words
from lakehub.accounts.sign_in.sessions import SECOND_STEP_KEY
from lakehub.accounts.sign_in.throttle import SignInLocked
from lakehub.http.client_address import client_address
from lakehub.kernel.errors import Conflict, Refused

TEMPLATE = "screens/account/templates/second_step.html"


@require_safe
def second_step_page(request: HttpRequest) -> HttpResponse:
    return _page(request)


@require_POST
@needs_recent_sign_in(then="second-step")
def begin(request: HttpRequest) -> HttpResponse:
    """A new secret; the page shows it until a code of it was right."""
    with errors_as_messages(request):
        second_step.begin_enrolment(actor_of(request))
    return redirect("second-step")


@require_POST
@sensitive_post_parameters()
@needs_recent_sign_in(then="second-step")
def confirm(request: HttpRequest) -> HttpResponse:
    def use(person: User, code: str, address: str) -> list[str]:
        key = request.session.session_key
        codes = second_step.confirm(person, code, address=address, now=wiring.clock.now(), session_key=key)
        request.session[SECOND_STEP_KEY] = True
        return codes

    return _with_code(request, use)


@require_POST
@sensitive_post_parameters()
def renew_codes(request: HttpRequest) -> HttpResponse:
    return _with_code(
        request,
        lambda person, code, address: second_step.renew_recovery_codes(
            person, code, address=address, now=wiring.clock.now()
        ),
    )


@require_POST
@sensitive_post_parameters()
def remove(request: HttpRequest) -> HttpResponse:
    def use(person: User, code: str, address: str) -> list[str]:
        second_step.remove(person, code, address=address, now=wiring.clock.now())
        request.session.pop(SECOND_STEP_KEY, None)
        messages.info(request, "Your second step is removed: the password alone opens.")
        return []

    return _with_code(request, use)


def _with_code(request: HttpRequest, use: Callable[[User, str, str], list[str]]) -> HttpResponse:
    """What needs a code; recovery codes that it made are shown on the page that answers, and never again."""
    try:
        codes = use(actor_of(request), request.POST.get("code", ""), client_address(request))
    except Refused as refused:
        return _page(request, error=refused.fields["code"], status=422)
    except SignInLocked as locked:
        wait_s = seconds_until(locked.until, now=wiring.clock.now())
        response = _page(request, error=f"Too many codes were wrong. Try again in {wait_in_words(wait_s)}.", status=429)
        response.headers["Retry-After"] = str(wait_s)
        return response
    except Conflict as conflict:
        messages.warning(request, str(conflict))
        return redirect("second-step")
    return _page(request, codes=codes, status=201) if codes else redirect("second-step")


def _page(request: HttpRequest, *, codes: list[str] | None = None, error: str = "", status: int = 200) -> HttpResponse:
    person = actor_of(request)
    # Whoever knows the secret before it counts has the person's codes, or keeps the person out.
    uri = second_step.pending_uri(person) if signed_in_recently(request.session) else ""
    context = {
        "is_enrolled": second_step.is_enrolled(person),
        "is_required": second_step.is_required(person),
        "uri": uri,
        "picture": _picture(uri) if uri else "",
        "codes": codes or [],
        "codes_left": second_step.recovery_codes_left(person),
        "error": error,
    }
    return render(request, TEMPLATE, context, status=status)


def _picture(uri: str) -> SafeString:
    """An SVG whose only text is the path that is drawn."""
    picture = segno.make(uri, error="m").svg_inline(scale=4, border=4, light="#fff", omitsize=True)
    return mark_safe(picture)  # noqa: S308  made of numbers
