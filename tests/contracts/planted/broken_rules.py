"""Rules of Lakehub, each broken by a line: the planted defects must tell.

None breaks what a cache keeps from one test to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from incidents.domain.alerting import suppression
from incidents.domain.gate import causes, decide
from incidents.gate import load_state
from incidents.lifecycle import correlate
from ingestion.lake import misplaced_rows
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding import checks as onboarding_checks
from lakehub.kernel.interval import FOREVER, Interval
from lakehub.kernel.outcome import Outcome, Verdict
from lakehub.kernel.partitions import Grain, floor_to_bucket, partition_at, partition_name
from quality.checks import completeness
from quality.checks.duplicates import DuplicatesCheck
from quality.checks.volume import VolumeCheck
from quality.cross_source.methods import row_difference
from quality.domain.difference.sums import Kind
from quality.domain.generation.definitions import DatasetFacts, Definition, InapplicableCheck
from quality.domain.language.functions import freshness
from quality.domain.language.values import EvaluationContext
from quality.domain.scheduling import history
from quality.domain.verdicts import unit_verdict
from quality.measuring import table_bindings
from quality.measuring.table_bindings import TableBinding
from quality.planning import change_polling, dependents

Break = Callable[[pytest.MonkeyPatch], None]
Rows = Mapping[datetime, int]
BROKEN_RULES: dict[str, Break] = {}


def rule(name: str) -> Callable[[Break], Break]:
    def register(breaks: Break) -> Break:
        BROKEN_RULES[name] = breaks
        return breaks

    return register


# What is a value


@rule("no rows are no value")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EvaluationContext, "expects_rows", False)


@rule("volume is not tested")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VolumeCheck, "definitions", lambda *_: iter(()))


@rule("completeness has no upper side")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(completeness, "_within", lambda sla: f"rows(this) / rows(upstream) > {float(sla):%}")


@rule("completeness allows no loss")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(completeness, "_within", lambda sla: "rows(this) == rows(upstream)")


@rule("doubled rows are not counted")
def _(patch: pytest.MonkeyPatch) -> None:
    generated = DuplicatesCheck.definitions

    def counted_once(check: DuplicatesCheck, dataset: DatasetFacts) -> Iterator[Definition | InapplicableCheck]:
        for definition in generated(check, dataset):
            yield (
                replace(definition, expression="rows(this) >= 0") if isinstance(definition, Definition) else definition
            )

    patch.setattr(DuplicatesCheck, "definitions", counted_once)


@rule("changed values are no difference")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(row_difference, "DECIDING", (Kind.MISSING, Kind.DOUBLED))


@rule("a larger partition is compared with the first of upstream's in it")
def _(patch: pytest.MonkeyPatch) -> None:
    def first(table: TableBinding, partition: Interval) -> Iterator[str]:
        yield partition_name(partition_at(partition.start, table.grain, table.zone), table.grain, table.zone)

    patch.setattr(TableBinding, "_names_within", first)


# Which partitions, and when


@rule("the zone of the dataset is ignored")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dataset, "zone", ZoneInfo("UTC"))


@rule("holes in the history are not tested")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(history, "holes_before", lambda *_, **__: iter(()))


@rule("what changed is not tested again")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(change_polling, "retest", lambda *_, **__: 0)


@rule("what compares itself with a changed table is not tested again")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dependents, "dependent_units", lambda *_: iter(()))


# Freshness


@rule("the front is the end of the last partition, whatever is in it")
def _(patch: pytest.MonkeyPatch) -> None:
    def front(*_: object, grain: Grain, zone: ZoneInfo, now: datetime, **__: object) -> datetime:
        return floor_to_bucket(now, grain, zone)

    patch.setattr(freshness, "complete_until", front)


@rule("all that follows a hole is stale")
def _(patch: pytest.MonkeyPatch) -> None:
    def front(own: Rows, upstream: Rows, *, grain: Grain, zone: ZoneInfo, now: datetime, **_: object) -> datetime:
        holes = (start for start, rows in upstream.items() if own.get(start, 0) < rows)
        return min(holes, default=floor_to_bucket(now, grain, zone))

    patch.setattr(freshness, "complete_until", front)


@rule("an event of the future keeps a table fresh")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(table_bindings, "floor_to_bucket", lambda *_: FOREVER)


# What is told


@rule("a message is held where some of what is wrong is stale")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(suppression, "_covers_or_meets", lambda late, ranges: any(map(late.data.overlaps, ranges)))


@rule("no message is held")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(suppression, "_covers_or_meets", lambda *_: False)


@rule("what heals stays open")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(correlate.Correlator, "_end_span", lambda *_: None)


@rule("values that are no partition are left out in silence")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(misplaced_rows, "report_unreadable_values", lambda *_, **__: None)


@rule("rows of the future are left out in silence")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(misplaced_rows, "is_too_far_ahead", lambda *_, **__: False)


@rule("one table may be two copies")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(onboarding_checks, "check_distinct_tables", lambda *_, **__: None)


# The gate


@rule("what cannot be read passes")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(unit_verdict, "_unknown", lambda *_: None)


@rule("the gate lets the unknown through")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide.Policy, "is_blocked_by", lambda _, cause: cause.verdict is Verdict.FAIL)


@rule("the gate does not ask for freshness")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(causes, "_freshness_causes", lambda *_: iter(()))


@rule("the gate looks for partitions of a month at most")
def _(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(load_state, "WIDTH_MARGIN", timedelta(days=31) - Grain.QUARTER.width)


@rule("that there is nothing to compare with ends a failure")
def _(patch: pytest.MonkeyPatch) -> None:
    failing = unit_verdict._failing

    def failing_with_data(facts: unit_verdict.UnitFacts, now: datetime) -> unit_verdict.Judgement | None:
        return None if facts.latest_outcome is Outcome.NO_DATA else failing(facts, now)

    patch.setattr(unit_verdict, "_failing", failing_with_data)
