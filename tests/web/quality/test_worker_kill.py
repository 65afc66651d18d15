"""Workers that are killed or race each other, in processes of their own on a database of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.polling import scaled

PRELUDE = """
import os
import django
django.setup()
from datetime import timedelta
from pathlib import Path
from django.conf import settings
from django.core.management import call_command
from django.db.models import Count
from django.db.models.functions import Now
from quality.execution import worker
from quality.models import ConcurrencySlot, Flip, Result, Unit
from tests.factories import MINUTE, NOW
from tests.web.quality.conftest import build_world
RUN = lambda at: worker.run_due_units(now=at, worker=str(os.getpid()), most=100)
"""
BUILD = """
call_command("migrate", run_syncdb=True, verbosity=0)
world = build_world(Path(settings.LAKEHUB_HOME))
world.monitored()
Result.objects.all().delete()
Flip.objects.all().delete()
Unit.objects.filter(latest_at__isnull=False).update(due_at=NOW + MINUTE)
"""
LEASES_RUN_OUT = """
for leased in (Unit, ConcurrencySlot):  # on a busy machine the killed one had a slot of the slow sources
    leased.objects.exclude(leased_until=None).update(leased_until=Now() - timedelta(seconds=1))
"""
RUN = "RUN(NOW + MINUTE)\n"
SHOW = """
twice = Result.objects.values("unit", "read_at").annotate(n=Count("pk")).filter(n__gt=1).count()
print(Result.objects.count(), twice, Unit.objects.exclude(leased_by="").count(), Unit.objects.filter(due_at__lte=NOW + MINUTE).count())
"""
RAN = "print(Unit.objects.filter(latest_at=NOW + MINUTE).count())\n"


def start(home: Path, script: str, failpoint: str = "") -> subprocess.Popen[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "LAKEHUB_FAILPOINT"},
        "LAKEHUB_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        **({"LAKEHUB_FAILPOINT": failpoint} if failpoint else {}),
    }
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(home: Path, script: str, failpoint: str = "") -> tuple[int, str]:
    """The exit code and what was printed, or the error."""
    process = start(home, script, failpoint)
    out, err = process.communicate(timeout=scaled(120))
    return process.returncode, out.strip() or err[-2000:]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An instance with tests that are due; each test takes a copy."""
    home = tmp_path_factory.mktemp("built")
    code, shown = run(home, BUILD)
    assert code == 0, shown
    return home


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "home"))


@pytest.mark.slow
def test_a_worker_killed_before_it_stored_loses_nothing_and_doubles_nothing(home: Path) -> None:
    assert run(home, RUN, failpoint="quality.before_result")[0] == -signal.SIGKILL
    # What the killed one had claimed is left alone while its lease lasts.
    code, shown = run(home, SHOW + LEASES_RUN_OUT + RUN + SHOW + RAN)
    assert code == 0, shown
    before, after, ran = (list(map(int, line.split())) for line in shown.splitlines())
    results, _, leased, due = before
    assert results == 0
    assert 0 < leased < due
    results, twice, leased, due = after
    assert (twice, leased, due) == (0, 0, 0)
    assert [results] == ran


@pytest.mark.slow
def test_workers_that_race_run_everything_once(home: Path) -> None:
    racers = [start(home, RUN) for _ in range(3)]
    for racer in racers:
        _, err = racer.communicate(timeout=scaled(120))
        assert racer.returncode == 0, err
    _, twice, leased, due = map(int, run(home, SHOW)[1].split())
    assert (twice, leased, due) == (0, 0, 0)
