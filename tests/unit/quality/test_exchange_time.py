"""The scans of one side of an exchange share its time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from quality.engines.scan import CannotRead, Limits
from quality.exchanges import sides
from quality.exchanges.sides import Left


def test_each_scan_has_what_the_ones_before_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(sides.time, "monotonic", lambda: clock[0])
    left = Left(Limits(timeout=timedelta(seconds=120)))
    assert left.limits().timeout == timedelta(seconds=120)
    clock[0] += 90
    assert left.limits().timeout == timedelta(seconds=30)
    clock[0] += 30
    with pytest.raises(CannotRead, match="longer than its timeout"):
        left.limits()
