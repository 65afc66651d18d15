"""A fleet in every state, a person signed in, and the clock at factories.NOW."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from lakehub.accounts.models import Role, User
from lakehub.catalog.models import Dataset
from lakehub.clock.models import ClockShift
from tests import factories as make
from tests import fleet


@pytest.fixture(autouse=True)
def _clock_at_now(settings: Settings, db: None) -> None:
    settings.LAKEHUB_CLOCK = "shifted"
    ClockShift.move_to(make.NOW)


@pytest.fixture
def flights() -> Dataset:
    """A whole fleet; the copy of `flights` in dc2 lacks rows of 16 Nov."""
    return fleet.build()


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
