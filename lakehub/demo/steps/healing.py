"""The fault is healed; the incident resolves by itself and the gate answers pass."""

from __future__ import annotations

from datetime import timedelta

from incidents.models import Incident, Resolution
from ingestion.models import JobKind
from lakehub.demo.play.job_requests import request_and_wait
from lakehub.demo.play.lake_counts import rows_and_keys
from lakehub.demo.play.settle import RETEST_BATCH_WINDOW, next_retest, wait_until_idle
from lakehub.demo.play.story_context import StoryContext
from lakehub.demo.steps.fault import faulty_copy, show_gate
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from quality.models import Category, Unit

TITLE = "The fault is healed"
MAX_RERUNS = 40


def play(stage: StoryContext) -> None:
    copy = faulty_copy()
    incident = Incident.objects.get(dataset__name="flights", category=Category.CONSISTENCY, resolved_at=None)
    ((start, end),) = set(incident.spans.filter(ended_at=None).values_list("start", "end"))
    day = Interval(start, end)
    label = copy.dataset.partition_label(day)
    request_and_wait(stage, copy, JobKind.BACKFILL, {"partitions": [label]})
    rows, keys = rows_and_keys(copy, label)
    stage.narrator.check(f"{copy} was given its rows back: {rows:,} rows of {label}, {keys:,} keys", rows == keys)
    _play_until_resolved(stage, incident)
    stage.narrator.check(
        f"incident {incident.pk} is {incident.state}, {incident.get_resolution_display()}",
        incident.resolution == Resolution.AUTO,
    )
    for event in incident.events.order_by("at", "pk"):
        stage.narrator.say(f"  {event.at:%d %b %H:%M}  {event.kind}  {event.text}")
    stage.narrator.say(f"the whole timeline: {stage.instance.url}/incidents/{incident.pk}")
    show_gate(stage, "dc2", day, "pass")


def _play_until_resolved(stage: StoryContext, incident: Incident) -> None:
    """Nobody does anything: the reruns and retests come at their times."""
    for _ in range(MAX_RERUNS):
        incident.refresh_from_db()
        coming = next_retest(stage.now(), timedelta(hours=1))
        if (incident.resolved_at is not None and not _is_any_failing()) or coming is None:
            return
        stage.play_to(coming + RETEST_BATCH_WINDOW)
        wait_until_idle(stage)


def _is_any_failing() -> bool:
    """Whether any test of the faulty copy still fails."""
    return Unit.objects.filter(copy=faulty_copy(), latest_outcome=Outcome.FAIL).exists()
