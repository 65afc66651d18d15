"""Lakehub itself, by the path that production takes: tests are asked for, claimed, measured, evaluated; results and verdicts are stored.

ENGINE is duckdb (the Hudi table in the lake), files (DuckDB over plain Parquet) or spark (the Hudi table). The database is
a new SQLite file; LAKEHUB_HOME says where. Results of unchanged data are not used again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import django

from bench.contenders.common import CheckResults, Task, run_contender
from bench.suite import KEY, Check
from lakehub.instance import prepare_instance

COLUMNS = (*KEY, "tailnum", "dest", "dep_delay", "arr_delay", "air_time", "distance")
RATIOS = ("null_share", "duplicates")


def expression(check: Check, engine: str) -> str:
    """The test as a person would write it."""
    bound = (
        f"{check.bound * 100:g}%"
        if check.kind in RATIOS
        else f"{check.bound:g}"
        if check.bound < 1e6
        else f"{check.bound:.0f}"
    )
    return f"{_left_side(check)} {check.op} {bound} with cadence=1h" + (", engine=spark" if engine == "spark" else "")


def _left_side(check: Check) -> str:
    if check.kind in ("rows", "duplicates"):
        return f"{check.kind}(this)"
    if check.kind == "distinct":
        return f"distinct(this, {check.column})"
    more = {
        "outside": f", {check.low}, {check.high}",
        "mismatched": f", '{check.pattern}'",
        "unexpected": "".join(f", '{value}'" for value in check.values),
    }
    return f"{check.kind}(this.{check.column}{more.get(check.kind, '')})"


def prepare(task: Task) -> Callable[[], CheckResults]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakehub.settings")
    prepare_instance()
    django.setup()
    from django.core.management import call_command

    from lakehub.kernel.interval import EVERYTHING
    from lakehub.kernel.outcome import Outcome
    from quality.execution import worker
    from quality.models import Unit
    from quality.planning import run_requests

    call_command("migrate", verbosity=0)
    dataset = _dataset(task)

    def once() -> CheckResults:
        now = datetime.now(UTC)
        run_requests.request_tests(dataset, tests=(), data_center="", over=EVERYTHING, actor="bench", now=now)
        worker.run_due_units(now=now, worker="bench")
        units = {unit.test.title: unit for unit in Unit.objects.filter(latest_at__gte=now).select_related("test")}
        for unit in units.values():
            if unit.latest_outcome not in (Outcome.PASS, Outcome.FAIL):
                raise RuntimeError(f"{unit.test.title} ended as {unit.latest_outcome}: {unit.detail}")
        return {check.name: _check_result(units[check.name]) for check in task.checks}

    return once


def _dataset(task: Task) -> Any:
    """The flights with the 20 tests, each written as a person's."""
    from quality.generation.custom_tests import write_custom_test
    from tests import factories

    columns = [{"name": name, "type": "any", "nullable": True} for name in COLUMNS]
    now = datetime.now(UTC)
    dataset = factories.dataset(
        "flights", by_day=False, primary_key=list(KEY), columns=columns, copies=(), ingested=False
    )
    factories.copy(dataset, uri=(task.folder / "lake").resolve().as_uri())
    if task.engine == "files":
        connection = factories.connection("files", url=str((task.folder / "plain").resolve()), plugin="files")
        factories.feed(dataset, connection=connection, object="*.parquet")
    else:
        connection = factories.connection("lake", url=task.folder.resolve().as_uri(), plugin="hudi")
        factories.feed(dataset, connection=connection, object="lake")
    for number, check in enumerate(task.checks):
        text = expression(check, task.engine)
        write_custom_test(dataset, key=f"check-{number}", title=check.name, expression=text, actor="bench", now=now)
    return dataset


def _check_result(unit: Any) -> tuple[bool, float | None]:
    return unit.latest_outcome == "pass", unit.observed


if __name__ == "__main__":
    from importlib.metadata import version

    sys.exit(run_contender(f"duckdb {version('duckdb')}", prepare))
