"""The product's own way through a table: onboarding, tests, baseline, runs, findings, incidents, the gate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from incidents.gate.answer import CopyQuestion, ask_gate
from incidents.lifecycle.intake import process_flips, update_stale_ranges
from incidents.models import Span
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest, UpstreamRequest
from lakehub.kernel.interval import EVERYTHING, Interval
from quality.execution import worker
from quality.execution.ingestion_findings import observe_findings
from quality.generation import custom_tests, generate
from quality.models import Unit
from quality.planning import baseline, change_polling, touched_partitions
from quality.state import reevaluation
from tests import factories
from tests.contracts.awkward.oracle import WHOLE, Bucket
from tests.contracts.awkward.shape import Shape
from tests.contracts.awkward.sources import Written
from tests.factories import NOW

LATER = NOW + timedelta(hours=3)
LAST = LATER + timedelta(minutes=12)
"""What failed at LATER fails for longer than the sustain period, and nothing else became due."""
DATASET, UPSTREAM = "awkward", "awkward-source"


def onboard(shape: Shape, copies: dict[str, Written], upstream: Written | None = None, name: str = DATASET) -> Dataset:
    """By the call behind the wizard, the API and the command. Raises Refused."""
    for center, written in copies.items():
        factories.data_center(center)
        factories.connection(f"{name}-{center}", url=written.url, plugin=written.plugin)
    if upstream is not None:
        factories.connection("at-upstream", url=upstream.url, plugin=upstream.plugin)
        onboard_dataset(_upstream_request(shape, upstream, tuple(copies)[:1]), actor="ann", now=NOW)
    request = _request(shape, copies, name, has_upstream=upstream is not None)
    return onboard_dataset(request, actor="ann", now=NOW).dataset


def _request(shape: Shape, copies: dict[str, Written], name: str, *, has_upstream: bool) -> OnboardingRequest:
    first, *others = copies
    facts = {
        "name": name,
        "team": "flight-ops",
        "tier": 1,
        "connection": f"{name}-{first}",
        "table": copies[first].table,
        "data_centers": tuple(copies),
        "copies": tuple(CopyRequest(center, f"{name}-{center}", copies[center].table) for center in others),
        "kind": "append-only",
        "primary_key": shape.key,
        "partition_column": shape.column,
        "partition_form": shape.form,
        "grain": shape.grain,
        "partition_tz": shape.zone,
        "event_time": shape.event_time,
        "upstream": (UpstreamRequest(UPSTREAM, one_to_one=True),) if has_upstream else (),
        "ingested": False,
        "overrides": {"sustain": "10m"},
    }
    return OnboardingRequest(**facts | shape.more)


def _upstream_request(shape: Shape, written: Written, centers: tuple[str, ...]) -> OnboardingRequest:
    column, form, grain, _ = shape.upstream_cut or (shape.column, shape.form, shape.grain, "")
    return OnboardingRequest(
        name=UPSTREAM, team="flight-ops", tier=1, connection="at-upstream", table=written.table, data_centers=centers,
        kind="append-only", primary_key=shape.key, partition_column=column, partition_form=form, grain=grain,
        partition_tz=shape.zone, ingested=False,
    )  # fmt: skip


def write_group_test(dataset: Dataset, by: str) -> None:
    expression = f"rows(this) / rows(upstream) > 99.9% with by={by}, least=1"
    custom_tests.write_custom_test(dataset, key="groups", title="Groups", expression=expression, actor="ann", now=NOW)


def watch(*, now: datetime) -> None:
    """What the processes of an instance do, once each."""
    generate.generate_outdated(now=now)
    baseline.start_missing_baselines(now=now)
    change_polling.poll_due_copies(now=now)
    touched_partitions.claim_touched_partitions(now=now)
    worker.run_due_units(now=now, worker="test", most=1_000)
    observe_findings(now=now)
    reevaluation.reevaluate_due_units(now=now)
    while process_flips(now=now):
        pass
    update_stale_ranges()


@dataclass(frozen=True)
class Product:
    """What the product says of a copy, by test and bucket, in the words of the oracle."""

    dataset: Dataset
    center: str

    @property
    def zone(self) -> ZoneInfo:
        return self.dataset.zone

    def outcomes(self) -> dict[tuple[str, Bucket], str]:
        """The latest outcome of each unit that was run, but for freshness."""
        return {(unit.test.key, self.bucket(unit)): unit.latest_outcome for unit in self._units() if self._is_cut(unit)}

    def causes(self) -> set[tuple[str, str]]:
        """(test, cause) where a test could not be answered."""
        return {
            (unit.test.key, str(unit.detail.get("cause", "")))
            for unit in self._units()
            if unit.latest_outcome == "error"
        }

    def freshness(self) -> tuple[str, datetime | None]:
        unit = self._units().get(test__key="freshness")
        return unit.latest_outcome, unit.affected_from

    def findings(self) -> dict[str, set[Bucket]]:
        """Open findings: the buckets that fail by kind; of what lies in none, the whole."""
        failing = self._units().filter(test__key__startswith="finding:", verdict="fail")
        by_kind: dict[str, set[Bucket]] = {}
        for unit in failing:
            by_kind.setdefault(unit.test.key.removeprefix("finding:"), set()).add(self.bucket(unit))
        return by_kind

    def incidents(self) -> dict[str, set[Bucket]]:
        """By category the buckets that open incidents are about."""
        spans = Span.objects.filter(incident__dataset=self.dataset, copy__data_center__name=self.center, ended_at=None)
        by_category: dict[str, set[Bucket]] = {}
        for span in spans.filter(incident__resolved_at=None).select_related("incident", "unit"):
            by_category.setdefault(span.incident.category, set()).add(self.bucket(span.unit))
        return by_category

    def gate(self, start: datetime, end: datetime, *, now: datetime) -> tuple[str, bool]:
        reply = ask_gate(
            CopyQuestion(self.dataset.name, Interval(start, end), "pricing", self.center), now=now, record=False
        )
        return reply.answer.verdict, reply.answer.allowed

    def bucket(self, unit: Unit) -> Bucket:
        if (unit.start, unit.end) == (EVERYTHING.start, EVERYTHING.end):
            return WHOLE
        local = unit.start.astimezone(self.zone)
        shown = local.replace(tzinfo=None, minute=0, second=0, fold=0)
        offset = local.utcoffset()
        assert offset is not None
        if self.dataset.grain == "hour":
            return shown, int(offset.total_seconds())
        return shown.replace(hour=0), 0

    def _is_cut(self, unit: Unit) -> bool:
        return unit.test.key != "freshness" and not unit.test.key.startswith("finding:")

    def _units(self) -> QuerySet[Unit]:
        units = Unit.objects.filter(test__dataset=self.dataset, copy__data_center__name=self.center)
        return units.exclude(latest_outcome="").select_related("test")
