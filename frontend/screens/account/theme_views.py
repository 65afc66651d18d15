"""Turns the theme for a browser without script; with script, js/theme.js does it in place."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from frontend.ui import theme

_COOKIE_AGE_S = 365 * 24 * 3600


@login_not_required
@require_POST
def change_theme(request: HttpRequest) -> HttpResponse:
    response = redirect(_referring_page(request))
    response.set_cookie(
        theme.THEME_COOKIE,
        theme.NEXT_THEME[theme.chosen_theme(request)],
        max_age=_COOKIE_AGE_S,
        samesite="Lax",
        secure=request.is_secure(),
    )
    return response


def _referring_page(request: HttpRequest) -> str:
    page = request.headers.get("Referer", "")
    return page if url_has_allowed_host_and_scheme(page, allowed_hosts={request.get_host()}) else "/"
