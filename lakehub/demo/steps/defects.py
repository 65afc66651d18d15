"""What is wrong with the real data, found by the tests."""

from __future__ import annotations

from datetime import timedelta

from incidents.models import Incident
from lakehub.catalog.models import Dataset
from lakehub.demo.settling import settle
from lakehub.demo.stage import Stage
from lakehub.kernel.outcome import Verdict
from quality.generator import write_test
from quality.models import Category, Unit

TITLE = "The real defects of the real data"

EXPRESSION = "unmatched(this.tailnum, planes.tailnum) / rows(this) < 25%"
"""Honest: two carriers put fleet numbers where tail numbers belong, and that will not change; more than that would be new."""
WEATHER_SUSTAIN = timedelta(hours=2)


def play(stage: Stage) -> None:
    flights = Dataset.objects.get(name="flights")
    write_test(
        flights,
        key="known-planes",
        title="Flights whose plane is not registered",
        expression=EXPRESSION,
        actor="ines",
        gating=False,
        now=stage.now(),
    )
    settle(stage)
    _show_duplicates(stage)
    _show_unknown_planes(stage)


def _show_duplicates(stage: Stage) -> None:
    units = Unit.objects.filter(test__dataset__name="weather", test__category=Category.DUPLICATES).select_related(
        "copy__data_center", "copy__dataset"
    )
    for unit in units:
        stage.tell.show(
            f"{unit.copy}: duplicates {unit.detail.get('observed')}, needs {unit.threshold}: {unit.verdict}",
            unit.verdict == Verdict.FAIL,
        )
    incident = Incident.objects.get(dataset__name="weather", category=Category.DUPLICATES)
    stage.tell.show(f"incident {incident}", incident.resolved_at is None)


def _show_unknown_planes(stage: Stage) -> None:
    units = Unit.objects.filter(test__key="known-planes", latest_at__isnull=False)
    passing = units.filter(verdict=Verdict.PASS).count()
    worst = units.order_by("-observed").first()
    assert worst is not None
    stage.tell.show(
        f"flights without a known plane: at worst {worst.observed:.1%} of a day, needs {worst.threshold}; {passing} of {units.count()} pass",
        passing == units.count(),
    )
