"""A page, or the one part of it that a live update asks for (js/live.js)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

FRAGMENT_HEADER = "X-Fragment"


def render_live(request: HttpRequest, page: str, context: dict[str, Any], fragments: Mapping[str, str]) -> HttpResponse:
    """`fragments`: the id of a part -> its template. `context["now"]` says how fresh it is."""
    fragment = fragments.get(request.headers.get(FRAGMENT_HEADER, ""))
    response = render(request, fragment or page, context)
    # One address gives two answers: a cache between must keep them apart.
    response.headers["Vary"] = f"{FRAGMENT_HEADER}, Cookie"
    if fragment:
        response.headers["X-As-Of"] = f"{timezone.localtime(context['now']):%H:%M %Z}"
    return response
