"""A file of a monitored dataset is cut in half: asked to test it now, Lakehub names the file, and passes it once it is whole again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from random import Random

from django.db import connection

from quality.models import Unit
from tests.soak.faults import Fault
from tests.soak.stand.onboarding import PRICES
from tests.soak.stand.stage import Stage


def _damage_file(stage: Stage, rng: Random) -> Sequence[str]:
    stage.wait_until(stage.instance.is_up, "the instance is up")
    file = rng.choice(stage.prices.files)
    whole = stage.prices.damage(file)
    try:
        outcomes = _run_tests(stage, file.stem)
    finally:
        stage.prices.restore(file, whole)
    findings = [] if outcomes else [f"no test of {file.name} ran"]
    for test, (outcome, cause) in outcomes.items():
        if outcome != "error" or file.name not in cause:
            findings.append(f"{file.name} is cut in half, and {test} says {outcome}: {cause[:200]}")
    restored = _run_tests(stage, file.stem)
    findings += [
        f"{file.name} is whole again, and {test} says {outcome}: {cause[:200]}"
        for test, (outcome, cause) in restored.items()
        if outcome != "pass"
    ]
    return findings


def _run_tests(stage: Stage, day: str) -> dict[str, tuple[str, str]]:
    """Run now. By test of that day: its outcome and what is said of it."""
    asked_at = datetime.now(UTC)
    following = date.fromordinal(date.fromisoformat(day).toordinal() + 1)
    stage.instance.command("run_tests", PRICES.name, "--from", day, "--to", str(following))
    start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    units = Unit.objects.filter(test__dataset__name=PRICES.name, start=start, test__retired_at=None)
    try:
        # A worker of the instance may have been faster than the command, and be at it.
        stage.wait_until(lambda: not units.exclude(latest_at__gte=asked_at).exists(), f"the tests of {day} run")
        return {unit.test.key: (unit.latest_outcome, str(unit.detail)) for unit in units.select_related("test")}
    finally:
        connection.close()


FAULTS = (
    Fault("file cut in half", _damage_file, is_alone=True, may_double=False, explains="cannot be read|CannotRead"),
)
