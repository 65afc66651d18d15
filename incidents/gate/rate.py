"""How often a token or a person may ask the gate; who asks more often is told how long to wait."""

from __future__ import annotations

import math
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from incidents.gate import log as gate_log
from lakehub.accounts.models import Token, User
from lakehub.rate import Limit, SharedLimiter

BURST_S = 5
"""So many seconds' worth may come at once."""
CHARACTERS = 500
"""To read so many of a query costs about as much as to answer a question."""


class TooOften(Exception):
    """Nothing was taken; `wait` says in how many seconds it may be."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"You have asked the gate too often: ask again in {math.ceil(wait)} s.")
        self.wait = wait


def charge(asker: Token | User, questions: int, *, now: datetime) -> None:
    """Raises TooOften."""
    rate = settings.LAKEHUB_GATE_RATE
    if not rate or questions <= 0:
        return
    number = 2 * asker.pk + isinstance(asker, User)
    wait = _limiter().take(number, Limit(rate, rate * BURST_S), cost=questions, now=now)
    if wait:
        gate_log.LOG.tally(gate_log.REFUSED, questions)
        raise TooOften(wait)


def charge_reading(asker: Token | User, sql: str, *, now: datetime) -> None:
    """For a query, before it is parsed and beside its questions. Raises TooOften."""
    charge(asker, len(sql) // CHARACTERS, now=now)


@lru_cache(maxsize=1)
def _limiter() -> SharedLimiter:
    return SharedLimiter(Path(settings.LAKEHUB_HOME) / "gate-rate")
