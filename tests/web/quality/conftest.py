"""A small world: flights by day in two lakes and in the operational database that feeds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker

from lakehub.catalog.models import Dataset, DatasetCopy
from quality.execution import worker
from quality.generation import generate
from quality.models import QualityTest, Result, Unit
from quality.planning import baseline
from tests import factories, hudi_tables
from tests.factories import NEW_YORK, NOW

DAYS = ("2026-11-14", "2026-11-15", "2026-11-16")
"""NOW is the afternoon of the 17th in New York: these are over."""
TODAY = "2026-11-17"


def rows(day: str, count: int, first: int = 0, doubled: int = 0) -> pa.Table:
    """`count` flights of a day, of which the last `doubled` repeat the key of the first."""
    numbers = [*range(first, first + count - doubled), *[first] * doubled]
    return pa.table({"id": numbers, "flight_date": [day] * count, "tailnum": [f"N{number % 7}" for number in numbers]})


@dataclass
class World:
    """`flights` fed from the table `flights`; `lakes` are the roots of the data centers."""

    flights: Dataset
    lakes: dict[str, Path]
    source: sa.Engine

    def copy(self, where: str = "dc1") -> DatasetCopy:
        return self.flights.copies.select_related("dataset", "data_center").get(data_center__name=where)

    def table(self, where: str = "dc1") -> Path:
        return self.lakes[where] / "flights"

    def test(self, key: str) -> QualityTest:
        return QualityTest.objects.select_related("version").get(dataset=self.flights, key=key)

    def unit(self, key: str, day: str = "", where: str = "dc1") -> Unit:
        units = Unit.objects.filter(test__dataset=self.flights, test__key=key, copy__data_center__name=where)
        if day:
            units = units.filter(start=factories.day(day).start)
        return units.select_related("test__version", "test__dataset", "copy").get()

    def planned(self, now: datetime = NOW) -> World:
        """Tests generated, baseline started, nothing run."""
        generate.generate_tests(self.flights, now=now)
        for copy in self.flights.copies.select_related("dataset__feed__connection", "data_center"):
            baseline.start_baseline(copy, now=now)
        return self

    def monitored(self, now: datetime = NOW) -> World:
        """Planned, and history tested."""
        self.planned(now).run(now)
        return self

    def run(self, now: datetime) -> int:
        return worker.run_due_units(now=now, worker="test", most=100)

    def outcomes(self, key: str, where: str = "dc1") -> dict[str, str]:
        """The newest outcome by day."""
        results = Result.objects.filter(
            unit__test__dataset=self.flights, unit__test__key=key, unit__copy__data_center__name=where
        )
        return {
            result.unit.start.astimezone(NEW_YORK).date().isoformat(): result.outcome
            for result in results.select_related("unit").order_by("pk")
        }


def fill(source: sa.Engine, day: str, count: int) -> None:
    if not count:
        return
    with source.begin() as connection:
        connection.execute(
            sa.text("INSERT INTO flights VALUES (:id, :day, 'N1')"),
            [{"id": number, "day": day} for number in range(count)],
        )


def build_world(
    folder: Path, counts: Sequence[int] = (1000, 1000, 1000), where: Sequence[str] = ("dc1", "dc2"), **fields: Any
) -> World:
    """A lake for each data center and the source, with `counts` rows on DAYS; `fields` are the dataset's."""
    source = sa.create_engine(f"sqlite:///{folder / 'ops.db'}", poolclass=sa.NullPool)
    with source.begin() as connection:
        connection.execute(sa.text("CREATE TABLE flights (id INTEGER, flight_date TEXT, tailnum TEXT)"))
    for day, count in zip(DAYS, counts, strict=True):
        fill(source, day, count)
    columns = [{"name": name, "type": "string", "nullable": True} for name in ("id", "flight_date", "tailnum")]
    keys = {"tier": 1, "primary_key": ["id", "flight_date"], **fields}
    flights = factories.dataset("flights", copies=(), columns=columns, **keys)
    lakes = {center: folder / center for center in where}
    for center, root in lakes.items():
        days: dict[str | None, pa.Table] = {day: rows(day, count) for day, count in zip(DAYS, counts, strict=True)}
        hudi_tables.hudi_table(root / "flights", days, column="flight_date")
        factories.data_center(center, root.as_uri())
        factories.copy(flights, center, monitored_from=None)
    factories.feed(flights, connection=factories.connection("ops", f"sqlite:///{folder / 'ops.db'}"), object="flights")
    return World(flights, lakes, source)


@pytest.fixture
def make_world(db: None, tmp_path: Path) -> Callable[..., World]:
    return partial(build_world, tmp_path)


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


@pytest.fixture(scope="module")
def monitored_once(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Built once in a transaction that is never committed; each test's own is a savepoint within it.

    For files of tests that write to no table. All of them get it, since there is one dataset `flights`.
    """
    with django_db_blocker.unblock(), transaction.atomic(), pytest.MonkeyPatch.context() as patched:
        patched.setattr("lakehub.clock.now", lambda: NOW)
        built = build_world(tmp_path_factory.mktemp("world")).monitored()
        patched.undo()
        yield built
        transaction.set_rollback(True)


@pytest.fixture
def monitored_world(monitored_once: World, db: None) -> World:
    return replace(monitored_once, flights=Dataset.objects.get(pk=monitored_once.flights.pk))
