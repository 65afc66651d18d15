"""The instance's clock is set wrong while it works, and right again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from random import Random

from tests.soak.faults import Fault
from tests.soak.stand.stage import Stage

_LASTS_S = (4.0, 20.0)
_EXPLAINED = "Heartbeat for instant"
"""What the table format says in the commit that it was at."""


def _day_back(stage: Stage, rng: Random) -> Sequence[str]:
    return _wrong(stage, -timedelta(days=1), rng)


def _hours_forth(stage: Stage, rng: Random) -> Sequence[str]:
    return _wrong(stage, timedelta(hours=rng.randint(1, 10)), rng)


def _wrong(stage: Stage, offset: timedelta, rng: Random) -> Sequence[str]:
    assert stage.clock is not None
    stage.clock.set_off_by(offset)
    try:
        time.sleep(rng.uniform(*_LASTS_S))
    finally:
        stage.clock.set_off_by(timedelta())
    return ()


def _no_clock(stage: Stage) -> str:
    return "" if stage.clock else "needs a C compiler"


FAULTS = (
    Fault("clock a day back, and forth", _day_back, missing=_no_clock, explains=_EXPLAINED),
    Fault("clock hours forth, and back", _hours_forth, missing=_no_clock, explains=_EXPLAINED),
)
