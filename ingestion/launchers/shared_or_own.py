"""Which of two launchers runs a job: the one with the session that all share, or one that gives it a session of its own."""

from __future__ import annotations

from collections.abc import Mapping

from ingestion.launchers import Launcher
from ingestion.spark.contract.guidance import Guidance
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease


class SharedOrOwnSession:
    """`shared` has one session of one size. A job that asks for another, or brings code into its JVM, is run by `own`, which gives it a process that ends with it."""

    def __init__(self, shared: Launcher, own: Launcher) -> None:
        self._shared, self._own = shared, own
        self._at_work = shared

    def run(
        self,
        spec: JobSpec,
        secrets: Mapping[str, str],
        lease: WriteLease | None = None,
        guidance: Guidance | None = None,
    ) -> JobReport:
        self._at_work = self._own if spec.needs_own_session else self._shared
        return self._at_work.run(spec, secrets, lease, guidance)

    def progress(self, run_id: str) -> JobProgress | None:
        return self._at_work.progress(run_id)

    def close(self) -> None:
        self._shared.close()
        self._own.close()
