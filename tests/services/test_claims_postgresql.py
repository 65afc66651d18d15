"""Claims on PostgreSQL, where workers really run at once: disjoint, whole, within the slots, and by the indexes."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.polling import scaled
from tests.web.quality import test_worker_kill as processes

FLEET = """
Unit.objects.all().delete()
from django.db import connection
from lakehub.kernel.interval import Interval
from quality.models import Lane
from tests import factories
from tests.factories import DAY
for number in range({datasets}):
    dataset = factories.dataset(f"{{os.getpid()}}-{{number}}", tier=number % 3)
    test = factories.test(dataset, expression="gt(rows(this), 0)", cadence=None)
    copy = test.dataset.copies.get()
    Unit.objects.bulk_create(
        Unit(test=test, copy=copy, start=NOW - (day + 2) * DAY, end=NOW - (day + 1) * DAY, due_at=NOW, resource="{uses}")
        for day in range({units})
    )
"""
CLAIM_ALL = """
from quality.execution import claims
claims.LEASE_DURATION = timedelta(hours=1)  # nothing that is claimed here is run: on a busy machine others would take over
line = claims.ClaimQueue(str(os.getpid()))
while claimed := line.claim(now=NOW, limit=10):
    print(*[unit.pk for unit in claimed.units])
"""
PLANS = """
from ingestion.models import TouchedPartition
from quality.execution import claims
from quality.planning import touched_partitions
from quality.state.reevaluation import reevaluate_due_units
from tests.query_plans import plans_of
from django.db import transaction
copy = Unit.objects.first().copy
commit = factories.commit(copy, NOW)
TouchedPartition.objects.create(commit=commit, copy=copy, start=NOW - 3 * DAY, end=NOW - 2 * DAY, rows=1)
connection.cursor().execute("ANALYZE")
meeting = Unit.objects.filter(copy=copy, start__lt=NOW - 2 * DAY, end__gt=NOW - 3 * DAY)
for name, code in {
    "claim": lambda: claims.claim_due_units(now=NOW, worker="a"),
    "judge": lambda: reevaluate_due_units(now=NOW),
    "touched": lambda: touched_partitions.claim_touched_partitions(now=NOW),
    "overlap": lambda: list(meeting),
}.items():
    with transaction.atomic():
        print(name, " ".join(plan.replace("\\n", " ") for plan in plans_of(code)))
"""

WRITTEN_BY_C = """
import json
from quality.models import CachedMeasurement
from tests.web.quality.conftest import rows
from tests import hudi_tables
from quality.generation import custom_tests
call_command("flush", interactive=False, verbosity=0)  # what the tests before left
world = build_world(Path(settings.LAKEHUB_HOME))
named = rows("2026-11-16", 100, first=5000).set_column(2, "tailnum", [["N1\\x00"] * 100])
hudi_tables.commit(world.table(), {"2026-11-16": named}, column="flight_date", instant="20261117120000000")
for key, text in {"seen": "unexpected(this.tailnum, 'N1') == 0", "by": "rows(this) > 5000 with by=tailnum"}.items():
    custom_tests.write_custom_test(world.flights, key=key, title=key, expression=text, actor="ann", now=NOW)
world.monitored()
assert any("N1" in json.dumps(row.answer) for row in CachedMeasurement.objects.all())
units = Unit.objects.filter(test__key="by", copy=world.copy("dc1"), latest_at__isnull=False)
print(json.dumps(units.filter(latest_outcome="fail").latest("start").detail["groups"]["failing"][0]["name"]))
print(Unit.objects.filter(latest_outcome="error").count(), Unit.objects.exclude(leased_by="").count())
"""


@pytest.fixture(scope="module")
def server(postgresql_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A new, migrated database."""
    name = f"scheduling_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgresql_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        url = f"{postgresql_url.rpartition('/')[0]}/{name}"
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("LAKEHUB_DATABASE_URL", url)
            patched.setenv("LAKEHUB_TEST_MIGRATIONS", "1")
            said(tmp_path_factory.mktemp("home"), 'call_command("migrate", verbosity=0)')
        yield url
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@pytest.fixture
def database(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the processes of a test use. The units of the test before are still there."""
    monkeypatch.setenv("LAKEHUB_DATABASE_URL", server)


def said(home: Path, script: str, count: int = 1) -> list[str]:
    """What each of so many processes printed that ran the script at once."""
    started = [processes.start(home, script) for _ in range(count)]
    answers = []
    for process in started:
        out, err = process.communicate(timeout=scaled(120))
        assert process.returncode == 0, err
        answers.append(out.strip())
    return answers


@pytest.mark.usefixtures("database")
def test_what_a_killed_worker_had_is_run_once_by_the_others(tmp_path: Path) -> None:
    assert processes.run(tmp_path, processes.BUILD) == (0, "")
    assert processes.run(tmp_path, processes.RUN, failpoint="quality.before_result")[0] == -signal.SIGKILL
    said(tmp_path, processes.LEASES_RUN_OUT + processes.RUN, count=2)
    (shown,) = said(tmp_path, processes.SHOW)
    results, twice, leased, due = map(int, shown.split())
    assert (twice, leased, due) == (0, 0, 0)
    assert results == int(said(tmp_path, "print(Unit.objects.filter(latest_at=NOW + MINUTE).count())")[0])


@pytest.mark.usefixtures("database")
def test_workers_at_once_claim_everything_once(tmp_path: Path) -> None:
    said(tmp_path, FLEET.format(datasets=12, units=40, uses="duckdb"))
    claimed = [[int(pk) for pk in answer.split()] for answer in said(tmp_path, CLAIM_ALL, count=3)]
    assert sum(map(len, claimed)) == len(set().union(*claimed)) == 480


@pytest.mark.usefixtures("database")
def test_of_workers_at_once_as_many_use_an_engine_as_it_has_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHUB_ENGINE_LIMITS", "spark=2")
    said(tmp_path, FLEET.format(datasets=8, units=3, uses="spark"))
    claims = [line for answer in said(tmp_path, CLAIM_ALL, count=3) for line in answer.splitlines()]
    assert len(claims) == 2


@pytest.mark.usefixtures("database")
def test_a_unit_that_another_has_locked_is_left_and_the_rest_of_its_copy_claimed(tmp_path: Path, server: str) -> None:
    """So do workers that look at a copy at once: they may share its units, and each is claimed once."""
    said(tmp_path, FLEET.format(datasets=1, units=3, uses="duckdb"))
    with psycopg.connect(server) as other:
        other.execute("SELECT id FROM quality_unit ORDER BY id LIMIT 1 FOR UPDATE")
        (claim,) = said(tmp_path, CLAIM_ALL)
    assert len(claim.split()) == 2


@pytest.mark.usefixtures("database")
def test_the_queries_of_the_schedule_use_their_indexes(tmp_path: Path) -> None:
    (shown,) = said(tmp_path, FLEET.format(datasets=10, units=400, uses="duckdb") + PLANS)
    plans = dict(line.split(" ", 1) for line in shown.splitlines())
    used = {"claim": "unit_due", "judge": "unit_judge", "touched": "touched_unclaimed", "overlap": "unit_overlap"}
    assert {name: plans[name] for name, index in used.items() if index not in plans[name]} == {}
    assert "Seq Scan on quality_unit" not in " ".join(plans.values())


@pytest.mark.usefixtures("database")
def test_texts_with_a_nul_are_stored_with_what_they_say_written_out(tmp_path: Path) -> None:
    names, counts = said(tmp_path, WRITTEN_BY_C)[0].splitlines()
    assert names == r'"N1\\x00"'
    assert counts == "0 0"
