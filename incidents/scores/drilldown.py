"""The incidents behind a number of the scores: exactly those that were counted, as a list that can be paged."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Greatest, Least

from incidents.domain.incident.resolution import Resolution
from incidents.models import GateQuestion, Incident, Span, UserReport
from incidents.scores.intervals import (
    ACKNOWLEDGED_REPORTS,
    acknowledged_reports,
    failure_intervals,
    grace_periods_in,
    reports_alive_in,
    spans_alive_in,
)
from incidents.scores.query_level import first_repeats_in
from incidents.scores.scope import Scope
from lakehub.catalog.models import DatasetCopy, GracePeriod
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean
from quality.models import QualityTest

DRILLDOWN_NUMBERS = {
    "tp": "that tests found, and that were real",
    "fp": "that were false positives",
    "fn": "that users reported while no test saw them",
    "unsettled": "that are open, and counted to the end of the window",
    "data": "behind the data-level score",
    "queries": "that questions to the gate met",
    "detect": "that were real, and opened in the window",
    "acknowledge": "that were real, opened in the window and acknowledged",
    "resolve": "that were real, and resolved in the window",
}
"""Each with what the incidents behind it are."""
_FALSE = Q(resolution=Resolution.FALSE_POSITIVE)
_NOT_REAL = (
    Resolution.FALSE_POSITIVE,
    Resolution.MERGED,
    Resolution.OFFBOARDED,
    Resolution.COPY_REMOVED,
    Resolution.REJECTED,
)


def drilldown_incidents(number: str, window: Interval, scope: Scope, *, kind: str = "") -> QuerySet[Incident]:
    """Newest first. `kind`: of false positives only those. Raises Refused where there is no such number."""
    if number not in DRILLDOWN_NUMBERS:
        raise Refused.for_fields({"behind": f"There is no number `{number}`.{did_you_mean(number, DRILLDOWN_NUMBERS)}"})
    narrowed = Q(scope.of_datasets("dataset__"))
    if scope.category:
        narrowed &= Q(category=scope.category)
    if kind:
        narrowed &= Q(false_positive=kind)
    return Incident.objects.filter(narrowed, _number_filter(number, window, scope)).order_by("-opened_at", "-pk")


def _number_filter(number: str, window: Interval, scope: Scope) -> Q:
    """Over incidents."""
    if number in ("detect", "acknowledge", "resolve"):
        return measured_incidents(number, window) & _of_test(scope)
    if number == "queries":
        return Q(pk__in=_spans_asked_about(window)) & ~_FALSE & Q(reported=False) | Q(
            pk__in=_reports_asked_about(window)
        )
    monitored = number == "data"
    detected = Q(
        reported=False, pk__in=_lived_incidents(window, scope, monitored=monitored, only_open=number == "unsettled")
    )
    if number == "fp":
        return detected & _FALSE
    if number == "tp":
        return detected & ~_FALSE
    missed = Q(pk__in=_missed_reports(window, scope, monitored=monitored))
    if number == "fn":
        return missed
    return detected & ~_FALSE | missed if monitored else detected | missed & Q(report__fixed_at=None)


# How long people and programs took


def real_incidents() -> Q:
    """Over incidents: what was the matter, whoever found it."""
    return ~Q(resolution__in=_NOT_REAL) & (Q(reported=False) | Q(acknowledged_at__isnull=False))


def measured_incidents(number: str, window: Interval) -> Q:
    """Over incidents: those whose time to be detected, acknowledged or resolved belongs to the window."""
    if number == "resolve":
        return real_incidents() & Q(resolved_at__gte=window.start, resolved_at__lt=window.end)
    opened = real_incidents() & Q(opened_at__gte=window.start, opened_at__lt=window.end)
    return opened if number == "detect" else opened & Q(acknowledged_at__isnull=False)


def _of_test(scope: Scope) -> Q:
    if not scope.test:
        return Q()
    return Q(Exists(Span.objects.filter(incident=OuterRef("pk"), unit__test__key=scope.test)))


# What lived


def _lived_incidents(window: Interval, scope: Scope, *, monitored: bool, only_open: bool) -> QuerySet[Span, int]:
    """The incidents of spans that count; of open ones only; of those after something of the dataset was monitored."""
    spans = _counted_spans(window, scope, monitored=monitored)
    return (spans.filter(ended_at=None) if only_open else spans).values_list("incident_id", flat=True)


def _counted_spans(window: Interval, scope: Scope, *, monitored: bool = False) -> QuerySet[Span]:
    """The spans that put time into a tally: they lived in the window, outside of the grace periods of their dataset."""
    dataset = "incident__dataset__"
    spans = Span.objects.filter(spans_alive_in(window), scope.of_datasets(dataset))
    # A life that ended as it began has no length.
    spans = spans.filter(Q(ended_at=None) | Q(ended_at__gt=F("began_at")))
    if scope.test:
        spans = spans.filter(unit__test__key=scope.test)
    first = [F("began_at"), Value(window.start)]
    if monitored:
        copies = DatasetCopy.objects.filter(dataset=OuterRef("incident__dataset"), monitored_from__isnull=False)
        since = Subquery(copies.order_by("monitored_from").values("monitored_from")[:1])
        lasted = Q(ended_at=None) | Q(ended_at__gt=F("since"))
        # Asked only where it matters: most have been monitored since before the window.
        long_since = DatasetCopy.objects.filter(monitored_from__lte=window.start).values("dataset")
        monitored_then = Q(incident__dataset__in=long_since) | (lasted & Q(since__lt=window.end))
        spans = spans.annotate(since=since).filter(monitored_then)
        first.append(F("since"))
    return _outside_of_grace(spans, window, Greatest(*first))


def _outside_of_grace(spans: QuerySet[Span], window: Interval, first: Greatest) -> QuerySet[Span]:
    """Those of which some time is in no grace period of their dataset: if any is, its first moment or the end of a period."""
    grace = GracePeriod.objects.filter(dataset=OuterRef("incident__dataset"))
    next_one = GracePeriod.objects.filter(
        dataset=OuterRef("dataset"), began_at__lte=OuterRef("ends_at"), ends_at__gt=OuterRef("ends_at")
    )
    spans = spans.annotate(first=first, last=Least(Coalesce("ended_at", Value(window.end)), Value(window.end)))
    at_first = grace.filter(began_at__lte=OuterRef("first"), ends_at__gt=OuterRef("first"))
    ends = grace.filter(ends_at__gt=OuterRef("first"), ends_at__lt=OuterRef("last")).filter(~Exists(next_one))
    graced = Q(incident__dataset__in=grace_periods_in(window).values("dataset"))
    return spans.filter(~graced | ~Exists(at_first) | Exists(ends))


def _missed_reports(window: Interval, scope: Scope, *, monitored: bool) -> list[int]:
    """Users report little: found by the same arithmetic as the number."""
    of = {report.dataset for report in acknowledged_reports(window, scope)}
    if not of:
        return []
    lives = failure_intervals(window, scope, only=of)
    if scope.test:
        return sorted(lives.reports_missed_by(QualityTest.objects.get(dataset__name=scope.dataset, key=scope.test).pk))
    since = {pk: dataset.monitored_from if monitored else window.start for pk, dataset in lives.datasets.items()}
    return [
        report.report
        for report in lives.missed
        if any((first := since[report.dataset]) is not None and piece.end > first for piece in report.pieces)
    ]


# What questions met


def _spans_asked_about(window: Interval) -> QuerySet[Span, int]:
    spans = Span.objects.filter(
        spans_alive_in(window), _asked_about("began_at", "ended_at", window, {"copy": OuterRef("copy")})
    )
    return spans.values_list("incident_id", flat=True)


def _reports_asked_about(window: Interval) -> QuerySet[UserReport, int]:
    about = {"copy__dataset": OuterRef("incident__dataset"), "copy": Coalesce(OuterRef("copy"), F("copy"))}
    again = {**about, "copy": Coalesce(OuterRef("copy"), F("question__copy"))}
    reports = UserReport.objects.filter(reports_alive_in(window), ACKNOWLEDGED_REPORTS)
    was_asked_about = _asked_about("occurred_at", "fixed_at", window, about, again)
    return reports.filter(was_asked_about).values_list("pk", flat=True)


def _asked_about(
    began: str, ended: str, window: Interval, about: dict[str, Any], again: dict[str, Any] | None = None
) -> Q:
    """Over what was wrong from `began` to `ended`: a question that counts was asked about some of its range meanwhile."""
    meanwhile = {
        "at__gte": Greatest(OuterRef(began), window.start),
        "at__lt": Least(Coalesce(OuterRef(ended), window.end), window.end),
    }
    of_question = {**about, "start__lt": OuterRef("end"), "end__gt": OuterRef("start")}
    of_again = {f"question__{name}": value for name, value in {**of_question, **(again or {})}.items()}
    first = GateQuestion.objects.filter(**meanwhile, **of_question)
    return Exists(first) | Exists(first_repeats_in(window).filter(**meanwhile, **of_again))


# False alarms of tests


def false_positives_by_test(window: Interval, scope: Scope) -> list[tuple[int, str, int]]:
    """(test, kind of false positive, how many incidents): those that lived in the window, outside of grace."""
    spans = _counted_spans(window, scope).filter(
        incident__reported=False, incident__resolution=Resolution.FALSE_POSITIVE
    )
    if scope.category:
        spans = spans.filter(incident__category=scope.category)
    kinds = spans.values_list("unit__test_id", "incident__false_positive")
    return list(kinds.annotate(n=Count("incident", distinct=True)).order_by("unit__test_id"))
