"""Several workers and several people at the same incident, on PostgreSQL, where transactions really run at once."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

PRELUDE = """
import django
django.setup()
from django.core.management import call_command
from incidents import actions
from incidents.intake import take_in
from incidents.models import Incident, IncidentEvent, Message, Span
from lakehub.accounts.models import User
from lakehub.kernel.errors import Conflict
from tests import factories
from tests.factories import NOW, day
"""
MANY_FAIL = """
from tests.web.incidents.stage import Stage
call_command("migrate", verbosity=0)
stage = Stage()
for number in range(1, 15):
    for where in ("dc1", "dc2"):
        stage.fails(day(f"2026-11-{number:02}"), where)
for name in ("ana", "ben", "cyd"):
    factories.user(name)
"""
TAKE_IN = "take_in(now=NOW)"
ACKNOWLEDGE = """
try:
    actions.acknowledge(Incident.objects.get().pk, actor=User.objects.get(username={name!r}), now=NOW)
    print("mine")
except Conflict as conflict:
    print(conflict)
"""
COUNT = """
print(Incident.objects.count(), Span.objects.count(), Message.objects.filter(occasion="opened").count())
print(IncidentEvent.objects.filter(kind="acknowledged").count())
"""


@pytest.fixture
def database(postgresql_url: str) -> Iterator[str]:
    name = f"at_once_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgresql_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
    yield postgresql_url.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(postgresql_url, autocommit=True) as server:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


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


def said(processes: list[subprocess.Popen[str]]) -> list[str]:
    answers = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        answers.append(out.strip())
    return answers


def test_workers_at_once_make_one_incident_and_of_people_at_once_one_has_it(database: str, tmp_path: Path) -> None:
    said([start(database, tmp_path, MANY_FAIL)])
    said([start(database, tmp_path, TAKE_IN) for _ in range(3)])
    told = said([start(database, tmp_path, ACKNOWLEDGE.format(name=name)) for name in ("ana", "ben", "cyd")])
    assert told.count("mine") == 1
    assert sum("was faster: acknowledged" in answer for answer in told) == 2
    assert said([start(database, tmp_path, COUNT)]) == ["1 28 1\n1"]
