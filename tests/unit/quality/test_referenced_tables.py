"""Which tables a test reads besides the tested partition of its own."""

from __future__ import annotations

import pytest

from quality.domain.evaluation.referenced_tables import referenced_tables
from quality.domain.language import flattened, parse


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("duplicates(this) < 0.1%", set()),
        ("rows(this) / rows(this@dc2) > 99.9%", set()),
        ("rows(this) / rows(this[-7d]) > 90%", {"this"}),
        ("rows(this) / rows(upstream) > 99.9%", {"upstream"}),
        ("unmatched(this.tailnum, planes.tailnum) < 9", {"planes"}),
        ("query(this, 'SELECT count(*) FROM this JOIN planes USING (tailnum)') > 9", {"planes"}),
        ("query(this, 'SELECT count(*) FROM weather') / rows(this[-1d]) > 9", {"this", "weather"}),
    ],
)
def test_what_is_named(text: str, names: set[str]) -> None:
    assert referenced_tables(flattened(parse(text))) == names
