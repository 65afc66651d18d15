"""Random histories on the real tables: results, people, merges, splits, takings-in that come late or twice."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import datetime

import pytest

from incidents.lifecycle import actions, merge_split, resolution
from incidents.lifecycle.intake import process_flips
from incidents.models import Incident, Message, Span
from incidents.notifications.sender import send_due_messages
from lakehub.accounts.models import User
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.outcome import Outcome
from quality.models import Flip, Unit
from tests import factories
from tests.factories import MINUTE, NOW, day
from tests.web.incidents.failing_dataset import FailingDataset

pytestmark = pytest.mark.django_db

STEPS = 60
DAYS = ("2026-11-12", "2026-11-13", "2026-11-14", "2026-11-16")


class Walk:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.stage = FailingDataset(sustain=2 * MINUTE)
        self.units = [self.stage.unit(day(name), where) for name in DAYS for where in ("dc1", "dc2")]
        self.ana: User = factories.user("ana", is_superuser=True)

    def step(self, now: datetime) -> None:
        for unit in self.dice.sample(self.units, 3):
            outcome = self.dice.choice([Outcome.PASS, Outcome.FAIL, Outcome.FAIL, Outcome.ERROR])
            self.stage.see(unit, outcome, at=now, trigger=self.dice.choice(["rerun", "manual"]))
        person = [self.acknowledge, self.resolve, self.reopen, self.merge, self.split, self.nothing]
        # What cannot be done now is refused and changes nothing: the invariant sees to it.
        with suppress(Conflict, Refused):
            self.dice.choice(person if Incident.objects.exists() else [self.nothing])(now)
        for _ in range(self.dice.randrange(3)):
            process_flips(now=now)

    def any(self) -> Incident:
        return self.dice.choice(list(Incident.objects.order_by("pk")))

    def acknowledge(self, now: datetime) -> None:
        actions.acknowledge(self.any().pk, actor=self.ana, now=now)

    def resolve(self, now: datetime) -> None:
        resolution.resolve_by_force(self.any().pk, resolution="accepted", why="So be it.", actor="ana", now=now)

    def reopen(self, now: datetime) -> None:
        resolution.undo_resolution(self.any().pk, actor="ana", now=now)

    def merge(self, now: datetime) -> None:
        merge_split.merge_incidents(self.any().pk, self.any().pk, actor="ana", now=now)

    def split(self, now: datetime) -> None:
        incident = self.any()
        units = [span.unit_id for span in incident.spans.all()]
        merge_split.split_incident(incident.pk, units[: len(units) // 2], actor="ana", now=now)

    def nothing(self, now: datetime) -> None:
        """Some minutes nobody does anything."""


@pytest.mark.parametrize("seed", range(4))
def test_a_unit_fails_iff_it_is_active_in_exactly_one_open_incident(seed: int) -> None:
    walk = Walk(seed)
    for step in range(STEPS):
        now = NOW + step * MINUTE
        walk.step(now)
        process_flips(now=now)
        send_due_messages(now=now)
        assert_invariant()
    assert Incident.objects.count() > 3
    assert not Flip.objects.filter(claimed_at=None).exists()


def assert_invariant() -> None:
    failing = set(Unit.objects.filter(verdict="fail").values_list("pk", flat=True))
    active = list(Span.objects.filter(ended_at=None).values_list("unit", "incident__resolved_at"))
    assert sorted(unit for unit, _ in active) == sorted(failing)
    assert all(resolved_at is None for _, resolved_at in active)
    for incident in Incident.objects.prefetch_related("spans", "events"):
        spans, events = list(incident.spans.all()), list(incident.events.all())
        assert (incident.resolved_at is None) == any(span.ended_at is None for span in spans)
        assert all(span.ended_at is None or span.ended_at >= span.began_at for span in spans)
        assert next(event.becomes for event in events if event.becomes) == incident.state
    opened = Message.objects.filter(occasion="opened").values_list("incident", flat=True)
    assert len(opened) == len(set(opened))
