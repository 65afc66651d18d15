"""What an older version stored, and nobody may write any more, is a fault of its own test: the gate and the pages answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from lakehub.catalog.models import Dataset
from quality.models import Category, QualityTest, QualityTestVersion, Unit
from quality.planning.units import plan_units
from tests.factories import NOW

AGES = timedelta(weeks=400_000)
STORED: dict[str, dict[str, Any]] = {
    "sustain": {"sustain": AGES},
    "cadence": {"cadence": AGES},
    "due": {"due_after": AGES},
    "text": {"flattened": "lt(freshness(this), 400000w)", "expression": "freshness(this) < 400000w"},
    "parameter": {"flattened": "gt(rows(this), 0) with sustain=400000w"},
    "deep": {"flattened": "gt(" + "abs(" * 60 + "rows(this)" + ")" * 60 + ", 0)"},
    "long": {"flattened": "gt(average(" + ", ".join(["rows(this)"] * 2_000) + "), 0)"},
}
PAGES = ("/", "/datasets", "/datasets/flights", "/datasets/flights/tests/{test}", "/coverage", "/coverage/unverified", "/incidents",
    "/datasets/flights/settings", "/datasets/flights/rules", "/gate?dataset=flights&from=2026-11-14&to=2026-11-17",
    "/api/v1/gate?dataset=flights&from=2026-11-14&to=2026-11-17&dc=dc1", "/api/v1/datasets/flights/tests",
)  # fmt: skip


@pytest.fixture(params=STORED)
def test(request: pytest.FixtureRequest, flights: Dataset) -> QualityTest:
    """All tests of the dataset are as one that an older version stored."""
    versions = QualityTestVersion.objects.filter(test__dataset=flights)
    versions.update(**STORED[request.param])
    if request.param == "sustain":
        Unit.objects.filter(test__dataset=flights).exclude(first_fail_at=None).update(sustain=AGES)
    return QualityTest.objects.get(dataset=flights, category=Category.CONSISTENCY)


@pytest.mark.parametrize("address", PAGES)
def test_every_page_and_the_gate_answer(page: Client, test: QualityTest, address: str) -> None:
    assert page.get(address.format(test=test.key)).status_code == 200


def test_it_is_planned_as_before(test: QualityTest) -> None:
    plan_units(test, now=NOW, anew=True)
    assert test.units.exists()
