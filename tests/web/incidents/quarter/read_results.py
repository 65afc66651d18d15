"""What the machine came to, read from its tables."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from incidents.models import Incident, Message, Span, UserReport
from incidents.scores.scoring import scores_of
from lakehub.kernel.interval import Interval
from quality.models import Result, Unit
from tests.web.incidents.quarter.model_scores import windows
from tests.web.incidents.quarter.results import Case, Execution, Letter, Name, QuarterResults, Reply, Score, SpanOf
from tests.web.incidents.quarter.scenario import MINUTE, Key
from tests.web.incidents.quarter.system_under_test import OWNERS, SystemUnderTest, key_of

OCCASIONS = ("opened", "reopened", "resolved", "acknowledged", "released", "reported")
"""What the book knows of; what else is told (mentions, recovery, worse) has tests of its own."""


def read(machine: SystemUnderTest) -> QuarterResults:
    keys = keys_by_number()
    names = names_by_number()
    return QuarterResults(
        executions=sorted(executions(keys)),
        cases=sorted(cases(keys, names)),
        letters=sorted(letters(names)),
        replies=[
            Reply(*reply[:4], tuple(sorted(names[number] for number in reply.incidents)), reply.retry_at)
            for reply in machine.replies
        ],
        scores=[score(machine, *window) for window in windows(machine.story)],
    )


def keys_by_number() -> dict[int, Key]:
    return {unit.pk: key_of(unit) for unit in Unit.objects.select_related("test__dataset", "copy__data_center")}


def names_by_number() -> dict[int, Name]:
    counts: defaultdict[tuple[str, str, str], int] = defaultdict(int)
    names = {}
    for row in Incident.objects.select_related("dataset").order_by("opened_at", "pk"):
        kind = "reported" if row.reported else "detected"
        key = (row.dataset.name, row.category, kind)
        counts[key] += 1
        names[row.pk] = Name(*key, counts[key])
    return names


def executions(keys: dict[int, Key]) -> list[Execution]:
    rows = Result.objects.values_list("read_at", "unit", "outcome", "trigger")
    return [Execution(at, keys[unit], outcome.upper(), trigger == "manual") for at, unit, outcome, trigger in rows]


def cases(keys: dict[int, Key], names: dict[int, Name]) -> list[Case]:
    spans: defaultdict[int, list[SpanOf]] = defaultdict(list)
    for row in Span.objects.all():
        spans[row.incident_id].append(SpanOf(keys[row.unit_id], row.start, row.end, row.began_at, row.ended_at))
    matched = dict(UserReport.objects.exclude(matched_incident=None).values_list("incident", "matched_incident"))
    return [
        Case(
            row.opened_at,
            names[row.pk],
            row.state,
            row.resolved_at,
            row.resolution,
            tuple(sorted(spans[row.pk], key=lambda span: (span.key, span.began_at))),
            names.get(matched.get(row.pk, 0)),
        )
        for row in Incident.objects.all()
    ]


def letters(names: dict[int, Name]) -> list[Letter]:
    rows = [row for row in Message.objects.filter(occasion__in=OCCASIONS) if row.address == OWNERS]
    return [
        Letter(
            row.created_at,
            names[row.incident_id],
            row.occasion,
            row.state,
            row.sent_at,
            row.suppressed_since,
            row.released_at,
        )
        for row in rows
    ]


def score(machine: SystemUnderTest, start: datetime, end: datetime) -> Score:
    scores = scores_of(Interval(start, end), now=machine.story.end)
    durations, queries = scores.durations, scores.queries
    return Score(
        start,
        end,
        *(duration / MINUTE for duration in (durations.tp, durations.fp, durations.fn)),
        scores.incident_share,
        queries.asked,
        queries.failed,
        tuple((level.dataset, level.incident_share) for level in scores.datasets),
    )
