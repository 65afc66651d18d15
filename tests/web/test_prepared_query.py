"""A query that is put together once gives what the queryset gives that it was made from."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import models

from incidents.models import GatePolicy
from lakehub.catalog.models import Dataset
from lakehub.db.prepared_query import Parameter, PreparedQuery
from lakehub.kernel.interval import EVERYTHING
from quality.models import QualityTest, Unit
from tests import factories
from tests.factories import DAY, HOUR, NOW, day

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rows() -> None:
    dataset = factories.dataset("flights", copies=("dc1", "dc2"), grace_until=NOW + timedelta(microseconds=1))
    for over in (EVERYTHING, day("2026-11-16"), day("2026-11-17")):
        factories.unit(factories.test(dataset, f"key {over.start}", cadence=HOUR), over=over)
    Unit.objects.filter(start=day("2026-11-16").start).update(sustain=1.5 * DAY, waiver="accepted", last_pass_at=None)
    GatePolicy.objects.create(consumer="jobs", tier=None, blocks=["fail", 'un"known'], shadow=True)


QUERYSETS = {
    "instants and periods": lambda: Unit.objects.order_by("-start").values_list(
        "pk", "start", "end", "sustain", "last_pass_at", "verdict", "test__title", "read_anew"
    ),
    "JSON, booleans and NULL": lambda: GatePolicy.objects.values_list("tier", "blocks", "shadow"),
    "flags": lambda: Dataset.objects.values_list("name", models.Exists(QualityTest.objects.all()), "grace_until"),
    "a union": lambda: (
        Unit.objects.filter(verdict="pass")
        .values_list("pk", "sustain")
        .union(Unit.objects.values_list("pk", "sustain"), all=True)
    ),
    "no rows": lambda: Unit.objects.filter(verdict="none").values_list("pk", "start"),
    "floats": lambda: Unit.objects.order_by("pk").values_list("observed", models.Value(0.1) + models.Value(0.2)),
}


@pytest.mark.parametrize("name", QUERYSETS)
def test_the_rows_are_those_of_django(name: str) -> None:
    assert PreparedQuery(QUERYSETS[name]).rows() == list(QUERYSETS[name]())


def test_objects_are_those_of_django_with_what_they_refer_to() -> None:
    wanted = Dataset.objects.select_related("team")
    (dataset,) = PreparedQuery(lambda: wanted.filter(name=Parameter("name"))).objects(name="flights")
    assert dataset == wanted.get()
    assert dataset.team.name == wanted.get().team.name
    assert vars(dataset) | {"_state": 0} == vars(wanted.get()) | {"_state": 0}
