"""A change of metadata updates the tests at once; one whose wake-up is lost is caught by the next look."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from kombu.exceptions import OperationalError

from lakehub.accounts.models import Role
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import Dataset
from lakehub.processes.celery_app import app
from quality import tasks
from quality.generation import generate
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def planes(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)
    made = factories.dataset("planes", ingested=False, by_day=False, tier=3)
    factories.feed(made)
    generate.generate_outdated(now=NOW)
    return made


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tasks that were woken; they are run where they would be."""
    names: list[str] = []

    def send(name: str, **options: Any) -> None:
        names.append(name)
        app.tasks[name].run()

    monkeypatch.setattr(app, "send_task", send)
    return names


@pytest.fixture
def owner(planes: Dataset) -> Client:
    person = factories.user("ines", is_staff=True, is_superuser=True)
    factories.member(person, planes.team, Role.OWNER)
    browser = Client()
    browser.force_login(person)
    return browser


def threshold() -> str:
    return Dataset.objects.get(name="planes").tests.get(key="duplicates").version.expression


def test_the_task_that_is_woken_exists() -> None:
    assert settings.LAKEHUB_TASK_ON_METADATA_CHANGE in app.tasks


@pytest.mark.parametrize("change", [{"tier": 0}, {"overrides": {"duplicates": "0%"}}])
def test_a_change_over_the_api_updates_the_tests_at_once(
    owner: Client, woken: list[str], change: dict[str, Any], django_capture_on_commit_callbacks: Any
) -> None:
    assert threshold() == "duplicates(this) < 0.5%"
    with django_capture_on_commit_callbacks(execute=True):
        answer = owner.patch("/api/v1/datasets/planes", change, content_type="application/json")
    assert (answer.status_code, woken) == (200, ["quality.tasks.claim_changes"])
    assert threshold() == "duplicates(this) <= 0%"


def test_so_do_the_console_the_command_line_and_a_new_schema(
    owner: Client, planes: Dataset, woken: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        owner.post("/console/catalog/dataset/", {"action": "pause", "_selected_action": [planes.pk]})
    assert len(woken) == 1
    with django_capture_on_commit_callbacks(execute=True):
        call_command("offboard", "planes")
        call_command("restore", "planes")
    assert len(woken) == 3
    assert planes.tests.filter(retired_at=None).count() == 2


def test_nothing_is_woken_for_a_change_that_is_rolled_back(
    planes: Dataset, woken: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(LookupError), transaction.atomic():
        changes.update_dataset(planes, {"tier": 0}, actor="ann", now=NOW)
        raise LookupError("something else went wrong")
    assert woken == []


def test_a_broker_that_is_down_costs_a_second_and_no_change(
    owner: Client, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    def down(name: str, **options: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(app, "send_task", down)
    with django_capture_on_commit_callbacks(execute=True):
        answer = owner.patch("/api/v1/datasets/planes", {"tier": 0}, content_type="application/json")
    assert (answer.status_code, threshold()) == (200, "duplicates(this) < 0.5%")
    tasks.claim_changes()
    assert threshold() == "duplicates(this) <= 0%"
