"""Precision, recall, data-level and query-level scores of a window, with the incidents behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from incidents.domain import scores
from incidents.domain.resolution import Resolution
from incidents.domain.scores import Detected, Durations, Key, QueryLevel, Question, Reported, Tally
from incidents.models import GateQuestion, Incident, UserReport
from incidents.values import span_value, spans_of
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval

_ACKNOWLEDGED = Q(incident__acknowledged_at__isnull=False) & ~Q(incident__resolution=Resolution.REJECTED)


@dataclass(frozen=True)
class DatasetScore:
    """One dataset. `incident_share` is what was published as the score; quality is what is left of 1."""

    dataset: str
    incident_share: float | None
    quality: float | None


@dataclass(frozen=True)
class Scores:
    """Everything about one window. Shares are None where nothing was there to share."""

    window: Interval
    durations: Durations
    datasets: tuple[DatasetScore, ...]
    incident_share: float | None
    queries: QueryLevel
    unsettled: tuple[int, ...]
    """Open incidents: their time counts to now and may still change sides."""

    @property
    def quality(self) -> float | None:
        return None if self.incident_share is None else 1 - self.incident_share


def scores_of(window: Interval, *, now: datetime, datasets: Collection[int] | None = None) -> Scores:
    """The scores of the datasets given (all live ones, if none), within `window`, judged with what is known now.

    Raises Refused where the window ends in the future: nobody knows yet.
    """
    if window.end > now:
        raise Refused.because({"to": f"The window ends at {window.end:%Y-%m-%d %H:%M} UTC, which has not come yet."})
    live = Dataset.objects.filter(offboarded_at=None)
    chosen = {row.pk: row for row in (live if datasets is None else live.filter(pk__in=datasets))}
    detected, reported = list(_detected(chosen, window)), list(_reported(chosen, window))
    tallies = scores.tally(detected, reported, now=now, excluded=_grace(chosen.values()))
    levels = {pk: _data_level(pk, tallies, window, since) for pk, since in _monitored_from(chosen).items()}
    whole = sum(levels.values(), scores.DataLevel(window.length * 0, window.length * 0))
    return Scores(
        window=window,
        durations=scores.durations(tallies.values(), window),
        datasets=tuple(
            DatasetScore(chosen[pk].name, level.incident_share, level.quality) for pk, level in levels.items()
        ),
        incident_share=whole.incident_share,
        queries=scores.query_level(_questions(chosen, window), detected, reported, window),
        unsettled=tuple(number for tally in tallies.values() for number in tally.unsettled),
    )


def _detected(datasets: Iterable[int], window: Interval) -> Iterable[Detected]:
    alive = Q(resolved_at=None) | Q(resolved_at__gt=window.start)
    rows = list(Incident.objects.filter(alive, dataset__in=list(datasets), reported=False))
    spans = spans_of(rows)
    for row in rows:
        wrong = row.resolution == Resolution.FALSE_POSITIVE
        yield Detected(row.pk, row.dataset_id, row.category, tuple(map(span_value, spans[row.pk])), wrong)


def _reported(datasets: Iterable[int], window: Interval) -> Iterable[Reported]:
    alive = Q(fixed_at=None) | Q(fixed_at__gt=window.start)
    rows = UserReport.objects.filter(alive, _ACKNOWLEDGED, incident__dataset__in=list(datasets))
    for row in rows.select_related("incident"):
        incident = row.incident
        data = Interval(row.start, row.end)
        yield Reported(row.pk, incident.dataset_id, incident.category, data, row.occurred_at, row.fixed_at, row.copy_id)


def _questions(datasets: Iterable[int], window: Interval) -> Iterable[Question]:
    asked = GateQuestion.objects.filter(copy__dataset__in=list(datasets), at__gte=window.start, at__lt=window.end)
    for row in asked.select_related("copy").iterator():
        yield Question(
            row.at, row.consumer, row.request_id, row.copy.dataset_id, row.copy_id, Interval(row.start, row.end)
        )


def _monitored_from(datasets: Iterable[int]) -> dict[int, datetime]:
    """Since when some copy of each dataset is monitored; those that are not are left out."""
    rows = DatasetCopy.objects.filter(dataset__in=list(datasets), monitored_from__isnull=False)
    found: dict[int, datetime] = {}
    for pk, since in rows.order_by("dataset__name").values_list("dataset", "monitored_from"):
        if since is not None:
            found[pk] = min(found.get(pk, since), since)
    return found


def _grace(datasets: Iterable[Dataset]) -> dict[int, list[Interval]]:
    """The grace period of a dataset runs from its onboarding on."""
    return {
        row.pk: [Interval(row.onboarded_at, row.grace_until)]
        for row in datasets
        if row.grace_until is not None and row.grace_until > row.onboarded_at
    }


def _data_level(dataset: int, tallies: dict[Key, Tally], window: Interval, since: datetime) -> scores.DataLevel:
    mine = [tally for (of, _), tally in tallies.items() if of == dataset]
    return scores.data_level(mine, window, monitored_from=since)
