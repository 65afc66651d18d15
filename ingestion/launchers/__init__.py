"""Launchers: where a job runs. The spec goes in, the report comes out; what goes wrong is a report that says so.

To add one (YARN's cluster mode, a Kubernetes operator): a module here with a class that takes a LauncherConfig and has the methods of `Launcher`; a line in LAUNCHERS;
a row in tests/contracts/test_launchers.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ingestion.spark.contract.guidance import Guidance
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease
from lakehub.kernel.registry import Registry


@dataclass(frozen=True)
class LauncherConfig:
    """`folder`: for specs, reports and logs. `java_home` and `jar` None: found by the session. A warm session is renewed after `max_jobs`, or above `max_mb` of memory."""

    folder: Path
    master: str = "local[2]"
    memory: str = "1g"
    java_home: str | None = None
    jar: str | None = None
    max_jobs: int = 500
    max_mb: int = 3000


class Launcher(Protocol):
    def run(
        self,
        spec: JobSpec,
        secrets: Mapping[str, str],
        lease: WriteLease | None = None,
        guidance: Guidance | None = None,
    ) -> JobReport:
        """Run the job to its end, at most `spec.deadline_s` long. `secrets` are the values that the spec refers to by name.

        `lease`, if any, is acquired before the job writes and released in every end: also where the job dies.
        `guidance`, if any, is asked while the job is at work: whether it is to stop after its commit, and whether it may read on.
        """

    def progress(self, run_id: str) -> JobProgress | None:
        """How far the job of `run` is, asked from another thread while it runs; None where that is not known. May raise."""

    def close(self) -> None:
        """End what was kept for the next job."""


LAUNCHERS: Registry[Callable[[LauncherConfig], Launcher]] = Registry(
    "launcher",
    {
        "warm": "ingestion.launchers.warm:WarmLauncher",
        "spark_submit": "ingestion.launchers.spark_submit:SparkSubmitLauncher",
    },
)
