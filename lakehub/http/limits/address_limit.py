"""How often one address may ask, counted before anything is known of the caller: guessing tokens costs time too."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from lakehub.http.client_address import client_network
from lakehub.http.limits.rate_limit import BURST_SECONDS, RateLimit, SharedLimiter

_FREE = ("/static/", "/health", "/ready")
"""Files that cost nothing, and what asks whether the process lives."""
_PLACES = 2**20
"""Addresses share the places of a file of 8 MB, which holds only what was written to it."""


class AddressLimitMiddleware:
    """Middleware. 429 and `Retry-After` for an address that exceeds LAKEHUB_ADDRESS_RATE."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        rate = settings.LAKEHUB_ADDRESS_RATE
        if rate and not request.path_info.startswith(_FREE):
            place = int.from_bytes(blake2b(client_network(request).encode(), digest_size=8).digest()) % _PLACES
            wait = _limiter().take(place, RateLimit(rate, rate * BURST_SECONDS), now=datetime.now(UTC))
            if wait:
                return _too_many(request, math.ceil(wait))
        return self._get_response(request)


def _too_many(request: HttpRequest, seconds: int) -> HttpResponse:
    message, headers = (
        f"Too many requests come from your address: ask again in {seconds} s.",
        {"Retry-After": str(seconds)},
    )
    if not request.path_info.startswith("/api/"):
        return HttpResponse(message, status=429, content_type="text/plain; charset=utf-8", headers=headers)
    return JsonResponse({"error": {"code": "throttled", "message": message}}, status=429, headers=headers)


@lru_cache(maxsize=1)
def _limiter() -> SharedLimiter:
    return SharedLimiter(Path(settings.LAKEHUB_HOME) / "address-rate")
