"""How often a token may ask the gate; who asks more often is told how long to wait."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from django.conf import settings
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from incidents import gate_log
from incidents.api.common import person
from lakehub import wiring
from lakehub.accounts.models import Token
from lakehub.rate import Limit, SharedLimiter

BURST_S = 5
"""So many seconds' worth may come at once."""


class GateRate(BaseThrottle):
    """One question of the token's; looked at after the token was accepted, before anything else of the request is read."""

    _wait = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        self._wait = _wait(request, 1)
        return self._wait == 0

    def wait(self) -> float:
        return self._wait


def charge(request: Request, questions: int) -> None:
    """For the questions of a batch after its first. Raises Throttled."""
    wait = _wait(request, questions) if questions > 0 else 0.0
    if wait:
        raise Throttled(wait)


def _wait(request: Request, cost: int) -> float:
    rate = settings.LAKEHUB_GATE_RATE
    if not rate:
        return 0.0
    asker = 2 * request.auth.pk if isinstance(request.auth, Token) else 2 * person(request).pk + 1
    wait = _limiter().take(asker, Limit(rate, rate * BURST_S), cost=cost, now=wiring.clock.now())
    if wait:
        gate_log.LOG.tally(gate_log.REFUSED, cost)
    return wait


@lru_cache(maxsize=1)
def _limiter() -> SharedLimiter:
    return SharedLimiter(Path(settings.LAKEHUB_HOME) / "gate-rate")
