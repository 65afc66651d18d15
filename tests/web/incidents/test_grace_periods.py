"""A grace period is the time in which it held: set, moved or ended late, it leaves out nothing of the time before."""

from __future__ import annotations

import random
from datetime import datetime

import pytest

from incidents.models import IncidentState
from incidents.scores.drilldown import drilldown_incidents
from incidents.scores.scope import ALL_DATASETS
from incidents.scores.scoring import scores_of
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from quality.models import Category
from tests import factories as make
from tests.factories import MINUTE, NOW

pytestmark = pytest.mark.django_db

SINCE = NOW - 60 * MINUTE
WINDOW = Interval(SINCE + 5 * MINUTE, NOW)


def minute(number: int) -> datetime:
    return SINCE + number * MINUTE


def set_grace(dataset: Dataset, until: datetime | None, *, at: datetime) -> Dataset:
    return changes.update_dataset(dataset, {"grace_until": until}, actor="ana", now=at)


def periods(dataset: Dataset) -> list[tuple[datetime, datetime]]:
    return list(dataset.grace_periods.values_list("began_at", "ends_at"))


def failing(dataset: Dataset, start: int, end: int | None, *, category: Category = Category.DUPLICATES) -> int:
    began, ended = minute(start), None if end is None else minute(end)
    over = {"resolved_at": ended, "state": IncidentState.RESOLVED, "resolution": "auto"} if ended else {}
    row = make.incident(dataset, category, opened_at=began, **over)
    test = make.quality_test(dataset, category, key=f"test-{row.pk}")
    make.span(row, make.unit(test), began_at=began, ended_at=ended)
    return row.pk


def test_grace_that_is_set_late_takes_nothing_of_the_past_out() -> None:
    dataset = make.dataset("flights")
    failing(dataset, 10, 40)
    set_grace(dataset, minute(55), at=minute(35))
    assert scores_of(WINDOW, now=NOW).durations.tp == 25 * MINUTE


def test_grace_that_is_over_stays_left_out_when_it_is_cleared() -> None:
    dataset = make.dataset("flights", onboarded_at=SINCE, grace_until=minute(20))
    failing(dataset, 10, 40)
    set_grace(dataset, None, at=minute(50))
    assert periods(dataset) == [(SINCE, minute(20))]
    assert scores_of(WINDOW, now=NOW).durations.tp == 20 * MINUTE


@pytest.mark.parametrize(
    ("until", "becomes"),
    [(None, [(0, 10)]), (5, [(0, 10)]), (10, [(0, 10)]), (15, [(0, 15)]), (40, [(0, 40)])],
)
def test_what_is_on_is_moved_or_ends_now(until: int | None, becomes: list[tuple[int, int]]) -> None:
    dataset = make.dataset("flights", onboarded_at=SINCE, grace_until=minute(30))
    set_grace(dataset, None if until is None else minute(until), at=minute(10))
    assert periods(dataset) == [(minute(start), minute(end)) for start, end in becomes]


def test_grace_that_is_taken_back_at_once_never_was() -> None:
    dataset = set_grace(make.dataset("flights"), NOW, at=minute(10))
    set_grace(dataset, None, at=minute(10))
    assert periods(dataset) == []


def test_a_change_of_something_else_leaves_it_as_it_is() -> None:
    dataset = make.dataset("flights", onboarded_at=SINCE, grace_until=minute(30))
    changes.update_dataset(dataset, {"description": "All of them."}, actor="ana", now=minute(10))
    assert periods(dataset) == [(SINCE, minute(30))]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_out_are_the_minutes_that_were_in_grace_when_they_passed(seed: int) -> None:
    luck = random.Random(seed)
    dataset = make.dataset("flights", onboarded_at=SINCE)
    lives = {failing(dataset, start, end): (start, end or 60) for start, end in _lives(luck)}
    in_grace, until = set[int](), 0
    turns = {luck.randrange(60): luck.choice([None, luck.randrange(70), luck.randrange(70)]) for _ in range(6)}
    for at in range(60):
        if at in turns:
            wanted = turns[at]
            dataset, until = set_grace(dataset, None if wanted is None else minute(wanted), at=minute(at)), wanted or 0
        if at < until:
            in_grace.add(at)
    counted = {pk: set(range(start, end)) - in_grace - set(range(5)) for pk, (start, end) in lives.items()}
    assert scores_of(WINDOW, now=NOW).durations.tp == len(set().union(*counted.values())) * MINUTE
    for number in ("tp", "data"):
        assert {incident.pk for incident in drilldown_incidents(number, WINDOW, ALL_DATASETS)} == {
            pk for pk, minutes in counted.items() if minutes
        }


def _lives(luck: random.Random) -> list[tuple[int, int | None]]:
    starts = [luck.randrange(50) for _ in range(7)]
    return [(start, luck.choice([start + luck.randint(1, 9), start + luck.randint(1, 9), None])) for start in starts]
