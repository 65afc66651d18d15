"""`input; expected;` pairs in expressions.txt, run by one loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from quality.domain.language import Scope, expand_macros, flattened, parse

SCOPE = Scope(
    tables={"this": None, "upstream": None},
    primary_key=("origin", "day"),
    event_time="time_hour",
    metrics={"seats": "SELECT sum(seats) FROM this JOIN planes USING (tailnum)"},
)
PAIRS = [
    tuple(part.strip() for part in line.split(";")[:2])
    for line in Path(__file__).with_name("expressions.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("written", "stored"), PAIRS)
def test_the_stored_form_is_as_recorded(written: str, stored: str) -> None:
    assert flattened(expand_macros(parse(written), SCOPE)) == stored
    assert flattened(parse(stored)) == stored
