"""The first line of an incident: from its counts where they say more than its title. No database: rows that are not saved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frontend.components.incident_headline import incident_headline
from incidents.models import Incident, Span
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval
from quality.models import Category, QualityTest, Unit

BEGAN = datetime(2026, 11, 17, 15, 40, tzinfo=UTC)
MONDAY = Interval(datetime(2026, 11, 16, 5, tzinfo=UTC), datetime(2026, 11, 17, 5, tzinfo=UTC))
FLIGHTS = Dataset(name="flights", grain="day", partition_tz="America/New_York")
TEST = QualityTest(pk=1, dataset=FLIGHTS, title="Rows of dc1")
TITLE = "flights: Rows of dc1: 98.98% (975 of 985), needs > 99.9% (dc2, 2026-11-16)"


def span(where: str, over: Interval = MONDAY, ended: bool = False, **seen: Any) -> Span:
    copy = DatasetCopy(dataset=FLIGHTS, data_center=DataCenter(name=where))
    unit = Unit(test=TEST, copy=copy, start=over.start, end=over.end, **seen)
    ended_at = BEGAN + timedelta(hours=1) if ended else None
    return Span(unit=unit, copy=copy, start=over.start, end=over.end, began_at=BEGAN, ended_at=ended_at)


def incident(category: Category, title: str = TITLE, **fields: Any) -> Incident:
    return Incident(dataset=FLIGHTS, category=category, title=title, **fields)


LACKS = {"threshold": "> 99.9%", "detail": {"observed": "98.98%", "behind": "975 of 985"}}
TWICE = {"threshold": "<= 0%", "detail": {"observed": "0.07%", "behind": "3 of 4,218"}}
LATE = {"threshold": "< 2h", "detail": {"observed": "3 h 32 min"}}


@pytest.mark.parametrize(
    ("category", "spans", "headline"),
    [
        (Category.CONSISTENCY, [span("dc2", **LACKS)], "dc2 lacks 10 of 985 rows of Mon 16 Nov"),
        (
            Category.COMPLETENESS,
            [span("dc1", **LACKS), span("dc2", **LACKS)],
            "dc1 and dc2 lack 10 of 985 rows of Mon 16 Nov",
        ),
        (Category.COMPLETENESS, [span("dc2", EVERYTHING, **LACKS)], "dc2 lacks 10 of 985 rows"),
        (Category.DUPLICATES, [span("dc1", EVERYTHING, **TWICE)], "3 of 4,218 rows repeat a primary key in dc1"),
        (Category.FRESHNESS, [span("dc1", EVERYTHING, **LATE)], "flights in dc1 is 3 h 32 min behind, its SLA is 2h"),
    ],
)
def test_it_says_what_is_wrong_in_counts(category: Category, spans: list[Span], headline: str) -> None:
    assert incident_headline(incident(category), spans) == headline


def test_other_data_ranges_are_counted() -> None:
    sunday = Interval(MONDAY.start - timedelta(days=1), MONDAY.start)
    spans = [span("dc2", **LACKS), span("dc2", sunday, **LACKS)]
    assert incident_headline(incident(Category.CONSISTENCY), spans).endswith(", and 1 more")


def test_what_is_over_is_told_from_the_title_because_its_units_pass_now() -> None:
    healed = {"threshold": "> 99.9%", "detail": {"observed": "100%", "behind": "985 of 985"}}
    assert (
        incident_headline(incident(Category.CONSISTENCY), [span("dc2", ended=True, **healed)])
        == "dc2 lacked 10 of 985 rows of Mon 16 Nov"
    )
    late = "flights: Complete in time: 6 h 15 s, needs <= 4h (dc1, from 2026-11-20 08:28 on)"
    headline = incident_headline(incident(Category.FRESHNESS, late), [span("dc1", EVERYTHING, ended=True, **LATE)])
    assert headline == "flights in dc1 was 6 h 15 s behind, its SLA is 4h"


def test_where_nothing_is_known_the_title_stays() -> None:
    assert (
        incident_headline(incident(Category.OTHERS, "flights: planes are unknown"), [span("dc1")])
        == "Planes are unknown"
    )
    assert incident_headline(incident(Category.FRESHNESS, "flights: late"), []) == "Late"
    assert (
        incident_headline(incident(Category.CONSISTENCY, "flights: wrong", reported=True), [span("dc1", **LACKS)])
        == "Wrong"
    )
