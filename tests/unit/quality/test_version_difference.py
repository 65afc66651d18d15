"""What changed between two versions of a test, in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from quality.domain.generation.version_difference import VersionDefinition, version_difference

HOUR = timedelta(hours=1)
ASKED = VersionDefinition(
    "lt(duplicates(this, id), 0.1%)", HOUR, None, 4 * HOUR, HOUR / 12, HOUR, "tier 2, primary key id"
)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ()),
        ({"because": "tier 2, primary key id, day"}, ()),
        ({"flattened": "lt(duplicates(this, id), 0.5%)"}, ("threshold: < 0.1% becomes < 0.5%",)),
        ({"flattened": "le(duplicates(this, id), 0%)"}, ("threshold: < 0.1% becomes <= 0%",)),
        (
            {"flattened": "lt(duplicates(this, id, day), 0.1%)"},
            ("expression: duplicates(this, id) < 0.1% becomes duplicates(this, id, day) < 0.1%",),
        ),
        (
            {"flattened": "lt(duplicates(this, id), 0.1%) with engine=spark, timeout=5m"},
            ("parameter engine: none becomes spark", "parameter timeout: none becomes 5m"),
        ),
        (
            {"sustain": 2 * HOUR, "cadence": HOUR, "because": "tier 3"},
            (
                "sustain period: 1h becomes 2h",
                "cadence: none becomes 1h",
                "because: tier 2, primary key id becomes tier 3",
            ),
        ),
    ],
)
def test_what_changed_is_said_in_words(changes: dict[str, Any], lines: tuple[str, ...]) -> None:
    assert version_difference(ASKED, replace(ASKED, **changes)) == lines
