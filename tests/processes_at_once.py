"""Processes that use one connection or one index cluster at the same time, each with a part of its own: what they held, and when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.polling import scaled
from tests.web.quality import test_worker_kill as processes

Held = tuple[float, float]
"""From when to when, by a clock that all processes share."""

_SETUP = """
call_command("migrate", run_syncdb=True, verbosity=0)
from tests import factories
from lakehub.catalog.models import Connection
for number in range(6):
    dataset = factories.dataset(f"d{{number}}")
    feed = factories.feed(dataset, connection=Connection.objects.filter(name="ops").first())
    factories.run(factories.copy_of(dataset), "bootstrap")
Connection.objects.update(max_connections={places}, rows_per_s={rows})
"""
_BEGIN = """
import os, time, sys
from pathlib import Path
from ingestion.models import JobRun
from ingestion.runs.source_use import source_limits
number = {number}
run = JobRun.objects.select_related("copy__dataset__feed__connection", "copy__data_center").order_by("pk")[number]
begun = Path(os.environ["LAKEHUB_HOME"]) / "begun"
begun.mkdir(exist_ok=True)
(begun / str(number)).touch()
while len([*begun.iterdir()]) < {count}:  # to begin takes longer than all that each does
    time.sleep(0.005)
"""
CAN_BE_TAKEN = """
from tests.polling import wait_until
holders = Path(os.environ["LAKEHUB_HOME"]) / "holders"
holders.mkdir(exist_ok=True)
for _ in range(10):
    while source_limits.take_place(run, f"host:{number}:a") is not None:
        time.sleep(0.005)
    began = time.monotonic()
    (holders / str(number)).touch()
    wait_until(lambda: len([*holders.iterdir()]) >= 2)  # a busy machine may let them hold one after the other
    time.sleep(0.02)
    print(began, time.monotonic())
    source_limits.release_place(run, f"host:{number}:a")
"""
PAYS = """
guidance = source_limits.guidance_of(run)
for piece in range(10):
    began = time.monotonic()
    while not guidance.may_read_on((piece + 1) * 20):
        time.sleep(0.005)
    print(began, time.monotonic())
"""

SETS_UP_JOBS = """
call_command("migrate", run_syncdb=True, verbosity=0)
from tests.index_jobs import cluster, indexed, job
cluster()
copies = [indexed("d0"), indexed("d1")]
for number in range(4):
    job(copies[number % 2], ("backfill", "delete")[number // 2])
"""
TAKES_ALLOWANCES = """
from django.db.models import Sum
from ingestion.domain.index_cluster.fractions import WHOLE
from ingestion.models import IndexAllowance, IndexShare
from ingestion.runs.index_use.allowances import Allowance, take

def check():
    shares = dict(IndexShare.objects.values_list("pk", "fraction"))
    held = dict(IndexAllowance.objects.values_list("share").annotate(parts=Sum("fraction")))
    assert sum(held.values()) <= WHOLE, held
    assert all(parts <= shares[share] for share, parts in held.items()), held

for _ in range(6):
    while not isinstance(allowance := take(run, f"host:{number}:a"), Allowance):
        check()
        time.sleep(0.005)
    began = time.monotonic()
    for _ in range(6):
        check()
        time.sleep(0.01)
        assert allowance.renew()
    print(began, time.monotonic())
    allowance.release()
"""


def run_script(home: Path, script: str) -> None:
    code, shown = processes.run(home, script)
    assert code == 0, shown


def setup(home: Path, places: int | None = None, rows: int | None = None) -> None:
    run_script(home, _SETUP.format(places=places, rows=rows))


def work_at_once(home: Path, script: str, *, count: int) -> list[Held]:
    """What each of so many processes printed."""
    started = [processes.start(home, _BEGIN.format(number=number, count=count) + script) for number in range(count)]
    held: list[Held] = []
    for process in started:
        out, err = process.communicate(timeout=scaled(120))
        assert process.returncode == 0, err
        held += [(float(begin), float(end)) for begin, end in map(str.split, out.splitlines())]
    return held


def overlaps(held: Sequence[Held]) -> list[int]:
    """For each, how many were held as it began, with itself."""
    return [sum(begin <= at < end for begin, end in held) for at, _ in held]
