"""Several workers and several people at the same incident, on PostgreSQL, where transactions really run at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import Any

import psycopg
import pytest

from tests.polling import scaled

PRELUDE = """
import django
django.setup()
from tests.polling import scaled
from django.core.management import call_command
from incidents.lifecycle import actions
from incidents.lifecycle.intake import process_flips
from incidents.models import Incident, IncidentEvent, Message, Span
from lakehub.accounts.models import User
from lakehub.kernel.errors import Conflict
from tests import factories
from tests.factories import NOW, day
"""
MANY_FAIL = """
from tests.web.incidents.failing_dataset import FailingDataset
call_command("migrate", run_syncdb=True, verbosity=0)
stage = FailingDataset()
factories.feed(stage.dataset)
for copy in stage.dataset.copies.all():
    factories.with_table(copy)
for number in range(1, 15):
    for where in ("dc1", "dc2"):
        stage.fails(day(f"2026-11-{number:02}"), where)
for name in ("ana", "ben", "cyd"):
    factories.user(name)
"""
TAKE_IN = "process_flips(now=NOW)"
ACKNOWLEDGE = """
try:
    actions.acknowledge(Incident.objects.get().pk, actor=User.objects.get(username={name!r}), now=NOW)
    print("mine")
except Conflict as conflict:
    print(conflict)
"""
RACES = """
import json
from threading import Barrier, Event, Thread
from django.db import connection
from django.test import Client
from django.test.utils import setup_test_environment
from incidents.lifecycle import user_reports
from incidents.lifecycle.bulk import apply
from incidents.lifecycle.bulk.apply import BulkRequest, apply_to_many
from incidents.models import UserReport
from incidents.lifecycle.bulk.undo import undo_bulk_action
from lakehub import wiring
from lakehub.accounts.tokens import api_tokens
from lakehub.accounts.models import Role
from lakehub.accounts.permissions import require
from lakehub.kernel.interval import Interval
from quality.models import Category, Unit
from tests.factories import DAY, HOUR
from tests.web.incidents.failing_dataset import FailingDataset

setup_test_environment()
call_command("migrate", run_syncdb=True, verbosity=0)
wiring.clock.now = lambda: NOW
OUTCOMES = {}
stage = FailingDataset()
factories.feed(stage.dataset)
for copy in stage.dataset.copies.all():
    factories.with_table(copy)
bases = iter(range(400))
ana, ben = (factories.user(name) for name in ("ana", "ben"))
browsers = {}
for person in (ana, ben):
    factories.member(person, factories.team(), Role.ON_CALL)
    scopes = ("incidents:read", "incidents:write")
    made = {"name": "t", "consumer": "etl", "team": factories.team(), "created_by": person, "scopes": scopes}
    browsers[person] = Client(headers={"authorization": f"Bearer {api_tokens.issue_token(**made, now=NOW)[1]}"})

def far():
    # a day that no other incident touches
    start = day("2020-01-01").start + 3 * next(bases) * DAY
    return Interval(start, start + DAY)

def opened(over=None):
    return stage.opened(over or far())

def at_once(*calls):
    # what each call returned, or the name of what it raised; all start at the same moment
    barrier, answers = Barrier(len(calls)), [None] * len(calls)
    def run(at, call):
        barrier.wait()
        try:
            answers[at] = call()
        except Exception as error:
            answers[at] = f"{type(error).__name__}: {error}"
        finally:
            connection.close()
    threads = [Thread(target=run, args=pair) for pair in enumerate(calls)]
    [thread.start() for thread in threads]
    [thread.join(scaled(60)) for thread in threads]
    return answers

def post(person, path, **body):
    def call():
        answer = browsers[person].post(f"/api/v1/incidents/{path}", json.dumps(body), content_type="application/json")
        reply = answer.json()
        return [answer.status_code, reply.get("error", {}).get("message", reply.get("state"))]
    return call

def somebody_waits_for_me():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid")
        return cursor.fetchone()[0]

def in_the_middle_of_bulk(ask, number, call):
    # what the call returned that began when the incident had been read and not changed yet, and what bulk did
    inside, over = Event(), Event()
    def held(*args):
        require(*args)
        inside.set()
        while not over.wait(0.01) and not somebody_waits_for_me():
            pass
    def meanwhile():
        inside.wait(scaled(30))
        try:
            return call()
        finally:
            over.set()
    apply.require = held
    try:
        return at_once(meanwhile, lambda: apply_to_many([number], ask, actor=ana, now=NOW).bulk.pk)
    finally:
        apply.require = require

def is_sound():
    # a unit's verdict is FAIL if and only if it is active in exactly one open incident
    failing = set(Unit.objects.filter(verdict="fail").values_list("pk", flat=True))
    active = list(Span.objects.filter(ended_at=None).values_list("unit", flat=True))
    closed = Span.objects.filter(ended_at=None, incident__resolved_at__isnull=False).count()
    empty = [incident.pk for incident in Incident.objects.filter(resolved_at=None, reported=False) if not incident.spans.filter(ended_at=None)]
    return len(active) == len(set(active)) and set(active) == failing and not closed and not empty
"""
RACE = """
def race():
{body}

answers = []
for _ in range(ROUNDS):
    answer = race()
    process_flips(now=NOW + HOUR)
    answers.append([answer, is_sound()])
OUTCOMES[{name!r}] = answers
"""
ROUNDS = 6
FORCE = 'resolution="accepted", why="x"'
COUNT = """
print(Incident.objects.count(), Span.objects.count(), Message.objects.filter(occasion="opened").count())
print(IncidentEvent.objects.filter(kind="acknowledged").count())
"""


@contextmanager
def fresh_database(postgresql_url: str) -> Iterator[str]:
    name = f"at_once_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgresql_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
    yield postgresql_url.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(postgresql_url, autocommit=True) as server:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(postgresql_url: str) -> Iterator[str]:
    with fresh_database(postgresql_url) as url:
        yield url


def start(database: str, home: Path, script: str) -> subprocess.Popen[str]:
    environment = os.environ | {
        "LAKEHUB_HOME": str(home),
        "LAKEHUB_DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
    }
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script], env=environment, stdout=pipe, stderr=pipe, text=True
    )


def outputs(processes: list[subprocess.Popen[str]]) -> list[str]:
    answers = []
    for process in processes:
        out, err = process.communicate(timeout=scaled(300))
        assert process.returncode == 0, err
        answers.append(out.strip())
    return answers


ONE_INCIDENT = {
    "two acknowledge": ("acknowledge", "", "acknowledge", ""),
    "two resolve by force": ("resolve", FORCE, "resolve", FORCE),
    "one acknowledges what the other resolves": ("acknowledge", "revision=0", "resolve", f"revision=0, {FORCE}"),
    "one assigns what the other snoozes": (
        "assign",
        'revision=0, assignee="ana"',
        "snooze",
        'revision=0, until="2126-01-01T00:00:00Z"',
    ),
    "two ask for a backfill": ("backfill", "revision=0", "backfill", "revision=0"),
}
TWO_INCIDENTS = {
    "merged into each other": ("first, 'merge', other=second", "second, 'merge', other=first"),
    "merged while it is resolved": ("first, 'merge', other=second", f"second, 'resolve', {FORCE}"),
    "merged into what is resolved": ("first, 'merge', other=second", f"first, 'resolve', {FORCE}, revision=0"),
}
ONE = """
number = opened().pk
return at_once(post(ana, f"{{number}}/{0}", {1}), post(ben, f"{{number}}/{2}", {3}))
"""
TWO = """
first, second = opened().pk, opened().pk
to = lambda person, number, action, **body: post(person, f"{{number}}/{{action}}", **body)
return at_once(to(ana, {0}), to(ben, {1}))
"""
OTHERS = {
    "a pass and a force": f"""
over = far()
number = opened(over).pk
stage.passes(Unit.objects.get(start=over.start), at=NOW + HOUR)
results = at_once(post(ana, f"{{number}}/resolve", {FORCE}), lambda: process_flips(now=NOW + HOUR))
return [results, IncidentEvent.objects.filter(incident=number, kind="resolved").count()]
""",
    "an undo and a change": """
number = opened().pk
bulk = apply_to_many([number], BulkRequest("acknowledge"), actor=ana, now=NOW).bulk.pk
back = lambda: [skipped.code for skipped in undo_bulk_action(bulk, actor=ana, now=NOW).skipped]
results = at_once(back, post(ben, f"{number}/annotate", revision=1, backfill="needed"))
return [*results, Incident.objects.filter(pk=number).values_list("state", "backfill").get()]
""",
    "a change in the middle of a bulk": """
number = opened().pk
change = post(ben, f"{number}/annotate", backfill="needed")
(code, _), made = in_the_middle_of_bulk(BulkRequest("assign", assignee="ben"), number, change)
kept = [skipped.code for skipped in undo_bulk_action(made, actor=ana, now=NOW).skipped]
return [code, kept, Incident.objects.values_list("assignee__username", "backfill").get(pk=number)]
""",
    "a report and what explains it": """
over = far()
stage.fails(over)
tell = lambda: user_reports.file_report(stage.dataset, "consistency", over, text="Odd.", reporter=ben, now=NOW).pk
report, taken = at_once(tell, lambda: process_flips(now=NOW))
return [report, taken, Incident.objects.get(pk=report).state]
""",
}
BODIES = (
    {name: ONE.format(*steps) for name, steps in ONE_INCIDENT.items()}
    | {name: TWO.format(*steps) for name, steps in TWO_INCIDENTS.items()}
    | OTHERS
)


@pytest.fixture(scope="module")
def races(postgresql_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """Every race, in rounds on incidents of its own: what was said, and whether the invariant holds afterwards."""
    script = f"ROUNDS = {ROUNDS}\n" + RACES
    script += "".join(RACE.format(name=name, body=indent(body, "    ")) for name, body in BODIES.items())
    with fresh_database(postgresql_url) as url:
        yield json.loads(
            outputs([start(url, tmp_path_factory.mktemp("races"), script + "print(json.dumps(OUTCOMES))")])[0]
        )


@pytest.mark.parametrize("name", ONE_INCIDENT)
def test_of_two_moves_at_once_one_wins_and_the_other_is_told_by_whom(races: dict[str, list[Any]], name: str) -> None:
    for answers, is_sound in races[name]:
        won, lost = sorted(answers)
        assert (won[0], lost[0]) == (200, 409), answers
        assert "was faster: " in lost[1]
        assert "Nothing was changed." in lost[1]
        assert is_sound


@pytest.mark.parametrize("name", TWO_INCIDENTS)
def test_of_a_merge_and_another_move_at_once_one_wins(races: dict[str, list[Any]], name: str) -> None:
    for answers, is_sound in races[name]:
        assert sorted(code for code, _ in answers) == [200, 409], answers
        assert is_sound


def test_a_pass_and_a_force_at_once_resolve_it_once(races: dict[str, list[Any]]) -> None:
    for ((forced, taken), resolved), is_sound in races["a pass and a force"]:
        assert forced[0] in (200, 409), forced
        assert not isinstance(taken, str), taken
        assert resolved == 1
        assert is_sound


def test_an_undo_and_a_change_at_once_leave_one_of_them(races: dict[str, list[Any]]) -> None:
    for (kept, (code, _), row), is_sound in races["an undo and a change"]:
        assert (kept, code, row) in (([], 409, ["open", ""]), (["conflict"], 200, ["acknowledged", "needed"]))
        assert is_sound


def test_an_undo_of_many_keeps_what_somebody_changed_in_the_middle_of_it(races: dict[str, list[Any]]) -> None:
    for (code, kept, (assignee, backfill)), is_sound in races["a change in the middle of a bulk"]:
        assert (code == 200) == (backfill == "needed"), "who was told that it is changed finds it changed"
        assert (kept, assignee) == ([], None)
        assert is_sound


def test_a_report_and_the_incident_that_explains_it_find_each_other(races: dict[str, list[Any]]) -> None:
    for (_, taken, state), is_sound in races["a report and what explains it"]:
        assert (isinstance(taken, int), state) == (True, "matched"), taken
        assert is_sound


def test_workers_at_once_make_one_incident_and_of_people_at_once_one_has_it(database: str, tmp_path: Path) -> None:
    outputs([start(database, tmp_path, MANY_FAIL)])
    outputs([start(database, tmp_path, TAKE_IN) for _ in range(3)])
    answers = outputs([start(database, tmp_path, ACKNOWLEDGE.format(name=name)) for name in ("ana", "ben", "cyd")])
    assert answers.count("mine") == 1
    assert sum("was faster: acknowledged" in answer for answer in answers) == 2
    assert outputs([start(database, tmp_path, COUNT)]) == ["1 28 1\n1"]
