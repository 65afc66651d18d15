"""Which tests can be asked of rows that are about to be committed."""

from __future__ import annotations

import pytest

from quality.audits.checking import audit_problem

COLUMNS = ("day", "carrier", "delay")
INPUTS = {"airlines": ("carrier", "name"), "planes": None}


def problem(test: str) -> str:
    return audit_problem(test, COLUMNS, INPUTS, ("day",))


@pytest.mark.parametrize(
    "test",
    [
        "rows(this) > 0",
        "outside(this.delay, -60, 1440) / rows(this) < 1%",
        "nulls(this.carrier) == 0 and mean(this.delay) < 60",
        "duplicates(this) < 0.1%",
        "mismatched(this.carrier, '[A-Z0-9]{2}') == 0",
        "unexpected(this.carrier, 'AA', 'UA') == 0 or distinct(this, day) > 1",
        "unmatched(this.carrier, airlines.carrier) == 0",
        "unmatched(this.carrier, planes.anything) == 0",
    ],
)
def test_what_counts_rows_of_the_batch_can_be_asked(test: str) -> None:
    assert problem(test) == ""


@pytest.mark.parametrize(
    ("test", "why"),
    [
        ("rows(this)", "says what must hold"),
        ("rows(this) > 0 with sustain=2h", "no `with sustain=`"),
        ("rows(this) > 0 with by=carrier", "no `with by=`"),
        ("rows(this) / rows(this[-7d]) > 50%", "`rows` cannot be asked here"),
        ("rows(this) / same_weekday(rows(this), 4) > 80%", "cannot be asked here"),
        ("deviation(rows(this), 8w) < 4", "looks at earlier partitions"),
        ("rows(this) / rows(this@dc1) > 99%", "no data center `dc1`"),
        ("rows(airlines) > 0", "`rows` cannot be asked here"),
        ("freshness(this) < 2h", "`freshness` cannot be asked here"),
        ("query(this, 'SELECT count(*) FROM this') > 1", "`query` cannot be asked here"),
        ("findings(this, job_failing) == 0", "`findings` cannot be asked here"),
        ("unmatched(this.carrier, this.day) == 0", "`unmatched` cannot be asked here"),
        ("unmatched(this.carrier, airline.carrier) == 0", "There is no dataset `airline`. Did you mean `airlines`?"),
        ("nulls(this.carier) == 0", "has no column `carier`. Did you mean `carrier`?"),
        ("rows(this > 0", "ends too early"),
    ],
)
def test_what_else_there_is_in_the_language_is_refused_by_name(test: str, why: str) -> None:
    assert why.lower() in problem(test).lower()
