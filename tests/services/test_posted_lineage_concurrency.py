"""Programs of several teams that post lineage while the daily source is read, on PostgreSQL, where transactions really run at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.polling import scaled
from tests.services.test_incidents_concurrency import fresh_database

SCRIPT = """
import json
from threading import Barrier, Thread
import django
django.setup()
from tests.polling import scaled
from django.core.management import call_command
from django.db import connection
from lakehub.catalog.lineage import LineageSnapshot, TableLink, TableName, edges, posted
from lakehub.catalog.lineage.posted_events import parse_posted_event
from lakehub.catalog.models import LineageEdge, LineageLink, PostedRun
from tests import factories
from tests.factories import MINUTE, NOW
from tests.lineage_events import event, table

call_command("migrate", run_syncdb=True, verbosity=0)
source = factories.dataset("source")
teams = [factories.team(f"team-{number}") for number in range(3)]
for number, team in enumerate(teams):
    for place in range(2):
        factories.dataset(f"made-{number}-{place}", team=team)


def post(number, place, minute):
    # Two jobs of each team at once, each of which reads tables that only this round has.
    body = event(f"job-{place}", NOW - minute * MINUTE, [table("lakehub/source"), table(f"else/{minute}")], [table(f"lakehub/made-{number}-{place}")])
    return posted.take_event(parse_posted_event(body, now=NOW), teams[number], now=NOW).result


def read(minute):
    link = TableLink(TableName("else", f"{minute}"), TableName("else", "read"))
    return edges.replace_lineage(LineageSnapshot(frozenset({link})), source="file", now=NOW) and "read"


def at_once(*calls):
    barrier, answers = Barrier(len(calls)), [None] * len(calls)

    def run(at, call):
        barrier.wait()
        try:
            answers[at] = str(call[0](*call[1:]))
        except Exception as error:
            answers[at] = f"{type(error).__name__}: {error}"
        finally:
            connection.close()

    threads = [Thread(target=run, args=pair) for pair in enumerate(calls)]
    [thread.start() for thread in threads]
    [thread.join(scaled(60)) for thread in threads]
    return answers


answers = []
for minute in range(9, 1, -1):
    answers += at_once(*[(post, number, place, minute) for number in range(3) for place in range(2)], (read, minute))
print(json.dumps([sorted(set(answers)), sorted(map(str, LineageEdge.objects.all())), LineageLink.objects.count(), PostedRun.objects.count()]))
"""


def test_all_are_taken_and_each_link_is_there(postgresql_url: str, tmp_path: Path) -> None:
    with fresh_database(postgresql_url) as url:
        ours = {"LAKEHUB_HOME": str(tmp_path), "LAKEHUB_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=os.environ | ours, capture_output=True, text=True, timeout=scaled(240)
        )
    assert done.returncode == 0, done.stderr
    answers, known_edges, links, runs = json.loads(done.stdout)
    assert answers == ["completed", "read"]
    assert known_edges == [f"source → made-{number}-{place}" for number in range(3) for place in range(2)]
    assert (links, runs) == (3 * 2 * 2 + 1, 6)
