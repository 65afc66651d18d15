"""What is wrong with the real data, found by the tests."""

from __future__ import annotations

from incidents.models import Incident
from lakehub.catalog.models import Dataset
from lakehub.demo.play.settle import play_until_settled
from lakehub.demo.play.story_context import StoryContext
from lakehub.kernel.outcome import Verdict
from quality.generation.custom_tests import write_custom_test
from quality.models import Category, Unit

TITLE = "The real defects of the real data"

EXPRESSION = "unmatched(this.tailnum, planes.tailnum) / rows(this) < 25%"
"""Honest: two carriers put fleet numbers where tail numbers belong, and that will not change; more than that would be new."""


def play(stage: StoryContext) -> None:
    flights = Dataset.objects.get(name="flights")
    write_custom_test(
        flights,
        key="known-planes",
        title="Flights whose plane is not registered",
        expression=EXPRESSION,
        actor="ines",
        gating=False,
        now=stage.now(),
    )
    play_until_settled(stage)
    _show_duplicates(stage)
    _show_unknown_planes(stage)


def _show_duplicates(stage: StoryContext) -> None:
    units = Unit.objects.filter(test__dataset__name="weather", test__category=Category.DUPLICATES).select_related(
        "copy__data_center", "copy__dataset"
    )
    for unit in units:
        stage.narrator.check(
            f"{unit.copy}: duplicates {unit.detail.get('observed')}, needs {unit.threshold}: {unit.verdict}",
            unit.verdict == Verdict.FAIL,
        )
    incident = Incident.objects.get(dataset__name="weather", category=Category.DUPLICATES)
    stage.narrator.check(f"incident {incident}", incident.resolved_at is None)


def _show_unknown_planes(stage: StoryContext) -> None:
    units = Unit.objects.filter(test__key="known-planes", latest_at__isnull=False)
    passing = units.filter(verdict=Verdict.PASS).count()
    worst = units.order_by("-observed").first()
    assert worst is not None
    stage.narrator.check(
        f"flights without a known plane: at worst {worst.observed:.1%} of a day, needs {worst.threshold}; {passing} of {units.count()} pass",
        passing == units.count(),
    )
