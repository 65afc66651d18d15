"""The scans of one side of an exchange share its time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quality.engines.scans.parts import CannotRead
from quality.engines.scans.remaining_time import RemainingTime
from quality.engines.scans.scan import Limits


def test_each_scan_has_what_the_ones_before_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("quality.engines.scans.remaining_time.time.monotonic", lambda: clock[0])
    left = RemainingTime(Limits(timeout=timedelta(seconds=120)))
    assert left.limits().timeout == timedelta(seconds=120)
    clock[0] += 90
    assert left.limits().timeout == timedelta(seconds=30)
    clock[0] += 30
    with pytest.raises(CannotRead, match="longer than its timeout"):
        left.limits()
