"""A test that is added to a live dataset blocks nothing that was over before, until it has judged it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from incidents.gate.answer import CopyQuestion, ask_gate
from lakehub.catalog.datasets import changes
from quality.generation import generate, rules
from quality.generation.custom_tests import write_custom_test
from quality.models import QualityTest, Unit
from tests.factories import DAY, HOUR, NOW, day
from tests.web.quality.conftest import DAYS, TODAY, World
from tests.web.quality.conftest import make_world as make_world
from tests.web.quality.conftest import world as world

pytestmark = pytest.mark.django_db
RULE = {"kind": "nulls", "column": "tailnum", "parameters": {"share": "1%"}}


def reasons(name: str, key: str, now: timedelta = timedelta()) -> set[str]:
    """What the test of the rule says to the gate about the day."""
    question = CopyQuestion("flights", day(name), "pricing", "dc1")
    answer = ask_gate(question, now=NOW + now, record=False).answer
    title = QualityTest.objects.get(key=key).title
    return {cause.reason for cause in answer.causes if cause.test == title}


def test_a_rule_that_is_added_waits_for_its_verdict_on_the_past(world: World) -> None:
    world.monitored()
    rules.set_rule(world.flights, **RULE, actor="ann", now=NOW)  # type: ignore[arg-type]
    key = "rule:tailnum.nulls"
    assert Unit.objects.filter(test__key=key, latest_at=None).exists()
    assert reasons(DAYS[1], key) == set()
    assert reasons(TODAY, key, 2 * DAY) == {"never_passed"}, "younger than the rule"
    world.run(NOW)
    assert reasons(DAYS[1], key) == {"passing"}


def test_tests_from_the_start_gate_the_past_before_they_ran(world: World) -> None:
    world.planned()
    assert reasons(DAYS[1], "duplicates") == {"never_passed"}


@pytest.mark.parametrize(("sla", "hours"), [(HOUR, 1), (30 * HOUR, 30)])
def test_a_changed_sla_moves_what_was_not_run_yet(world: World, sla: timedelta, hours: int) -> None:
    world.monitored()
    write_custom_test(world.flights, key="many", title="Many", expression="rows(this) > 10", actor="ann", now=NOW)
    world.run(NOW)
    waiting = Unit.objects.filter(test__key__in=["duplicates", "many"], latest_at=None)
    before = {unit.pk: unit.due_at for unit in waiting}
    changes.update_dataset(world.flights, {"freshness_sla": sla}, actor="ann", now=NOW)
    generate.generate_outdated(now=NOW)
    assert len(before) == 4, "today's, of both tests on both copies"
    for unit in waiting.all():
        assert unit.due_at == unit.end + hours * HOUR != before[unit.pk]
