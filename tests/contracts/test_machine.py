"""The factor of deadlines: measured once, within bounds, taken over by children, and used by the waits of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from lakehub.environment import InvalidSetting
from lakehub.setup import machine
from lakehub.setup.locations import PACKAGES
from tests.polling import scaled, wait_until

QUIET = dict(machine._QUIET_S)


def test_the_worst_of_processor_disk_and_processes_counts_within_bounds() -> None:
    assert machine.factor_of(QUIET) == 1
    assert machine.factor_of({name: seconds / 2 for name, seconds in QUIET.items()}) == 1
    for name in QUIET:
        assert machine.factor_of(QUIET | {name: QUIET[name] * 6}) == pytest.approx(6)
        assert machine.factor_of(QUIET | {name: QUIET[name] * 600}) == machine.MAX_FACTOR


def test_it_is_measured_once_and_told_to_children() -> None:
    measured = iter([3.254])
    environ: dict[str, str] = {}
    assert machine.read_or_measure(environ, lambda: next(measured)) == 3.254
    assert machine.read_or_measure(environ, lambda: next(measured)) == 3.25
    program = "from lakehub.setup.machine import slowness; print(slowness())"
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=PACKAGES,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout == "3.25\n"


@pytest.mark.parametrize("named", ["0", "0.9", "21", "fast", "nan", "-3"])
def test_what_is_no_factor_is_refused(named: str) -> None:
    with pytest.raises(InvalidSetting, match=r"LAKEHUB_SLOWNESS=.* set a number from 1 to 20"):
        machine.read_or_measure({machine.VARIABLE: named}, lambda: 1.0)


def test_a_busy_processor_is_seen() -> None:
    """The probe computes: what takes the processor from it makes it longer."""
    assert 1 <= machine.measure() <= machine.MAX_FACTOR
    assert machine._seconds(lambda: [machine._compute() for _ in range(4)] and None) > 1.5 * machine._seconds(
        machine._compute
    )


def test_a_wait_is_as_long_as_the_machine_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "slowness", lambda: 7.0)
    assert scaled(2) == 14
    times = iter([0.0, 13.9, 14.1])
    # Its clock alone: threads of other tests ask the one of the process.
    monkeypatch.setattr("tests.polling.time", SimpleNamespace(monotonic=lambda: next(times)))
    with pytest.raises(AssertionError, match="within 14 s"):
        wait_until(lambda: False, within_s=2)
