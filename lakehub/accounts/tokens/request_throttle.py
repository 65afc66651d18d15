"""How often a token or a person may call the REST API: 429 and `Retry-After`. The gate counts its questions by itself."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from lakehub import clock
from lakehub.accounts.models import Token, User
from lakehub.http.limits.rate_limit import BURST_SECONDS, RateLimit, SharedLimiter

if TYPE_CHECKING:  # it imports this module
    from rest_framework.views import APIView


class CallerThrottle(BaseThrottle):
    """One request, taken after the caller is known to be allowed it. Who is not is bounded by LAKEHUB_ADDRESS_RATE."""

    _wait = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        rate = settings.LAKEHUB_API_RATE
        caller = request.auth or request.user
        if rate and isinstance(caller, Token | User):
            limit = RateLimit(rate, rate * BURST_SECONDS)
            self._wait = _limiter().take(caller_number(caller), limit, now=clock.now())
        return not self._wait

    def wait(self) -> float:
        return self._wait


def caller_number(caller: Token | User) -> int:
    """Tokens and people have numbers of their own."""
    return 2 * caller.pk + isinstance(caller, User)


@lru_cache(maxsize=1)
def _limiter() -> SharedLimiter:
    return SharedLimiter(Path(settings.LAKEHUB_HOME) / "api-rate")
