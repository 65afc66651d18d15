"""What a baseline leaves out: data that was proven to be bad, and not what was only unusual."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakehub.catalog.models import Dataset
from lakehub.kernel.outcome import Verdict
from quality.execution import worker
from quality.models import Category, Flip, QualityTest, Unit
from quality.state.baseline_exclusions import confirmed_bad_ranges
from tests import factories, hudi_tables
from tests.factories import DAY, HOUR, NEW_YORK, NOW, day
from tests.web.quality.conftest import rows

pytestmark = pytest.mark.django_db

USUAL = "lt(deviation(rows(this), 3w), 4)"


def failed(test: QualityTest, over: str, *, reason: str = "sustained", **facts: Any) -> Unit:
    unit = factories.unit(test, over=day(over), **facts)
    Flip.objects.create(unit=unit, was=Verdict.WARN, becomes=Verdict.FAIL, at=NOW - DAY)
    if facts.get("waiver"):
        Flip.objects.create(unit=unit, was=Verdict.FAIL, becomes=Verdict.PASS, reason=facts["waiver"], at=NOW)
    return unit


@pytest.mark.parametrize(
    ("expression", "facts", "is_left_out"),
    [
        ("gt(rows(this), 900)", {"verdict": Verdict.FAIL}, True),
        ("gt(rows(this), 900)", {"verdict": Verdict.PASS}, True),
        ("gt(rows(this), 900)", {"verdict": Verdict.FAIL, "waiver": "accepted"}, True),
        ("gt(rows(this), 900)", {"verdict": Verdict.FAIL, "waiver": "false_positive"}, False),
        (USUAL, {"verdict": Verdict.FAIL}, False),
        (USUAL, {"verdict": Verdict.PASS}, True),
        (USUAL, {"verdict": Verdict.FAIL, "waiver": "accepted"}, True),
        (USUAL, {"verdict": Verdict.FAIL, "waiver": "false_positive"}, False),
    ],
)
def test_what_was_proven_is_left_out(expression: str, facts: dict[str, Any], is_left_out: bool) -> None:
    dataset = factories.dataset()
    failed(factories.test(dataset, Category.OTHERS, expression=expression), "2026-11-10", **facts)
    assert confirmed_bad_ranges(factories.copy_of(dataset)) == ((day("2026-11-10"),) if is_left_out else ())


def test_two_tests_of_the_usual_do_not_keep_each_other_from_learning() -> None:
    dataset = factories.dataset()
    for key in ("rows", "seats"):
        failed(factories.test(dataset, key=key, expression=USUAL), "2026-11-10", verdict=Verdict.FAIL)
    assert confirmed_bad_ranges(factories.copy_of(dataset)) == ()


def test_a_level_that_shifts_for_good_becomes_the_usual_one(tmp_path: Path) -> None:
    """A thousand flights a day; from the 24th of October on there are 1,400."""
    names = [(NOW - number * DAY).astimezone(NEW_YORK).date().isoformat() for number in range(45, 0, -1)]
    shifted = [name for name in names if name >= "2026-10-24"]
    days: dict[str | None, pa.Table] = {name: rows(name, 1400 if name in shifted else 1000) for name in names}
    flights = with_table(tmp_path, days)
    test = factories.test(flights, Category.OTHERS, expression=USUAL, sustain=timedelta())
    outcomes = [outcome_of(test, name) for name in shifted]
    assert outcomes[:6] == ["fail"] * 6
    assert outcomes[-6:] == ["pass"] * 6
    assert Unit.objects.filter(verdict="fail").count() == outcomes.count("fail"), (
        "the days that alarmed stay as they are"
    )


def with_table(folder: Path, days: dict[str | None, pa.Table]) -> Dataset:
    uri = hudi_tables.hudi_table(folder / "dc1" / "flights", days, column="flight_date")
    columns = [{"name": name, "type": "string", "nullable": True} for name in ("id", "flight_date", "tailnum")]
    made = factories.dataset("flights", copies=(), columns=columns, tier=1, primary_key=["id", "flight_date"])
    factories.data_center("dc1", (folder / "dc1").as_uri())
    factories.copy(made, "dc1", uri=uri)
    factories.feed(made)
    return made


def outcome_of(test: QualityTest, name: str) -> str:
    span = day(name)
    facts: dict[str, Any] = {
        "test": test,
        "copy": factories.copy_of(test.dataset),
        "start": span.start,
        "end": span.end,
    }
    unit, _ = Unit.objects.update_or_create(**facts, defaults={"due_at": span.end + HOUR})
    worker.run_due_units(now=span.end + HOUR, worker="test")
    unit.refresh_from_db()
    return unit.latest_outcome
