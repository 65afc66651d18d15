"""How often a token may ask the gate over REST: 429 and `Retry-After`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from incidents.api.request_parsing import current_user
from incidents.gate import rate_limit as gate_rate
from lakehub import wiring
from lakehub.accounts.models import Token, User


class GateThrottle(BaseThrottle):
    """One question of the token's; looked at after the token was accepted, before anything else of the request is read."""

    _wait = 0.0

    def allow_request(self, request: Request, view: APIView) -> bool:
        try:
            gate_rate.charge_questions(_caller(request), 1, now=wiring.clock.now())
        except gate_rate.RateLimitExceeded as often:
            self._wait = often.wait
            return False
        return True

    def wait(self) -> float:
        return self._wait


def charge(request: Request, questions: int) -> None:
    """For the questions of a batch after its first. Raises Throttled."""
    with _throttled():
        gate_rate.charge_questions(_caller(request), questions, now=wiring.clock.now())


def charge_reading(request: Request, sql: str) -> None:
    """For a query, before it is parsed. Raises Throttled."""
    with _throttled():
        gate_rate.charge_sql(_caller(request), sql, now=wiring.clock.now())


@contextmanager
def _throttled() -> Iterator[None]:
    try:
        yield
    except gate_rate.RateLimitExceeded as often:
        raise Throttled(often.wait) from often


def _caller(request: Request) -> Token | User:
    return request.auth if isinstance(request.auth, Token) else current_user(request)
