"""A fault is put into one data center; tests see it, an incident opens, the gate answers."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet

from incidents.models import Incident
from ingestion.models import JobKind
from lakehub.catalog.models import DatasetCopy
from lakehub.demo.play.job_requests import request_and_wait
from lakehub.demo.play.lake_counts import rows_and_keys
from lakehub.demo.play.settle import next_retest, wait_until_idle
from lakehub.demo.play.story_context import StoryContext
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.partitions import partition_at
from quality.domain.slas import slas_for_tier
from quality.models import Category, Unit

TITLE = "A fault: dc2 loses about 1% of a day"

SHARE = 0.01
COALESCING_TIME = timedelta(minutes=3)
"""Longer than changes of a partition are gathered."""
RERUN_BATCH_WINDOW = timedelta(seconds=10)
"""Reruns that are due this close together are played in one go."""
MAX_RERUNS = 40
"""So many reruns, of all the tests that see the fault."""


def play(stage: StoryContext) -> None:
    copy = faulty_copy()
    day = faulty_day(copy, stage.now())
    label = copy.dataset.partition_label(day)
    before, _ = rows_and_keys(copy, label)
    request_and_wait(stage, copy, JobKind.DELETE, {"partitions": [label], "share": SHARE})
    left, _ = rows_and_keys(copy, label)
    stage.narrator.check(f"{copy} has {left:,} of {before:,} rows of {label}", 0 < before - left < before * 0.03)
    stage.play_on(COALESCING_TIME)
    wait_until_idle(stage)
    unit = comparing_units(day, "row_count_cross_dc").get()
    unit_text = f"{unit.test.title}: {unit.detail.get('observed')}, needs {unit.threshold}"
    stage.narrator.check(f"{unit_text}: {unit.verdict} at first", unit.verdict == Verdict.WARN)
    _play_reruns(stage, unit)
    _show_lost_rows(stage, day, lost=before - left)
    _show_incident(stage, day)
    show_gate(stage, "dc2", day, "fail")
    show_gate(stage, "dc2", previous_day(copy, day), "pass")
    show_gate(stage, "dc1", day, "pass")
    show_gate(stage, "dc1", tomorrow(copy, stage.now()), "unknown", "not_due")


def faulty_copy() -> DatasetCopy:
    return DatasetCopy.objects.select_related("dataset", "data_center").get(
        dataset__name="flights", data_center__name="dc2"
    )


def faulty_day(copy: DatasetCopy, now: datetime) -> Interval:
    """The newest day whose SLA has passed."""
    dataset = copy.dataset
    today = partition_at(
        now - slas_for_tier(dataset.tier, dataset.overrides).freshness, dataset.partition_grain, dataset.zone
    )
    return previous_day(copy, today)


def previous_day(copy: DatasetCopy, day: Interval) -> Interval:
    return partition_at(day.start - timedelta(hours=1), copy.dataset.partition_grain, copy.dataset.zone)


def tomorrow(copy: DatasetCopy, now: datetime) -> Interval:
    today = partition_at(now, copy.dataset.partition_grain, copy.dataset.zone)
    return partition_at(today.end, copy.dataset.partition_grain, copy.dataset.zone)


def comparing_units(day: Interval, check: str) -> QuerySet[Unit]:
    """The units of a check that compare the faulty copy with the other data center's."""
    comparing = Unit.objects.filter(copy=faulty_copy(), start=day.start, test__check_name=check)
    return comparing.filter(latest_at__isnull=False).select_related("test")


def _play_reruns(stage: StoryContext, unit: Unit) -> None:
    """Each rerun at its time, until the failure has lasted for the sustain period."""
    for _ in range(MAX_RERUNS):
        unit.refresh_from_db()
        coming = next_retest(stage.now(), timedelta(hours=1))
        if unit.verdict == Verdict.FAIL or coming is None:
            break
        stage.play_to(coming + RERUN_BATCH_WINDOW)
        wait_until_idle(stage)
    since = unit.first_fail_at or stage.now()
    offsets = [
        (at - since).total_seconds() / 60
        for at in unit.results.order_by("read_at").filter(read_at__gt=since).values_list("read_at", flat=True)
    ]
    stage.narrator.say(f"reruns after {', '.join(f'{minutes:.0f}' for minutes in offsets)} min")
    stage.narrator.check(f"after {unit.sustain or timedelta()} it is {unit.verdict}", unit.verdict == Verdict.FAIL)


def _show_lost_rows(stage: StoryContext, day: Interval, *, lost: int) -> None:
    """A Bloom filter travelled, and what it does not have is named. One in a thousand looks present."""
    unit = comparing_units(day, "bloom_cross_dc").get()
    named = unit.detail.get("missing", [])
    moved = unit.detail.get("bloom", {}).get("bytes_moved", 0)
    some = "; ".join(" ".join(record.values()) for record in named[:2])
    stage.narrator.check(
        f"{unit.test.title}: {len(named)} of the {lost} lost are named with {moved / 1000:.1f} kB moved: {some}; ...",
        lost - 1 <= len(named) <= lost,
    )


def _show_incident(stage: StoryContext, day: Interval) -> None:
    opened = Incident.objects.filter(dataset__name="flights", resolved_at=None).order_by("pk")
    for incident in opened:
        messages = ", ".join(sorted(set(incident.messages.values_list("state", flat=True)))) or "none"
        stage.narrator.say(f"incident {incident} ({incident.category}; messages: {messages})")
    crossing = opened.get(category=Category.CONSISTENCY)
    spans = crossing.spans.filter(ended_at=None)
    (over,) = set(spans.values_list("start", "end"))
    stage.narrator.check(
        f"{len(spans)} tests see it; its range is {over[0]:%d %b %H:%M} to {over[1]:%d %b %H:%M} UTC",
        over == (day.start, day.end),
    )


def show_gate(stage: StoryContext, data_center: str, data: Interval, verdict: str, reason: str = "") -> None:
    """Ask as a program in `data_center` does, and show the answer."""
    answer = stage.gate_clients[data_center].gate("flights", data)
    reasons = {cause["reason"] for cause in answer["reasons"] if cause["verdict"] == answer["verdict"]}
    zone = faulty_copy().dataset.zone
    answer_text = f"gate in {data_center} for {data.start.astimezone(zone):%a %d %b}: {answer['verdict']}"
    more = f" ({', '.join(sorted(reasons))})" if answer["verdict"] != "pass" else ""
    allowed = "allowed" if answer["allowed"] else "blocked"
    stage.narrator.check(
        f"{answer_text}{more}, {allowed}", answer["verdict"] == verdict and (not reason or reason in reasons)
    )
