"""Which methods of HTTP are answered at all: TRACE, CONNECT and words of one's own lead nowhere, not even to a page."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseNotAllowed
from django.http.response import HttpResponseBase

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


class AllowedMethodsMiddleware:
    """Middleware. 405 for every other one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request) if request.method in METHODS else HttpResponseNotAllowed(METHODS)
