"""A change of a dataset while jobs and tests of it run, on PostgreSQL, where both really happen at once: none mixes before and after."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.polling import scaled
from tests.services.test_claims_postgresql import database as database
from tests.services.test_claims_postgresql import said
from tests.services.test_claims_postgresql import server as server
from tests.web.quality import test_worker_kill as processes

pytestmark = pytest.mark.usefixtures("database")
BUILD = """
import json, sqlite3, sys, time
from pathlib import Path
from ingestion.models import JobRun
from ingestion.runs import job_runs, run_worker
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.redefine import change_dataset
from lakehub.kernel.errors import Conflict
from quality.execution import claims, worker as tests_worker
from quality.generation import custom_tests, generate
from quality.planning import baseline
from tests import factories
from tests.web.catalog.test_copy_locations import AT_OPS, DAYS, database
from tests.web.ingestion.conftest import FakeLauncher, worker_at
from dataclasses import replace
from django.db import transaction
home = Path(settings.LAKEHUB_HOME)
def build(ingested):
    from lakehub.catalog.onboarding.onboard import onboard_dataset
    call_command("flush", interactive=False, verbosity=0)
    factories.data_center("dc1", (home / "lake").as_uri())
    whole = dict.fromkeys(DAYS, 1000)
    for name, rows in (("ops", whole), ("ops2", {**whole, DAYS[1]: 500})):
        factories.connection(name, url=database(home / f"{name}.db", rows))
    dataset = onboard_dataset(replace(AT_OPS, data_centers=("dc1",), copies=(), ingested=ingested), actor="ann", now=NOW).dataset
    if not ingested:
        custom_tests.write_custom_test(dataset, key="many", title="many", expression="rows(this) > 900", actor="ann", now=NOW)
        generate.generate_outdated(now=NOW)
        baseline.start_missing_baselines(now=NOW)
def change():
    change_dataset(Dataset.objects.get(), {"connection": "ops2"}, actor="ann", now=NOW)
"""
CHANGES_SLOWLY = """
with transaction.atomic():
    change()
    (home / "changed").touch()
    time.sleep(4)
print("committed")
"""
LOADS = """
while not (home / "changed").exists():
    time.sleep(0.01)
asked = FakeLauncher()
run_worker.run_next(worker_at(NOW, asked, name=f"host:{os.getpid()}:a"))
print(json.dumps([secret for _, secrets in asked.asked for secret in secrets.values()]))
"""
TESTS = """
while not (home / "changed").exists():
    time.sleep(0.01)
for _ in range(60):
    RUN(NOW)
    time.sleep(0.1)
print(json.dumps(sorted(Unit.objects.filter(test__key="many", start=factories.day(DAYS[1]).start).values_list("latest_outcome", flat=True))))
print(json.dumps(sorted(Result.objects.filter(unit__test__key="many", unit__start=factories.day(DAYS[1]).start).values_list("outcome", flat=True))))
"""


def at_once(home: Path, *scripts: str) -> list[str]:
    """What each printed."""
    started = [processes.start(home, BUILD + script) for script in scripts]
    answers = []
    for process in started:
        out, err = process.communicate(timeout=scaled(120))
        assert process.returncode == 0, err
        answers.append(out.strip())
    return answers


def test_a_job_that_begins_during_a_change_reads_what_is_after_it(tmp_path: Path) -> None:
    said(
        tmp_path,
        BUILD
        + "build(True)\njob_runs.request_run(Dataset.objects.get().copies.get(), 'bootstrap', asked_by='x', now=NOW)",
    )
    committed, asked = at_once(tmp_path, CHANGES_SLOWLY, LOADS)
    assert (committed, json.loads(asked)) == ("committed", [f"sqlite:///{tmp_path / 'ops2.db'}"])


def test_a_change_while_a_job_runs_is_refused(tmp_path: Path) -> None:
    runs = """
class Slow(FakeLauncher):
    def run(self, spec, secrets, lease=None, guidance=None):
        (home / "changed").touch()
        time.sleep(4)
        return super().run(spec, secrets)
asked = Slow()
run_worker.run_next(worker_at(NOW, asked, name=f"host:{os.getpid()}:a"))
print(len(asked.asked))
"""
    changes = """
while not (home / "changed").exists():
    time.sleep(0.01)
try:
    change()
except Conflict as conflict:
    print(conflict)
"""
    said(
        tmp_path,
        BUILD
        + "build(True)\njob_runs.request_run(Dataset.objects.get().copies.get(), 'bootstrap', asked_by='x', now=NOW)",
    )
    ran, refused = at_once(tmp_path, runs, changes)
    assert ran == "1"
    assert "on flights@dc1: a job is at work. Nothing was changed" in refused


def test_tests_that_are_due_during_a_change_read_what_is_after_it(tmp_path: Path) -> None:
    """None of them has run before: they are due, and nobody holds them."""
    said(tmp_path, BUILD + "build(False)")
    _, shown = at_once(tmp_path, CHANGES_SLOWLY, TESTS)
    latest, results = map(json.loads, shown.splitlines())
    assert (latest, set(results)) == (["fail"], {"fail"})


def test_what_is_measured_during_a_change_is_no_result(tmp_path: Path) -> None:
    """It was claimed and read before, and would be stored after."""
    script = """
build(False)
claimed = claims.ClaimQueue("w").claim(now=NOW, limit=500)
change()
stored = tests_worker.execute_claim(claimed, now=NOW)
print(len(claimed.units) > 0, len(stored), Unit.objects.filter(latest_outcome="pass").count())
RUN(NOW)
print(Unit.objects.get(test__key="many", start=factories.day(DAYS[1]).start).latest_outcome)
"""
    assert said(tmp_path, BUILD + script)[0].splitlines() == ["True 0 0", "fail"]
