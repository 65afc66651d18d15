"""The REST API, and the metrics, over plain HTTP, where HTTPS is wanted: refused, not redirected. A program that is redirected would go on sending
its token in clear, and nobody would notice."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

_MESSAGE = (
    "Programs are answered over HTTPS only. Change http:// to https:// in the address; a token that was sent like this may "
    "have been read on the way: revoke it and make another."
)
_OF_PROGRAMS = ("/api/", "/metrics")


class RefuseInsecureApiMiddleware:
    """Middleware, before the one of Django that redirects pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if settings.SECURE_SSL_REDIRECT and request.path_info.startswith(_OF_PROGRAMS) and not request.is_secure():
            return JsonResponse({"error": {"code": "https_required", "message": _MESSAGE}}, status=403)
        return self._get_response(request)
