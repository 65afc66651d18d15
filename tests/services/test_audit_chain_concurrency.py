"""Many writers of the audit log at the same moment: one chain without a gap, every line once, and nobody waits for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.polling import scaled
from tests.services.test_incidents_concurrency import fresh_database

SCRIPT = """
import json
from threading import Barrier, Thread
import django
django.setup()
from django.core.management import call_command
from django.db import connection, transaction
from lakehub.accounts.audit import audit_log
from lakehub.accounts.audit.verification import verify_chain
from lakehub.accounts.models import AuditEntry, Team
from tests import factories
from tests.factories import NOW

WRITERS, ROUNDS = 6, 20
call_command("migrate", run_syncdb=True, verbosity=0)
team = factories.team()
barrier, problems = Barrier(WRITERS), []


def write(writer):
    # Every other writer records before it changes the team, the others after it: with the chain's head locked in there, two of
    # them would hold what the other one waits for.
    first = "record" if writer % 2 else "change"
    barrier.wait()
    try:
        for round_ in range(ROUNDS):
            for _ in range(3):
                with transaction.atomic():
                    for step in (first, "record" if first == "change" else "change"):
                        if step == "record":
                            audit_log.record(f"writer{writer}", "changed", f"team:{team.name}", now=NOW, round=round_)
                        else:
                            Team.objects.filter(pk=team.pk).update(email=f"{writer}.{round_}@example.org")
            try:
                with transaction.atomic():
                    audit_log.record(f"writer{writer}", "undone", f"team:{team.name}", now=NOW, round=round_)
                    raise KeyError
            except KeyError:
                pass
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}")
    finally:
        connection.close()


threads = [Thread(target=write, args=(number,)) for number in range(WRITERS)]
[thread.start() for thread in threads]
[thread.join(180) for thread in threads]
report = verify_chain()
numbers = list(AuditEntry.objects.order_by("number").values_list("number", flat=True))
each = {f"writer{writer}": list(AuditEntry.objects.filter(actor=f"writer{writer}").order_by("number").values_list("pk", flat=True)) for writer in range(WRITERS)}
print(json.dumps({
    "problems": problems,
    "numbers": numbers == list(range(1, WRITERS * ROUNDS * 3 + 1)),
    "lines": [report.line_count, report.waiting_count, report.problem],
    "in order": all(keys == sorted(keys) and len(keys) == ROUNDS * 3 for keys in each.values()),
}))
"""


def written_at_once(home: Path, database: str) -> dict[str, Any]:
    ours = {"LAKEHUB_HOME": str(home), "LAKEHUB_DATABASE_URL": database, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | ours, capture_output=True, text=True, timeout=scaled(240)
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


EXPECTED = {"problems": [], "numbers": True, "lines": [360, 0, ""], "in order": True}


def test_on_postgresql(postgresql_url: str, tmp_path: Path) -> None:
    with fresh_database(postgresql_url) as url:
        assert written_at_once(tmp_path, url) == EXPECTED


def test_on_sqlite(tmp_path: Path) -> None:
    assert written_at_once(tmp_path, f"sqlite:///{tmp_path / 'audit.db'}") == EXPECTED
