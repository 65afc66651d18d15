"""The console of quality: everything can be looked at, nothing edited; rerunning needs the right to change."""

from __future__ import annotations

import pytest
from django.test import Client

from quality.models import Unit
from tests import factories
from tests.web.quality.conftest import DAYS, World


@pytest.fixture
def console(monitored_world: World) -> Client:
    client = Client()
    client.force_login(factories.user("root", is_staff=True, is_superuser=True))
    return client


TABLES = [
    *("qualitytest", "unit", "result", "flip", "skippedcheck", "generationstatus", "baselineattempt", "changepoll"),
    *("columnrule", "metric"),
]


@pytest.mark.parametrize("table", TABLES)
def test_each_list_can_be_looked_at_and_has_no_form(console: Client, table: str) -> None:
    assert console.get(f"/console/quality/{table}/").status_code == 200
    assert console.get(f"/console/quality/{table}/add/").status_code == 403


def test_a_test_shows_its_versions_and_takes_none(console: Client, monitored_world: World) -> None:
    address = f"/console/quality/qualitytest/{monitored_world.test('duplicates').pk}/change/"
    answer = console.get(address)
    assert b"duplicates(this)" in answer.content
    assert b'name="_save"' not in answer.content
    assert console.post(address, {"title": "another"}).status_code == 403


@pytest.mark.parametrize(
    ("permissions", "due"), [(["view_unit"], False), (["view_unit", "change_unit"], True)], ids=["looks", "acts"]
)
def test_rerunning_needs_the_right_to_change(monitored_world: World, permissions: list[str], due: bool) -> None:
    unit = monitored_world.unit("duplicates", DAYS[0])
    asked = {"action": "rerun", "_selected_action": [unit.pk]}
    factories.staff(*permissions).post("/console/quality/unit/", asked)
    assert Unit.objects.filter(pk=unit.pk, due_at__isnull=False).exists() is due
