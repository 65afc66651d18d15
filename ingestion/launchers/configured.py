"""The launcher of this process: one for its life, so that its Spark session is kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from django.conf import settings

from ingestion.launchers import LAUNCHERS, Launcher, LauncherConfig
from ingestion.launchers.shared_or_own import SharedOrOwnSession
from ingestion.spark.contract.guidance import Guidance
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease

OWN_SESSION = "spark_submit"
"""The launcher of jobs that need a session of their own, whichever runs the others."""


def launcher_folder() -> Path:
    """Of specs, reports and logs."""
    return Path(settings.LAKEHUB_HOME) / "jobs"


class DeferredLauncher:
    """The configured one, made for the first job: until then neither its libraries nor a JVM take memory."""

    def run(
        self,
        spec: JobSpec,
        secrets: Mapping[str, str],
        lease: WriteLease | None = None,
        guidance: Guidance | None = None,
    ) -> JobReport:
        return configured_launcher().run(spec, secrets, lease, guidance)

    def progress(self, run_id: str) -> JobProgress | None:
        return configured_launcher().progress(run_id)

    def close(self) -> None:
        if configured_launcher.cache_info().currsize:
            configured_launcher().close()


@cache
def configured_launcher() -> Launcher:
    config = LauncherConfig(
        folder=launcher_folder(),
        master=settings.LAKEHUB_SPARK_MASTER,
        memory=settings.LAKEHUB_SPARK_MEMORY,
        java_home=settings.LAKEHUB_JAVA_HOME or None,
    )
    return SharedOrOwnSession(
        shared=LAUNCHERS.get(settings.LAKEHUB_LAUNCHER)(config), own=LAUNCHERS.get(OWN_SESSION)(config)
    )
