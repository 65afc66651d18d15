"""How long it took until what was real was detected, acknowledged and resolved.

Measured of detected incidents from the first failure of their first unit to the moment they were opened (so the sustain
period is in it), and of acknowledged reports from when it began to be wrong, as far as the reporter knows, to the report;
from there until somebody acknowledged it; and from there until it was resolved, by whom or whatever. After a reopening the
acknowledgement of the new round counts, from the first opening on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Min, QuerySet

from incidents.domain.scores.response_times import ResponseTime, response_time
from incidents.models import Incident
from incidents.scores.drilldown import measured_incidents, real_incidents
from incidents.scores.intervals import as_text, parse_instant, raw_rows
from incidents.scores.scope import ALL_DATASETS, Scope
from lakehub.kernel.interval import Interval


@dataclass(frozen=True)
class ResponseTimes:
    """Detect and acknowledge: of incidents opened in the window. Resolve: of those resolved in it."""

    detect: ResponseTime
    acknowledge: ResponseTime
    resolve: ResponseTime


def response_times_of(window: Interval, scope: Scope = ALL_DATASETS) -> ResponseTimes:
    """Six queries, over the incidents of the window and those that are open."""
    within = Incident.objects.filter(scope.of_datasets("dataset__"), **_category(scope))
    opened = within.filter(measured_incidents("detect", window))
    unseen = opened.filter(acknowledged_at=None, resolved_at=None).count()
    still_open = within.filter(real_incidents(), resolved_at=None, opened_at__lt=window.end).count()
    resolved = within.filter(measured_incidents("resolve", window))
    return ResponseTimes(
        detect=response_time(_detection_times(opened.filter(reported=False), opened.filter(reported=True))),
        acknowledge=response_time(
            _durations_between(opened.filter(acknowledged_at__isnull=False), "opened_at", "acknowledged_at"), unseen
        ),
        resolve=response_time(_durations_between(resolved, "opened_at", "resolved_at"), still_open),
    )


def _category(scope: Scope) -> dict[str, str]:
    return {"category": scope.category} if scope.category else {}


def _detection_times(detected: QuerySet[Incident], reported: QuerySet[Incident]) -> Iterator[timedelta]:
    began = detected.annotate(began=Min("spans__began_at")).filter(began__isnull=False).order_by()
    yield from _durations_between(began, "began", "opened_at")
    yield from _durations_between(reported, "report__occurred_at", "opened_at")


def _durations_between(rows: QuerySet[Any, Any], start_column: str, end_column: str) -> Iterator[timedelta]:
    """From the first to the second; never less than nothing, where a reporter's clock ran ahead."""
    for start, end in raw_rows(rows.values_list(as_text(start_column), as_text(end_column))):
        yield max(parse_instant(end) - parse_instant(start), timedelta())
