"""A fleet in every state, a person signed in, and the clock at factories.NOW."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import Client
from pytest_django.fixtures import Settings
from pytest_django.plugin import DjangoDbBlocker

from incidents.models import Incident
from lakehub.accounts.models import Role, User
from lakehub.catalog.models import Dataset
from lakehub.clock.models import ClockShift
from quality.models import Category
from tests import factories as make
from tests import fleet


@pytest.fixture(scope="package")
def _fleet(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Built once in a transaction that is never committed; each test's own transaction is a savepoint within it."""
    with django_db_blocker.unblock(), transaction.atomic():
        fleet.build()
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def _clock_at_now(settings: Settings, _fleet: None, db: None) -> None:
    settings.LAKEHUB_CLOCK = "shifted"
    ClockShift.move_to(make.NOW)


@pytest.fixture
def flights() -> Dataset:
    """Of a whole fleet; its copy in dc2 lacks rows of 16 Nov."""
    return Dataset.objects.get(name="flights")


@pytest.fixture
def ines(flights: Dataset) -> User:
    """Admin of the teams of the fleet."""
    return User.objects.get(username="ines")


@pytest.fixture
def page(client: Client, ines: User) -> Client:
    """Signed in as ines, who sees times in New York."""
    client.force_login(ines)
    client.cookies["zone"] = "America/New_York"
    return client


@pytest.fixture
def guest(flights: Dataset) -> Client:
    """Signed in as somebody who may only look."""
    person = make.user("guest")
    make.member(person, make.team("flight-ops"), Role.VIEWER)
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def cross_dc(page: Client) -> Incident:
    return Incident.objects.get(category=Category.CONSISTENCY)


@pytest.fixture
def late(page: Client) -> Incident:
    """Nobody has it."""
    return Incident.objects.get(category=Category.FRESHNESS, resolved_at=None)
