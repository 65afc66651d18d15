"""Every check makes definitions that parse, type and repeat. A new check gets a row in EXPECTED."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from lakehub.kernel.calendar import Grain
from quality.checks import CHECKS, definitions_of
from quality.checks.custom import CUSTOM
from quality.checks.finding import FINDING
from quality.domain.definitions import DatasetFacts, Definition, Skipped, runs_in
from quality.domain.expression import ExpressionError, Scope, flattened, parse, understand
from quality.domain.tiers import slas_of

SCOPE = Scope(
    tables={"this": frozenset({"id", "day", "at"}), "upstream": frozenset({"id", "day", "at"})},
    data_centers=frozenset({"dc1", "dc2"}),
    primary_key=("id", "day"),
    event_time="at",
)
FLIGHTS = DatasetFacts("flights", 1, slas_of(1), SCOPE, Grain.DAY, ("dc1", "dc2"), one_to_one=True)
LONELY = DatasetFacts("notes", 4, slas_of(4), Scope(tables={"this": None}), Grain.NONE, ("dc1",))

EXPECTED = {
    "freshness": {"freshness": "lt(freshness(this, upstream), 2h)"},
    "completeness": {"completeness": "gt(div(rows(this), rows(upstream)), 99.9%)"},
    "duplicates": {"duplicates": "le(sub(1, div(distinct(this, id, day), rows(this))), 0%)"},
    "row_count_cross_dc": {
        "row_count@dc1": "gt(div(min(rows(this), rows(this@dc1)), rows(this@dc1)), 99.9%)",
        "row_count@dc2": "gt(div(min(rows(this), rows(this@dc2)), rows(this@dc2)), 99.9%)",
    },
    "custom": {},
    "finding": {},
}


def made(dataset: DatasetFacts) -> list[Definition]:
    return [one for one in definitions_of(dataset) if isinstance(one, Definition)]


def skipped(dataset: DatasetFacts) -> dict[str, str]:
    return {one.check: one.reason for one in definitions_of(dataset) if isinstance(one, Skipped)}


@pytest.mark.parametrize("name", list(CHECKS))
def test_it_makes_these_tests(name: str) -> None:
    check = CHECKS.get(name)
    found = [one for one in check.definitions(FLIGHTS) if isinstance(one, Definition)]
    assert {one.key: flattened(understand(one.expression, SCOPE)) for one in found} == EXPECTED[name]
    assert {one.category for one in found} <= {check.category}


def test_keys_are_unique_and_definitions_repeat() -> None:
    assert made(FLIGHTS) == made(FLIGHTS)
    assert len({one.key for one in made(FLIGHTS)}) == len(made(FLIGHTS))


def test_each_says_which_metadata_made_it() -> None:
    assert all(one.because.startswith("tier 1") for one in made(FLIGHTS))


def test_what_cannot_be_tested_is_listed_with_what_is_missing() -> None:
    assert skipped(LONELY) == {
        "completeness": "no upstream whose rows map one to one",
        "duplicates": "no primary key",
        "row_count_cross_dc": "a copy in one data center only",
    }
    assert skipped(FLIGHTS) == {}


def test_without_upstream_freshness_goes_by_event_time_and_then_by_commits() -> None:
    by_event = Scope(tables={"this": frozenset({"at"})}, event_time="at")
    for scope, stored in ((by_event, "le(freshness(this.at), 1d)"), (LONELY.scope, "le(freshness(this), 1d)")):
        (one,) = made(replace(LONELY, scope=scope))
        assert flattened(understand(one.expression, scope)) == stored


def test_tests_of_partitions_have_no_cadence_and_tests_of_the_whole_do() -> None:
    assert {one.key for one in made(FLIGHTS) if one.cadence} == {"freshness"}
    assert all(one.cadence == timedelta(hours=6) for one in made(LONELY))


def test_a_comparison_with_a_data_center_does_not_run_there() -> None:
    expression = parse("min(rows(this), rows(this@dc1)) / rows(this@dc1) > 99.9%")
    assert [runs_in(expression, center) for center in ("dc1", "dc2")] == [False, True]


def test_what_a_person_writes_takes_its_parameters_along() -> None:
    one = CUSTOM.of(
        FLIGHTS, key="k", title="t", expression="rows(this) > 5 with sustain=5m, partition=whole", because="asked"
    )
    assert (one.sustain, one.cadence) == (timedelta(minutes=5), timedelta(minutes=15))
    plain = CUSTOM.of(FLIGHTS, key="k", title="t", expression="rows(this) > 5", because="asked")
    assert (plain.sustain, plain.cadence) == (slas_of(1).sustain, None)
    fresh = CUSTOM.of(FLIGHTS, key="k", title="t", expression="freshness(this) < 30m", because="asked")
    assert fresh.cadence == slas_of(1).cadence


def test_what_a_person_writes_is_checked() -> None:
    with pytest.raises(ExpressionError, match=r"has no column `dya`\. Did you mean `day`"):
        CUSTOM.of(FLIGHTS, key="k", title="t", expression="nulls(this.dya) == 0", because="asked")


def test_a_finding_fails_at_once() -> None:
    one = FINDING.of("rows_not_accounted_for")
    assert (one.key, one.sustain, one.title) == (
        "finding:rows_not_accounted_for",
        timedelta(),
        "Rows not accounted for",
    )
    assert flattened(understand(one.expression, SCOPE)) == "eq(findings(this, rows_not_accounted_for), 0)"
