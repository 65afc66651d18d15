"""The package that brought a connection's storage is not installed any more: it is said where it matters, and nothing else stops."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from lakehub.accounts.models import Role
from lakehub.catalog.datasets import changes
from lakehub.catalog.lineage import TableName, missing_tables
from lakehub.catalog.lineage.resolver import Resolver
from lakehub.catalog.models import Connection, Dataset
from lakehub.kernel.errors import Refused
from quality.execution import worker
from quality.generation import generate
from quality.models import Result
from tests import factories
from tests.factories import HOUR, NOW
from tests.web.quality.conftest import World

SAYS = "The connection ops cannot be read: There is no storage `ledger`."


@pytest.fixture
def gone(world: World) -> World:
    world.planned()
    Connection.objects.filter(name="ops").update(plugin="ledger")
    return world


def test_tests_that_read_it_say_so_and_the_others_run(gone: World) -> None:
    worker.run_due_units(now=NOW, worker="test", most=100)
    newest = {result.unit.test.key: result for result in Result.objects.select_related("unit__test").order_by("pk")}
    assert newest["completeness"].outcome == "error"
    assert SAYS in str(newest["completeness"].detail)
    assert newest["duplicates"].outcome == "pass"


def test_generation_keeps_what_was_there(gone: World) -> None:
    assert {test.key for test in generate.generate_tests(gone.flights, now=NOW + HOUR)} >= {"completeness", "sample"}


def test_the_daily_look_counts_it_as_unreadable_not_as_gone(gone: World) -> None:
    report = missing_tables.check_tables(offboard_after=timedelta(), now=NOW)
    assert SAYS in report.unreadable["flights"]
    assert report.missing == {}


def test_lineage_of_other_connections_is_still_found(gone: World) -> None:
    factories.connection("lake", "file:///lake", "hudi")
    assert Resolver().table(TableName("file", "/lake/orders"))[1] == "orders"


def test_its_metadata_cannot_be_asked_for(gone: World) -> None:
    with pytest.raises(Refused, match="There is no storage `ledger`"):
        changes.refresh_columns(Dataset.objects.get(name="flights"), actor="ann", now=NOW)


def test_onboarding_from_it_says_so(gone: World, client: Client) -> None:
    connection = Connection.objects.get(name="ops")
    client.force_login(user := factories.user())
    factories.member(user, connection.team, Role.ADMIN)
    page = client.get("/onboarding", {"connection": "ops"})
    assert page.status_code == 200
    assert "There is no storage <code>ledger</code>" in page.content.decode()
