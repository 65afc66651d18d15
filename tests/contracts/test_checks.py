"""Every check makes definitions that parse, type and repeat. A new check gets a row in EXPECTED."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from lakehub.kernel.partitions import Grain
from quality.checks import CHECKS, all_definitions, is_reserved_key
from quality.checks.custom import CUSTOM
from quality.checks.finding import FINDING
from quality.checks.null_keys import NULL_KEYS
from quality.checks.repeated_keys import REPEATED_KEYS
from quality.domain.generation.business_metrics import BusinessMetric
from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck, runs_in
from quality.domain.generation.rules import Rule
from quality.domain.language import ExpressionError, Scope, flattened, parse, understand
from quality.domain.slas import slas_for_tier
from quality.domain.timeliness.production_calendar import parse_calendar

SCOPE = Scope(
    tables={
        "this": frozenset({"id", "day", "at"}),
        "upstream": frozenset({"id", "day", "at"}),
        "planes": frozenset({"tailnum"}),
    },
    data_centers=frozenset({"dc1", "dc2"}),
    primary_key=("id", "day"),
    event_time="at",
    grains={"this": Grain.DAY},
    metrics={"punctual": "SELECT COUNT(*) FROM this"},
)
RULES = (
    Rule("nulls", "at", {"share": "1%"}),
    Rule("range", "id", {"low": -1, "high": 10}),
    Rule("accepted", "id", {"values": ["a", "it's"]}, by="day"),
    Rule("rows_anomaly"),
)
PUNCTUAL = BusinessMetric(
    "punctual",
    "SELECT COUNT(*) FROM this",
    second_sql="SELECT SUM(1) FROM this",
    low=0.5,
    week_over_week="20%",
    anomaly=True,
    inputs={"planes": timedelta(hours=4)},
    freshness=timedelta(hours=2),
)
FLIGHTS = DatasetFacts(
    "flights",
    1,
    slas_for_tier(1),
    SCOPE,
    Grain.DAY,
    ("dc1", "dc2"),
    one_to_one=True,
    upstream_is_external=True,
    partition_columns=("at",),
    nullable_keys=("id", "day"),
    rules=RULES,
    metrics=(PUNCTUAL,),
)
LONELY = DatasetFacts("notes", 4, slas_for_tier(4), Scope(tables={"this": None}), Grain.NONE, ("dc1",))

NOW, SECOND = (f"query(this, 'SELECT {counted} FROM this')" for counted in ("COUNT(*)", "SUM(1)"))
BEFORE = NOW.replace("this,", "this[-1w],")

EXPECTED = {
    "freshness": {"freshness": "lt(freshness(this, upstream), 2h)"},
    "volume": {"volume": "gt(rows(this), 0)"},
    "completeness": {
        "completeness": "and(gt(div(rows(this), rows(upstream)), 99.9%), lt(div(rows(this), rows(upstream)), 100.1%))"
    },
    "sampling": {"sample": "gt(sampled(this, upstream, 1000, id, day), 99.9%)"},
    "duplicates": {"duplicates": "le(div(repeated(this, id, day), rows(this)), 0%)"},
    "null_keys": {
        "null_keys": "and(le(div(null_keys(this.id), rows(this)), 0%), le(div(null_keys(this.day), rows(this)), 0%))"
    },
    "repeated_keys": {
        "repeated_keys": "eq(across_partitions(this, id, day), 0) with partition=whole, timeout=15m",
    },
    "row_count_cross_dc": {
        "row_count@dc1": "gt(div(rows(this), max(rows(this), rows(this@dc1))), 99.9%)",
        "row_count@dc2": "gt(div(rows(this), max(rows(this), rows(this@dc2))), 99.9%)",
    },
    "bloom_cross_dc": {
        "bloom@dc1": "gt(matching(this, this@dc1, 100%, id, day), 99.9%)",
        "bloom@dc2": "gt(matching(this, this@dc2, 100%, id, day), 99.9%)",
    },
    "difference": {
        "difference@dc1": "lt(difference(this, this@dc1, '', id, day), 0.1%)",
        "difference@dc2": "lt(difference(this, this@dc2, '', id, day), 0.1%)",
    },
    "column": {
        "rule:at.nulls": "lt(div(nulls(this.at), rows(this)), 1%)",
        "rule:id.range": "le(div(outside(this.id, neg(1), 10), rows(this)), 0%)",
    },
    "dimension": {
        "rule:id.accepted.by.day": "le(div(unexpected(this.id, 'a', 'it''s'), rows(this)), 0%) with by=day",
    },
    "metric": {
        "metric:punctual.freshness": "and(lt(freshness(this, upstream), 2h), lt(freshness(planes), 4h))",
        "metric:punctual.bounds": f"ge({NOW}, 0.5)",
        "metric:punctual.week_over_week": f"lt(div(abs(sub({NOW}, {BEFORE})), abs({BEFORE})), 20%)",
        "metric:punctual.agreement": f"lt(div(abs(sub({NOW}, {SECOND})), abs({NOW})), 0.1%)",
    },
    "anomaly": {
        "rule:rows_anomaly": "lt(deviation(rows(this), 8w), 4)",
        "metric:punctual.anomaly": f"lt(deviation({NOW}, 8w), 4)",
    },
    "custom": {},
    "finding": {},
}


def made(dataset: DatasetFacts) -> list[Definition]:
    return [definition for definition in all_definitions(dataset) if isinstance(definition, Definition)]


def skipped(dataset: DatasetFacts) -> dict[str, str]:
    return {
        inapplicable.check: inapplicable.reason
        for inapplicable in all_definitions(dataset)
        if isinstance(inapplicable, InapplicableCheck)
    }


@pytest.mark.parametrize("name", list(CHECKS))
def test_it_makes_these_tests(name: str) -> None:
    check = CHECKS.get(name)
    definitions = [definition for definition in check.definitions(FLIGHTS) if isinstance(definition, Definition)]
    assert {
        definition.key: flattened(understand(definition.expression, SCOPE)) for definition in definitions
    } == EXPECTED[name]
    assert {definition.category for definition in definitions} <= {check.category}


def test_the_lower_tiers_compare_a_tenth_of_the_keys() -> None:
    (first, _) = (
        definition
        for definition in made(replace(FLIGHTS, tier=2, slas=slas_for_tier(2)))
        if definition.check == "bloom_cross_dc"
    )
    assert first.expression == "matching(this, this@dc1, 10%) > 99.9%"


def test_a_sample_needs_an_upstream_outside_the_lake_that_has_the_key() -> None:
    tables = {**SCOPE.tables, "upstream": frozenset({"id"})}
    within = replace(FLIGHTS, upstream_is_external=False)
    other = replace(FLIGHTS, scope=replace(SCOPE, tables=tables))
    inexact = replace(FLIGHTS, float_columns=frozenset({"id"}))
    why = "id of the primary key holds floating-point numbers"
    assert skipped(inexact) == dict.fromkeys(("sampling", "repeated_keys", "bloom_cross_dc", "difference"), why)
    assert skipped(within) == {"sampling": "no upstream outside the lake"}
    assert skipped(other) == {"sampling": "upstream lacks day of the primary key"}


def test_rows_without_a_key_are_looked_for_where_a_column_of_it_can_be_null() -> None:
    assert skipped(replace(FLIGHTS, nullable_keys=())) == {"null_keys": "no column of the primary key can be null"}
    (definition,) = NULL_KEYS.definitions(replace(FLIGHTS, nullable_keys=("day",), slas=slas_for_tier(2)))
    assert isinstance(definition, Definition)
    assert definition.expression == "null_keys(this.day) / rows(this) < 0.1%"


def test_keys_are_looked_for_in_all_partitions_where_they_are_meant_to_be_in_one() -> None:
    for changed, why in (
        ({"partition_columns": ("day",)}, "the primary key holds the partition, so none is in two of them"),
        ({"unique_within_partition": True}, "keys are unique within a partition (override unique_within)"),
    ):
        assert skipped(replace(FLIGHTS, **changed))["repeated_keys"] == why  # type: ignore[arg-type]
    (definition,) = REPEATED_KEYS.definitions(replace(FLIGHTS, partition_columns=("day", "hour")))
    assert isinstance(definition, Definition)
    assert (definition.cadence, definition.least_rerun) == (timedelta(days=1), timedelta(days=1))


def test_columns_that_each_data_center_writes_for_itself_are_not_compared() -> None:
    first = next(
        definition
        for definition in made(replace(FLIGHTS, not_compared=("loaded_at", "host")))
        if definition.check == "difference"
    )
    assert first.expression == "difference(this, this@dc1, 'loaded_at, host') < 0.1%"


def test_keys_are_unique_and_definitions_repeat() -> None:
    assert made(FLIGHTS) == made(FLIGHTS)
    assert len({definition.key for definition in made(FLIGHTS)}) == len(made(FLIGHTS))


@pytest.mark.parametrize("name", list(CHECKS))
def test_what_its_tests_are_called_is_reserved(name: str) -> None:
    check = CHECKS.get(name)
    keys = [definition.key for definition in check.definitions(FLIGHTS) if isinstance(definition, Definition)]
    assert all(key.partition("@")[0] in check.keys or key.startswith(check.keys) for key in keys)
    assert all(
        is_reserved_key(key)
        for key in [name, f"{name}@dc3", *keys, *check.keys, FINDING.definition_of("audit_refused").key]
    )
    assert not any(is_reserved_key(f"my-{key}") or is_reserved_key(f"{key.rstrip(':')}s") for key in check.keys)


def test_each_says_which_metadata_made_it() -> None:
    assert all(definition.because.startswith("tier 1") for definition in made(FLIGHTS))


def test_what_cannot_be_tested_is_listed_with_what_is_missing() -> None:
    assert skipped(LONELY) == {
        "volume": "a table without partitions",
        "completeness": "no upstream whose rows map one to one",
        "sampling": "no upstream outside the lake",
        "duplicates": "no primary key",
        "null_keys": "no primary key",
        "repeated_keys": "a table without partitions: duplicates look at all of it",
        "row_count_cross_dc": "a copy in one data center only",
        "bloom_cross_dc": "a copy in one data center only",
        "difference": "a copy in one data center only",
    }
    assert skipped(FLIGHTS) == {}


def test_without_upstream_freshness_goes_by_event_time_and_then_by_commits() -> None:
    by_event = Scope(tables={"this": frozenset({"at"})}, event_time="at")
    for scope, stored in ((by_event, "le(freshness(this.at), 1d)"), (LONELY.scope, "le(freshness(this), 1d)")):
        (definition,) = made(replace(LONELY, scope=scope))
        assert flattened(understand(definition.expression, scope)) == stored


def test_tests_of_partitions_have_no_cadence_and_tests_of_the_whole_do() -> None:
    assert {definition.key for definition in made(FLIGHTS) if definition.cadence} == {
        "freshness",
        "repeated_keys",
        "metric:punctual.freshness",
    }
    assert all(definition.cadence == timedelta(hours=6) for definition in made(LONELY))


def test_a_comparison_with_a_data_center_does_not_run_there() -> None:
    expression = parse("min(rows(this), rows(this@dc1)) / rows(this@dc1) > 99.9%")
    assert [runs_in(expression, center) for center in ("dc1", "dc2")] == [False, True]


def test_what_a_person_writes_takes_its_parameters_along() -> None:
    definition = CUSTOM.definition_of(
        FLIGHTS, key="k", title="t", expression="rows(this) > 5 with sustain=5m, partition=whole", because="asked"
    )
    assert (definition.sustain, definition.cadence) == (timedelta(minutes=5), timedelta(minutes=15))
    plain = CUSTOM.definition_of(FLIGHTS, key="k", title="t", expression="rows(this) > 5", because="asked")
    assert (plain.sustain, plain.cadence) == (slas_for_tier(1).sustain, None)
    search = CUSTOM.definition_of(
        FLIGHTS, key="k", title="t", expression="across_partitions(this, id) == 0 with partition=whole", because="asked"
    )
    assert (search.cadence, search.least_rerun) == (timedelta(days=1), timedelta(days=1))
    fresh = CUSTOM.definition_of(FLIGHTS, key="k", title="t", expression="freshness(this) < 30m", because="asked")
    assert fresh.cadence == slas_for_tier(1).cadence


def test_suspicion_alarms_but_does_not_gate() -> None:
    hints = (
        "repeated_keys",
        "metric:punctual.freshness",
        "metric:punctual.week_over_week",
        "rule:rows_anomaly",
        "metric:punctual.anomaly",
    )
    assert tuple(definition.key for definition in made(FLIGHTS) if not definition.gating) == hints


def test_a_rule_that_makes_no_sense_costs_no_other() -> None:
    broken = replace(FLIGHTS, rules=(Rule("nulls", "at", {"share": "many"}), *RULES), metrics=())
    assert [definition.key for definition in made(broken) if definition.check == "column"] == [
        "rule:at.nulls",
        "rule:id.range",
    ]
    assert skipped(broken)["column"].startswith("rule:at.nulls: share='many' cannot be read")


def test_what_is_not_produced_every_day_is_not_expected_every_day() -> None:
    weekdays = replace(FLIGHTS, production_calendar=parse_calendar("0 6 * * mon-fri", "US", ZoneInfo("UTC")))
    fresh = next(definition for definition in made(weekdays) if definition.key == "freshness")
    assert fresh.expression == "freshness(this) < 2h with calendar='0 6 * * mon-fri', holidays='US'"


def test_what_a_person_writes_is_checked() -> None:
    with pytest.raises(ExpressionError, match=r"has no column `dya`\. Did you mean `day`"):
        CUSTOM.definition_of(FLIGHTS, key="k", title="t", expression="nulls(this.dya) == 0", because="asked")


def test_a_captured_dataset_is_asked_whether_its_changes_come_and_are_accounted_for() -> None:
    """Others get these tests with a first finding."""
    asked = {each.key: each for each in made(replace(FLIGHTS, is_captured=True)) if each.key.startswith("finding:")}
    assert {key: (each.title, each.planned, each.cadence) for key, each in asked.items()} == {
        "finding:copy_behind": ("Changes arrive in time", True, FLIGHTS.slas.cadence),
        "finding:messages_unaccounted": ("Source = log = commits", True, FLIGHTS.slas.cadence),
    }
    assert not [each for each in made(FLIGHTS) if each.key.startswith("finding:")]


def test_a_finding_fails_at_once() -> None:
    definition = FINDING.definition_of("rows_not_accounted_for")
    assert (definition.key, definition.sustain, definition.title) == (
        "finding:rows_not_accounted_for",
        timedelta(),
        "Rows not accounted for",
    )
    assert flattened(understand(definition.expression, SCOPE)) == "eq(findings(this, rows_not_accounted_for), 0)"
