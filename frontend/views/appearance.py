"""Turns the theme for a browser without script; with script, js/theme.js does it in place."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from frontend import theme

_A_YEAR = 365 * 24 * 3600


@login_not_required
@require_POST
def turn_theme(request: HttpRequest) -> HttpResponse:
    response = redirect(_page_before(request))
    response.set_cookie(
        theme.COOKIE,
        theme.NEXT[theme.chosen_theme(request)],
        max_age=_A_YEAR,
        samesite="Lax",
        secure=request.is_secure(),
    )
    return response


def _page_before(request: HttpRequest) -> str:
    page = request.headers.get("Referer", "")
    return page if url_has_allowed_host_and_scheme(page, allowed_hosts={request.get_host()}) else "/"
