"""How many questions the gate was asked, and how many of them were about data that was wrong then, as is known now.

A question, (consumer, request, copy, range), counts once, at its first time in the window. The log holds its first time ever;
of one that lies before the window the first of its later times within counts. What failed is found from what was wrong, not
by looking at each question: its cost is what failed and not what was asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Case, Count, Exists, IntegerField, OuterRef, Q, QuerySet, Value, When

from incidents.domain.incident.resolution import Resolution
from incidents.domain.scores.quality_levels import QueryLevel
from incidents.models import RepeatedQuestion, Span, UserReport
from incidents.scores.intervals import ACKNOWLEDGED_REPORTS
from lakehub.kernel.interval import Interval

_QUESTIONS_SQL = """
SELECT q.copy_id, q.at FROM catalog_datasetcopy c CROSS JOIN incidents_gatequestion q
WHERE q.copy_id = c.id AND q.at >= %(from)s AND q.at < %(to)s
"""
_FAILED_QUESTIONS_SQL = """
SELECT q.id, q.copy_id, q.at FROM incidents_span s
JOIN incidents_incident i ON i.id = s.incident_id
CROSS JOIN incidents_gatequestion q
WHERE i.reported = %(no)s AND i.resolution <> 'false_positive'
  AND s.id IN (SELECT id FROM incidents_span WHERE began_at < %(to)s AND (ended_at IS NULL OR ended_at > %(from)s))
  AND q.copy_id = s.copy_id
  AND q.at >= CASE WHEN s.began_at > %(from)s THEN s.began_at ELSE %(from)s END
  AND q.at < CASE WHEN s.ended_at < %(to)s THEN s.ended_at ELSE %(to)s END
  AND q.start < s."end" AND s.start < q."end"
UNION
SELECT q.id, q.copy_id, q.at FROM incidents_userreport r
JOIN incidents_incident i ON i.id = r.incident_id
JOIN catalog_datasetcopy c ON c.dataset_id = i.dataset_id AND (r.copy_id IS NULL OR r.copy_id = c.id)
CROSS JOIN incidents_gatequestion q
WHERE i.acknowledged_at IS NOT NULL AND i.resolution <> 'rejected'
  AND r.occurred_at < %(to)s AND (r.fixed_at IS NULL OR r.fixed_at > %(from)s)
  AND q.copy_id = c.id
  AND q.at >= CASE WHEN r.occurred_at > %(from)s THEN r.occurred_at ELSE %(from)s END
  AND q.at < CASE WHEN r.fixed_at < %(to)s THEN r.fixed_at ELSE %(to)s END
  AND q.start < r."end" AND r.start < q."end"
"""
"""A cross join is done in the order in which it is written: what was wrong first, then by index what was asked meanwhile."""


StepCounts = list[tuple[int, int, int, int]]
"""(copy, step, how many were asked, how many of them failed)"""


def query_levels(edges: Sequence[datetime], copies: dict[int, int]) -> dict[int, list[QueryLevel]]:
    """By dataset, one between each two of the edges, of the window from the first of them to the last. `copies`: the dataset
    of each copy that is asked about."""
    steps = len(edges) - 1
    levels: defaultdict[int, list[QueryLevel]] = defaultdict(lambda: [QueryLevel()] * steps)
    for copy, at, asked_count, failed_count in (*_asked_counts(edges), *_failed_counts(edges), *_repeat_counts(edges)):
        if copy in copies:
            levels[copies[copy]][at] += QueryLevel(failed_count, asked_count)
    return levels


def first_repeats_in(window: Interval) -> QuerySet[RepeatedQuestion]:
    """The first time in the window of each question whose first time ever lies outside."""
    inside = Q(question__at__gte=window.start, question__at__lt=window.end)
    earlier = RepeatedQuestion.objects.filter(
        question=OuterRef("question"), at__gte=window.start, at__lt=OuterRef("at")
    )
    return RepeatedQuestion.objects.filter(~inside, ~Exists(earlier), at__gte=window.start, at__lt=window.end)


def _asked_counts(edges: Sequence[datetime]) -> StepCounts:
    return [(copy, at, n, 0) for copy, at, n in _count_by_step(_QUESTIONS_SQL, edges)]


def _failed_counts(edges: Sequence[datetime]) -> StepCounts:
    return [(copy, at, 0, n) for copy, at, n in _count_by_step(_FAILED_QUESTIONS_SQL, edges)]


def _count_by_step(query: str, edges: Sequence[datetime]) -> list[tuple[int, int, int]]:
    stored = [connection.ops.adapt_datetimefield_value(edge) for edge in edges]
    named: dict[str, Any] = {"from": stored[0], "to": stored[-1], "no": False}
    named |= {f"edge{at}": edge for at, edge in enumerate(stored[1:])}
    steps = " ".join(f"WHEN at < %(edge{at})s THEN {at}" for at in range(len(edges) - 1))
    counted = f"SELECT copy_id, CASE {steps} END AS step, COUNT(*) FROM ({query}) AS q GROUP BY copy_id, step"  # noqa: S608  # no text of a person
    with connection.cursor() as cursor:
        cursor.execute(counted, named)
        return [(int(copy), int(at), int(n)) for copy, at, n in cursor.fetchall()]


def _repeat_counts(edges: Sequence[datetime]) -> StepCounts:
    steps = (When(at__lt=edge, then=Value(at)) for at, edge in enumerate(edges[1:]))
    rows = first_repeats_in(Interval(edges[0], edges[-1])).annotate(step=Case(*steps, output_field=IntegerField()))
    counted = (
        rows.values_list("question__copy", "step")
        .order_by()
        .annotate(n=Count("pk"), bad=Count("pk", filter=_met_failure()))
    )
    return list(counted)


def _met_failure() -> Q:
    """Over later times: the question was about something that was wrong then."""
    about = {"start__lt": OuterRef("question__end"), "end__gt": OuterRef("question__start")}
    then = Q(ended_at=None) | Q(ended_at__gt=OuterRef("at"))
    spans = Span.objects.filter(then, began_at__lte=OuterRef("at"), copy=OuterRef("question__copy"), **about)
    real = spans.filter(~Q(incident__resolution=Resolution.FALSE_POSITIVE), incident__reported=False)
    not_fixed = Q(fixed_at=None) | Q(fixed_at__gt=OuterRef("at"))
    there = Q(copy=None) | Q(copy=OuterRef("question__copy"))
    reports = UserReport.objects.filter(
        ACKNOWLEDGED_REPORTS, not_fixed, there, occurred_at__lte=OuterRef("at"), **about
    )
    matching_reports = reports.filter(incident__dataset=OuterRef("question__copy__dataset"))
    return Exists(real) | Exists(matching_reports)
