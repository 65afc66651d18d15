"""A dataset whose units fail and pass at will, as quality would tell it: facts, verdict and flip in one go."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from incidents.lifecycle.intake import process_flips
from incidents.models import Incident
from lakehub.accounts.models import Role, Team, User
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.outcome import Outcome
from quality.domain.verdicts.unit_verdict import observe
from quality.models import Category, QualityTest, Unit
from quality.state.unit_state import apply_facts, save_units, unit_facts
from tests import factories
from tests.factories import NOW, day

BAD_DAY = day("2026-11-16")
DAY_BEFORE = day("2026-11-15")


class FailingDataset:
    """`flights` in dc1 and dc2 with one test of each category asked for, which fails at once unless told."""

    def __init__(
        self, *, copies: tuple[str, ...] = ("dc1", "dc2"), sustain: timedelta = timedelta(), **fields: Any
    ) -> None:
        self.dataset: Dataset = factories.dataset("flights", copies=copies, tier=1, **fields)
        self.sustain = sustain
        self.tests: dict[str, QualityTest] = {}

    def test(self, category: Category = Category.CONSISTENCY) -> QualityTest:
        if category not in self.tests:
            self.tests[category] = factories.test(self.dataset, category, title="Rows as in dc1", sustain=self.sustain)
        return self.tests[category]

    def unit(self, over: Interval = BAD_DAY, where: str = "dc2", category: Category = Category.CONSISTENCY) -> Unit:
        """A unit that passed an hour before NOW."""
        copy, test = factories.copy_of(self.dataset, where), self.test(category)
        existing = Unit.objects.filter(test=test, copy=copy, start=over.start, end=over.end).first()
        return existing or factories.unit(test, copy, over)

    def see(self, unit: Unit, outcome: Outcome, *, at: datetime = NOW, trigger: str = "rerun", **seen: Any) -> Unit:
        """One more result, and what it does to the verdict. Nobody is told: `process_flips` does that."""
        unit = Unit.objects.select_related("test__version").get(pk=unit.pk)
        result = factories.result(unit, outcome, read_at=at, trigger=trigger)
        for name, value in seen.items():
            setattr(unit, name, value)
        facts = observe(unit_facts(unit), outcome, read_at=at, sustain=self.sustain)
        save_units([unit], [apply_facts(unit, facts, now=at, result=result)], also=tuple(seen))
        return unit

    def fails(self, over: Interval = BAD_DAY, where: str = "dc2", *, at: datetime = NOW, **seen: Any) -> Unit:
        category = seen.pop("category", Category.CONSISTENCY)
        return self.see(self.unit(over, where, category), Outcome.FAIL, at=at, **seen)

    def passes(self, unit: Unit, *, at: datetime, trigger: str = "rerun") -> Unit:
        return self.see(unit, Outcome.PASS, at=at, trigger=trigger)

    def stale(self, boundary: datetime, where: str = "dc2", *, at: datetime = NOW) -> Unit:
        """Freshness fails: everything from `boundary` on is missing."""
        return self.fails(EVERYTHING, where, at=at, category=Category.FRESHNESS, affected_from=boundary)

    def opened(self, over: Interval = BAD_DAY, where: str = "dc2", *, at: datetime = NOW, **seen: Any) -> Incident:
        """The incident that a failure opens."""
        self.fails(over, where, at=at, **seen)
        process_flips(now=at)
        return Incident.objects.latest("pk")

    @classmethod
    def of_the_gate(cls) -> FailingDataset:
        """Both days passed in dc1 and dc2; then dc2 lacked rows of the 16th."""
        made = cls()
        for where in ("dc1", "dc2"):
            for over in (BAD_DAY, DAY_BEFORE):
                made.unit(over, where)
        made.fails()
        process_flips(now=NOW)
        return made

    @classmethod
    def by_mail(cls, address: str = "ops@example.org") -> FailingDataset:
        """Every team hears of it there."""
        made = cls()
        Team.objects.update(email=address)
        made.dataset.team.refresh_from_db()
        return made


def on_call_user(name: str) -> User:
    """Of the team that owns the dataset, with an address."""
    person = factories.user(name, email=f"{name}@example.org")
    factories.member(person, factories.team(), Role.ON_CALL)
    return person
