"""Connections are tried off the threads that answer people: few at once, and nobody waits longer than the limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from threading import Event, get_ident
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog import connection_trials, connections
from lakehub.catalog.connection_trials import run_trial
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import ConnectionTrial
from lakehub.kernel.errors import Busy, Refused
from tests import factories as make
from tests.polling import wait_until
from tests.tcp_forwarder import TcpForwarder

pytestmark = pytest.mark.django_db
LIMIT = timedelta(milliseconds=200)


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """What ends trials that hang."""
    monkeypatch.setattr(connection_trials, "LIMIT", LIMIT)
    ended = Event()
    yield ended
    ended.set()
    wait_until(lambda: connection_trials.running() == 0)


def test_it_runs_in_another_thread_and_gives_its_place_back() -> None:
    assert run_trial(get_ident) != get_ident()
    with pytest.raises(MetadataUnavailable, match="gone"):
        run_trial(_fail)
    assert not ConnectionTrial.objects.exclude(leased_until=None).exists()


def _fail() -> None:
    raise MetadataUnavailable("gone")


def test_trials_that_hang_keep_nobody_longer_than_the_limit_and_hold_their_places(
    release: Event, settings: Any
) -> None:
    settings.LAKEHUB_CONNECTION_TRIALS = 2
    for _ in range(2):
        with pytest.raises(MetadataUnavailable, match=r"timed out: there was no answer within 0\.2 seconds.*firewall"):
            run_trial(release.wait)
    calls: list[int] = []
    for _ in range(5):
        with pytest.raises(
            Busy, match=r"2 connections are being tested.*Try again in 20 seconds.*LAKEHUB_CONNECTION_TRIALS"
        ):
            run_trial(lambda: calls.append(1))
    assert calls == []
    assert ConnectionTrial.objects.exclude(leased_until=None).count() == 2


def test_other_processes_of_the_instance_count_too(settings: Any) -> None:
    settings.LAKEHUB_CONNECTION_TRIALS = 1
    place = connection_trials._take_place()
    with pytest.raises(Busy, match="1 connection is being tested"):
        run_trial(get_ident)
    connection_trials._give_back(place)
    assert run_trial(get_ident)


def test_a_thread_that_hangs_counts_when_its_lease_is_over(release: Event, settings: Any) -> None:
    settings.LAKEHUB_CONNECTION_TRIALS = 1
    with pytest.raises(MetadataUnavailable):
        run_trial(release.wait)
    ConnectionTrial.objects.update(leased_until=None)
    with pytest.raises(Busy):
        run_trial(get_ident)
    assert not ConnectionTrial.objects.exclude(leased_until=None).exists()


def test_a_person_has_one_place_and_others_have_the_rest(release: Event, settings: Any) -> None:
    settings.LAKEHUB_CONNECTION_TRIALS = 2
    notes: list[str] = []
    with pytest.raises(MetadataUnavailable):
        run_trial(release.wait, person="adam", note=lambda: notes.append("adam"))
    for _ in range(5):
        with pytest.raises(Busy, match=r"being tested for you just now.*one test at a time. Try again in 20 seconds"):
            run_trial(get_ident, person="adam", note=lambda: notes.append("adam again"))
    assert run_trial(get_ident, person="olga", note=lambda: notes.append("olga"))
    assert notes == ["adam", "olga"]
    ConnectionTrial.objects.update(leased_until=None)
    release.set()
    wait_until(lambda: connection_trials.running() == 0)
    assert run_trial(get_ident, person="adam")


def test_what_cannot_be_noted_is_not_tried(release: Event) -> None:
    calls: list[int] = []
    for _ in range(3):
        with pytest.raises(MetadataUnavailable, match="gone"):
            run_trial(lambda: calls.append(1), person="adam", note=_fail)
    assert (calls, connection_trials.running()) == ([], 0)


def test_who_is_told_to_come_again_is_not_in_the_audit_log(settings: Any) -> None:
    settings.LAKEHUB_CONNECTION_TRIALS = 2
    team = make.team().name

    def try_as(actor: str, url: str = "postgresql://u:secret@127.0.0.1:1/x") -> None:
        connections.check_connection(plugin="sql", url=url, team=team, actor=actor, now=make.NOW)

    place = connection_trials._take_place("adam")
    with pytest.raises(Busy):
        try_as("adam")
    assert not AuditEntry.objects.exists()
    with pytest.raises(Refused):
        try_as("olga")
    assert [entry.actor for entry in AuditEntry.objects.all()] == ["olga"]
    with pytest.raises(Refused):  # not tried, but somebody who searches for what is there is seen
        try_as("adam", "sqlite:////etc/passwd")
    assert [entry.actor for entry in AuditEntry.objects.order_by("pk")] == ["olga", "adam"]
    connection_trials._give_back(place)


@pytest.mark.parametrize("driver", ["postgresql+psycopg", "mysql+pymysql"])
def test_a_silent_host_is_answered_within_the_limit(driver: str, release: Event) -> None:
    with TcpForwarder() as silent:
        began = time.monotonic()
        with pytest.raises(Refused, match="The host does not answer"):
            connections.check_connection(
                plugin="sql", url=f"{driver}://u:secret@127.0.0.1:{silent.port}/x?connect_timeout=1", team=make.team().name,
                actor="ada", now=make.NOW,
            )  # fmt: skip
        assert time.monotonic() - began < 10
        wait_until(lambda: connection_trials.running() == 0)


def test_the_page_and_the_api_say_when_to_try_again(client: Client, settings: Any) -> None:
    settings.LAKEHUB_CONNECTION_TRIALS = 1
    team, ada = make.team(), make.user("ada")
    make.member(ada, team, Role.ADMIN)
    client.force_login(ada)
    connection_trials._take_place()
    source = {"name": "ops", "plugin": "sql", "url": "postgresql://u:hunter2@127.0.0.1:1/x", "team": team.name}
    for body in (source | {"action": "test"}, source):
        answer = client.post(reverse("new-connection"), body)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "20")
        assert "1 connection is being tested" in answer.content.decode()
    for address in ("/api/v1/connections", "/api/v1/connections/test"):
        answer = client.post(address, source, content_type="application/json")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "20")
