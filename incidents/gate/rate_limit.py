"""How often a token or a person may ask the gate; who asks more often is told how long to wait."""

from __future__ import annotations

import math
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from incidents.gate import question_log as gate_log
from lakehub.accounts.models import Token, User
from lakehub.accounts.tokens.request_throttle import caller_number
from lakehub.http.limits.rate_limit import BURST_SECONDS, RateLimit, SharedLimiter

CHARACTERS_PER_QUESTION = 500
"""To read so many of a query costs about as much as to answer a question."""


class RateLimitExceeded(Exception):
    """Nothing was taken; `wait` says in how many seconds it may be."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"You have asked the gate too often: ask again in {math.ceil(wait)} s.")
        self.wait = wait


def charge_questions(asker: Token | User, questions: int, *, now: datetime) -> None:
    """Raises RateLimitExceeded."""
    rate = settings.LAKEHUB_GATE_RATE
    if not rate or questions <= 0:
        return
    wait = _limiter().take(caller_number(asker), RateLimit(rate, rate * BURST_SECONDS), cost=questions, now=now)
    if wait:
        gate_log.QUESTION_LOG.tally(gate_log.QUESTIONS_REFUSED, questions)
        raise RateLimitExceeded(wait)


def charge_sql(asker: Token | User, sql: str, *, now: datetime) -> None:
    """For a query, before it is parsed and beside its questions. Raises RateLimitExceeded."""
    charge_questions(asker, len(sql) // CHARACTERS_PER_QUESTION, now=now)


@lru_cache(maxsize=1)
def _limiter() -> SharedLimiter:
    return SharedLimiter(Path(settings.LAKEHUB_HOME) / "gate-rate")
