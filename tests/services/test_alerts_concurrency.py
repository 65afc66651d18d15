"""Workers and people at the alerts of one dataset at the same moment, on PostgreSQL, where transactions really run at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.polling import scaled
from tests.services.test_incidents_concurrency import fresh_database

SCRIPT = """
import json
from threading import Barrier, Thread
import django
django.setup()
from tests.polling import scaled
from django.core.management import call_command
from django.db import connection, transaction
from incidents.alerts import generate, suppression_rules
from incidents.domain.alerting.suppression import cycle_in
from incidents.notifications.periodic import digests
from incidents.notifications.send_conditions import suppression_pairs
from incidents.models import Alert, Digest, Message, Route
from incidents.notifications.retract import retract
from tests import factories
from tests.factories import HOUR, NOW

call_command("migrate", run_syncdb=True, verbosity=0)
flights = factories.dataset("flights")
route = Route.objects.create(team=flights.team, channel="log", address="x", digest="hourly")
incident = factories.incident(flights)


def at_once(*calls):
    barrier, answers = Barrier(len(calls)), [None] * len(calls)

    def run(at, call):
        barrier.wait()
        try:
            answers[at] = str(call())
        except Exception as error:
            answers[at] = f"{type(error).__name__}: {error}"
        finally:
            connection.close()

    threads = [Thread(target=run, args=pair) for pair in enumerate(calls)]
    [thread.start() for thread in threads]
    [thread.join(scaled(60)) for thread in threads]
    return answers


def put(by, suppresses):
    return lambda: len(suppression_rules.set_suppression(flights, by, suppresses, counts=True, actor="ana", now=NOW))


def take_back():
    with transaction.atomic():
        return retract(incident, "resolved", why="reopened")


outcomes = {"digests": [], "recalled": [], "cycles": [], "made": []}
for _ in range(6):
    Digest.objects.all().delete()
    Message.objects.all().delete()
    for _ in range(5):
        factories.message(incident, "collected", route=route)
    answers = at_once(*[lambda: digests.write_due_digests(now=NOW)] * 3)
    listed = Message.objects.exclude(digest=None).count()
    outcomes["digests"].append([answers, Digest.objects.count(), listed])
    Message.objects.all().delete()
    for number in range(20):
        factories.message(incident, "collected", route=route, occasion="resolved", address=f"{number}@example.org")
    answers = at_once(lambda: digests.write_due_digests(now=NOW), take_back)
    listed = Message.objects.exclude(digest=None)
    outcomes["recalled"].append([answers, listed.count(), Message.objects.filter(state="dropped", digest=None).count()])
    suppression_rules.reset_suppression(flights, actor="ana", now=NOW)
    answers = at_once(put("completeness", "duplicates"), put("duplicates", "others"), put("others", "completeness"))
    outcomes["cycles"].append([answers, cycle_in(suppression_pairs(flights))])
    Alert.objects.all().delete()
    answers = at_once(*[lambda: generate.generate_outdated_alerts(now=NOW)] * 3)
    outcomes["made"].append([answers, Alert.objects.count()])
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def outcomes(postgresql_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    home: Path = tmp_path_factory.mktemp("alerts")
    with fresh_database(postgresql_url) as url:
        ours = {"LAKEHUB_HOME": str(home), "LAKEHUB_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=os.environ | ours, capture_output=True, text=True, timeout=scaled(240)
        )
    assert done.returncode == 0, done.stderr
    printed: dict[str, list[Any]] = json.loads(done.stdout)
    return printed


def test_workers_at_once_write_one_digest_that_lists_everything(outcomes: dict[str, list[Any]]) -> None:
    for answers, written, listed in outcomes["digests"]:
        assert (sorted(answers), written, listed) == (["0", "0", "1"], 1, 5)


def test_what_is_taken_back_while_a_digest_is_written_is_in_it_or_is_not(outcomes: dict[str, list[Any]]) -> None:
    for (written, was_told), listed, dropped in outcomes["recalled"]:
        assert (written, was_told, listed, dropped) in (("1", "True", 20, 0), ("0", "False", 0, 20))


def test_rules_that_close_a_cycle_together_are_not_all_taken(outcomes: dict[str, list[Any]]) -> None:
    for answers, cycle in outcomes["cycles"]:
        assert cycle == []
        (refused,) = [answer for answer in answers if "That is a cycle" in answer]
        assert refused.startswith("Refused: ")


def test_workers_at_once_make_the_alerts_of_a_dataset_once(outcomes: dict[str, list[Any]]) -> None:
    for answers, made in outcomes["made"]:
        assert made == 6
        assert all(answer.isdecimal() for answer in answers), answers
