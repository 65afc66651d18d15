"""Jobs in processes of their own, which can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from ingestion.spark.contract.spec import JobSpec
from tests import polling
from tests.polling import scaled

PROJECT = Path(__file__).resolve().parents[2]
WITHIN_S = 120


class Startable(Protocol):
    """Something with jobs, such as `tests.spark.order_shop.Orders`."""

    folder: Path

    @property
    def secrets(self) -> dict[str, str]: ...

    def spec(self, kind: str, run: str, **fields: Any) -> JobSpec: ...


def start(
    orders: Startable,
    kind: str,
    run: str,
    *,
    command: list[str] | None = None,
    more: Sequence[str] = (),
    failpoint: str = "",
    **fields: Any,
) -> subprocess.Popen[bytes]:
    """`python -m ingestion.spark` on a spec, with `more` arguments; where it dies is said by `failpoint`."""
    spec, report = orders.folder / f"{run}.json", orders.folder / f"{run}.report.json"
    spec.write_text(orders.spec(kind, run, **fields).to_json())
    environment = os.environ | orders.secrets | ({"LAKEHUB_FAILPOINT": failpoint} if failpoint else {})
    arguments = [sys.executable, *(command or ["-m", "ingestion.spark"]), str(spec), str(report), *more]
    with (orders.folder / f"{run}.log").open("wb") as log:
        return subprocess.Popen(
            arguments, cwd=PROJECT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )


def died_at(orders: Startable, kind: str, run: str, failpoint: str, **fields: Any) -> None:
    """Run the job until it kills itself at `failpoint`."""
    process = start(orders, kind, run, failpoint=failpoint, **fields)
    assert process.wait(scaled(WITHIN_S)) == -signal.SIGKILL, (orders.folder / f"{run}.log").read_text()[-3000:]


def wait_until(what: str, holds: Callable[[], bool], within_s: float = WITHIN_S) -> None:
    polling.wait_until(holds, within_s=within_s, otherwise=lambda: f"Waited for {what}.")
