"""Each number of the scores against what a slow and obvious reading of the rows gives, and the list behind it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from incidents.gate import question_log as gate_log
from incidents.models import GateQuestion, Incident, IncidentState, Span, UserReport
from incidents.scores.drilldown import drilldown_incidents
from incidents.scores.response_times import response_times_of
from incidents.scores.scope import ALL_DATASETS, Scope
from incidents.scores.scoring import Scores, scores_of, with_test_names
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from quality.models import Category
from tests import factories as make
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.query_plans import plans_of

pytestmark = pytest.mark.django_db

WINDOW = Interval(NOW - 60 * MINUTE, NOW - 15 * MINUTE)
CATEGORIES = (Category.DUPLICATES, Category.FRESHNESS)
LUCK = random.Random


def ago(minutes: int) -> datetime:
    return NOW - minutes * MINUTE


class Past:
    """Two datasets of two teams, one of them in grace for a while, and whatever `seed` put into their last 80 minutes."""

    def __init__(self, seed: int) -> None:
        self.luck = LUCK(seed)
        grace = {"onboarded_at": ago(70), "grace_until": ago(40)}
        self.datasets = [
            make.dataset("flights", tier=1, team=make.team("flight-ops")),
            make.dataset("weather", tier=2, team=make.team("weather-data"), **grace),
        ]
        self.datasets[0].copies.update(monitored_from=ago(50))
        self.tests = [
            make.quality_test(dataset, category, key=f"{category}-{number}", created_at=ago(55))
            for dataset in self.datasets
            for category in CATEGORIES
            for number in (1, 2)
        ]
        for number in range(9):
            self._detected(number)
        for _ in range(4):
            self._reported()
        self.asked: list[GateQuestion] = []
        wanted = [(str(number), self.luck.choice(self.datasets).copies.get(), self._data()) for number in range(15)]
        for age in sorted(self.luck.choices(range(1, 81), k=40), reverse=True):
            self._ask(*self.luck.choice(wanted), at=ago(age))

    def _detected(self, number: int) -> None:
        test = self.luck.choice(self.tests)
        siblings = [other for other in self.tests if (other.dataset, other.category) == (test.dataset, test.category)]
        lives = [self._life() for _ in range(self.luck.randint(1, 3))]
        over = None if any(end is None for _, end in lives) else max(end for _, end in lives if end is not None)
        false = over is not None and self.luck.random() < 0.4
        row = make.incident(
            test.dataset,
            Category(test.category),
            opened_at=min(start for start, _ in lives) + MINUTE,
            resolved_at=over,
            state=IncidentState.OPEN if over is None else IncidentState.RESOLVED,
            resolution="" if over is None else "false_positive" if false else "auto",
            false_positive=self.luck.choice(["wrong_test", "wrong_sla"]) if false else "",
            acknowledged_at=min(start for start, _ in lives) + 3 * MINUTE if number % 2 else None,
        )
        for part, (start, end) in enumerate(lives):
            data = self._data()
            data = Interval(data.start, data.end + (10 * number + part) * timedelta(seconds=1))
            unit = make.unit(self.luck.choice(siblings), over=data)
            make.span(row, unit, began_at=start, ended_at=end)

    def _reported(self) -> None:
        dataset, (start, end) = self.luck.choice(self.datasets), self._life()
        refused = self.luck.random() < 0.3
        row = make.incident(
            dataset,
            self.luck.choice(CATEGORIES),
            reported=True,
            opened_at=start + 2 * MINUTE,
            acknowledged_at=None if refused else start + 5 * MINUTE,
            resolved_at=end,
            state=IncidentState.WAITING if end is None else IncidentState.RESOLVED,
            resolution="" if end is None else "declared_fixed",
        )
        data = self._data()
        UserReport.objects.create(
            incident=row, start=data.start, end=data.end, text="Odd", occurred_at=start, fixed_at=end
        )

    def _ask(self, request_id: str, copy: DatasetCopy, data: Interval, *, at: datetime) -> None:
        about = {"copy": copy, "start": data.start, "end": data.end, "verdict": "pass", "allowed": True}
        self.asked.append(GateQuestion(at=at, consumer="jobs", request_id=request_id, **about))
        gate_log.save_questions(self.asked[-1:])

    def _life(self) -> tuple[datetime, datetime | None]:
        start = self.luck.randint(1, 80)
        end = start - self.luck.randint(0, 30)
        return ago(start), ago(end) if end > 0 else None

    def _data(self) -> Interval:
        start = self.luck.randint(0, 6)
        return Interval(NOW - 9 * DAY + start * DAY, NOW - 9 * DAY + (start + self.luck.randint(1, 3)) * DAY)


# By the book


def minutes() -> Iterator[datetime]:
    at = WINDOW.start
    while at < WINDOW.end:
        yield at
        at += MINUTE


def alive(start: datetime, end: datetime | None, at: datetime) -> bool:
    return start <= at and (end is None or at < end)


def in_grace(incident: Incident, at: datetime) -> bool:
    dataset = incident.dataset
    return dataset.grace_until is not None and dataset.onboarded_at <= at < dataset.grace_until


def lived(incident: Incident, at: datetime, test: str = "") -> bool:
    spans = incident.spans.all()
    return any(alive(span.began_at, span.ended_at, at) for span in spans if test in ("", span.unit.test.key))


def is_real(incident: Incident) -> bool:
    return not incident.reported and incident.resolution != "false_positive"


def is_missed(reported: Incident, at: datetime) -> bool:
    if (
        not reported.reported
        or reported.acknowledged_at is None
        or not alive(reported.report.occurred_at, reported.report.fixed_at, at)
    ):
        return False
    about = Interval(reported.report.start, reported.report.end)
    rivals = Incident.objects.filter(dataset=reported.dataset, reported=False).exclude(resolution="false_positive")
    covering = [rival for rival in rivals if any(Interval(s.start, s.end).overlaps(about) for s in rival.spans.all())]
    return not any(lived(rival, at) for rival in covering)


def putting_in(number: str, test: str = "") -> set[int]:
    """The incidents that put a minute into TP, FP or FN."""
    sides = {
        "tp": lambda incident, at: is_real(incident) and lived(incident, at, test),
        "fp": lambda incident, at: not incident.reported and not is_real(incident) and lived(incident, at, test),
        "fn": lambda incident, at: is_missed(incident, at),
    }
    return {
        incident.pk
        for incident in Incident.objects.select_related("dataset", "report")
        if any(sides[number](incident, at) and not in_grace(incident, at) for at in minutes())
    }


SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_lists_are_exactly_the_incidents_that_were_counted(seed: int) -> None:
    Past(seed)
    scores = scores_of(WINDOW, now=NOW)
    for number, counted in (("tp", scores.whole.real), ("fp", scores.whole.false), ("fn", scores.whole.missed)):
        assert {incident.pk for incident in drilldown_incidents(number, WINDOW, ALL_DATASETS)} == putting_in(number), (
            number
        )
        assert counted == len(putting_in(number))
    assert [incident.pk for incident in drilldown_incidents("unsettled", WINDOW, ALL_DATASETS).order_by("pk")] == list(
        scores.unsettled
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_list_of_each_group_has_as_many_incidents_as_the_group_counts(seed: int) -> None:
    past = Past(seed)
    scores = scores_of(WINDOW, now=NOW)
    for grouping in ("team", "tier", "category", "dataset"):
        for group in scores.by(grouping):
            scope = Scope(**{grouping: int(group.name) if grouping == "tier" else group.name})  # type: ignore[arg-type]
            assert_lists(scores, group.real, group.false, group.missed, scope)
    for group in with_test_names(scores.by("test")):
        assert_lists(scores, group.real, group.false, group.missed, Scope(dataset=group.dataset, test=group.test))
    assert {group.key for group in scores.by("test")} <= {test.pk for test in past.tests}


def assert_lists(scores: Scores, real: int, false: int, missed: int, scope: Scope) -> None:
    counted = {number: drilldown_incidents(number, scores.window, scope).count() for number in ("tp", "fp", "fn")}
    assert counted == {"tp": real, "fp": false, "fn": missed}, scope


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_narrowed_to_a_group_are_those_of_the_group(seed: int) -> None:
    Past(seed)
    whole = scores_of(WINDOW, now=NOW)
    for grouping in ("team", "tier", "category", "dataset"):
        for group in whole.by(grouping):
            scope = Scope(**{grouping: int(group.name) if grouping == "tier" else group.name})  # type: ignore[arg-type]
            alone = scores_of(WINDOW, now=NOW, scope=scope).whole
            assert (alone.durations, alone.data, alone.unsettled) == (group.durations, group.data, group.unsettled), (
                scope
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_questions_that_failed_are_those_that_met_something_real(seed: int) -> None:
    past = Past(seed)
    scores = scores_of(WINDOW, now=NOW)
    asked = first_times(past.asked)
    assert any(question not in asked and WINDOW.contains(question.at) for question in past.asked)
    met = {number: culprits(question) for number, question in enumerate(asked)}
    assert (scores.queries.asked, scores.queries.failed) == (len(asked), sum(map(bool, met.values())))
    assert {incident.pk for incident in drilldown_incidents("queries", WINDOW, ALL_DATASETS)} == set().union(
        *met.values()
    )


def first_times(asked: list[GateQuestion]) -> list[GateQuestion]:
    """Each request at its first time in the window, whether it was asked before that or not."""
    first: dict[str, GateQuestion] = {}
    for question in asked:
        if WINDOW.contains(question.at):
            first.setdefault(question.request_id, question)
    return list(first.values())


def culprits(question: GateQuestion) -> set[int]:
    about = Interval(question.start, question.end)
    spans = Span.objects.filter(copy=question.copy, incident__reported=False).exclude(
        incident__resolution="false_positive"
    )
    culprit_ids = {
        span.incident_id
        for span in spans
        if alive(span.began_at, span.ended_at, question.at) and Interval(span.start, span.end).overlaps(about)
    }
    reports = UserReport.objects.filter(
        incident__dataset=question.copy.dataset, incident__acknowledged_at__isnull=False
    )
    return culprit_ids | {
        details.pk
        for details in reports
        if alive(details.occurred_at, details.fixed_at, question.at)
        and Interval(details.start, details.end).overlaps(about)
    }


def test_what_is_behind_the_data_level_lived_while_the_dataset_was_monitored() -> None:
    Past(3)
    everything = putting_in("tp") | putting_in("fn")
    listed = {incident.pk for incident in drilldown_incidents("data", WINDOW, ALL_DATASETS)}
    assert listed < everything
    for incident in Incident.objects.filter(pk__in=everything - listed).select_related("dataset"):
        assert not any(lived(incident, at) for at in minutes() if at >= ago(50)), incident


def test_a_life_without_length_is_behind_nothing() -> None:
    unit = make.unit(make.quality_test(make.dataset("flights")))
    ended = {"resolved_at": ago(30), "state": IncidentState.RESOLVED, "resolution": "auto"}
    row = make.incident(unit.test.dataset, Category.DUPLICATES, opened_at=ago(30), **ended)
    make.span(row, unit, began_at=ago(30))
    assert scores_of(WINDOW, now=NOW).whole.real == drilldown_incidents("tp", WINDOW, ALL_DATASETS).count() == 0


def test_a_number_that_is_none_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refused, match="Did you mean `tp`"):
        drilldown_incidents("tpp", WINDOW, ALL_DATASETS)


# How long it took


def test_times_are_measured_from_what_is_said() -> None:
    dataset = make.dataset("flights")
    test = make.quality_test(dataset)
    for opened, lasted in ((5, 1), (4, 3), (3, 2)):
        row = make.incident(
            dataset,
            Category.DUPLICATES,
            opened_at=NOW - opened * HOUR,
            acknowledged_at=NOW - opened * HOUR + 6 * MINUTE,
            resolved_at=NOW - opened * HOUR + lasted * HOUR,
            state=IncidentState.RESOLVED,
            resolution="auto",
        )
        unit = make.unit(test, over=Interval(NOW - opened * DAY, NOW))
        make.span(row, unit, began_at=row.opened_at - 10 * MINUTE)
    make.incident(dataset, Category.DUPLICATES, opened_at=NOW - HOUR)
    false = {"resolution": "false_positive", "false_positive": "wrong_test", "state": IncidentState.RESOLVED}
    make.incident(dataset, Category.OTHERS, opened_at=NOW - HOUR, resolved_at=NOW - MINUTE, **false)
    times = response_times_of(Interval(NOW - DAY, NOW))
    assert (times.detect.n, times.detect.median) == (3, 10 * MINUTE)
    assert (times.acknowledge.mean, times.acknowledge.waiting) == (6 * MINUTE, 1)
    assert (times.resolve.median, times.resolve.p90, times.resolve.waiting) == (2 * HOUR, 3 * HOUR, 1)
    for number, counted in (("detect", 4), ("acknowledge", 3), ("resolve", 3)):
        assert drilldown_incidents(number, Interval(NOW - DAY, NOW), ALL_DATASETS).count() == counted


# What it costs


def test_the_number_of_queries_does_not_grow_with_the_incidents(django_assert_max_num_queries) -> None:  # type: ignore[no-untyped-def]
    Past(1)
    with django_assert_max_num_queries(10):
        assert scores_of(WINDOW, now=NOW).by("test")


def test_lives_and_questions_of_a_window_are_found_by_their_indexes() -> None:
    plans = "\n".join(plans_of(lambda: scores_of(WINDOW, now=NOW)))
    assert "span_life" in plans
    assert "question_of_copy" in plans
