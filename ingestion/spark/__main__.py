"""`python -m ingestion.spark spec.json report.json [secrets [lease]]`, or the main file of spark-submit. Exit code 0 unless the job failed.

`secrets` is a named pipe with the values that the spec refers to by name (`contract.secrets`); without it they are variables of the
environment. `lease` is the folder in which the launcher grants the copy's lease (`contract.write_lease`); without it nobody is asked.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from structlog.contextvars import bound_contextvars

from ingestion.spark.contract.guidance import GuidanceByFiles
from ingestion.spark.contract.progress import FILE_NAME
from ingestion.spark.contract.report import FAILED, JobReport
from ingestion.spark.contract.secrets import read_secrets, wait_for_end_of_offer
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import LeaseByFiles
from ingestion.spark.execute import execute
from ingestion.spark.job import Job
from ingestion.spark.session import open_session
from lakehub.logs import configure_logging

USAGE = "usage: python -m ingestion.spark spec.json report.json [secrets [lease]]"

PROGRESS_INTERVAL_S = 2


class ProgressTeller:
    """Writes how far a job is into a file, again and again, until it is stopped."""

    def __init__(self, path: Path) -> None:
        self._path, self._ended = path, Event()

    def start(self, job: Job) -> None:
        Thread(target=self._tell, args=(job,), daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def _tell(self, job: Job) -> None:
        while not self._ended.wait(PROGRESS_INTERVAL_S):
            with suppress(Exception):  # it never costs the job anything
                job.progress().write(self._path)


def _end_with_launcher(secrets_path: Path) -> None:
    """A launcher that is killed stops nothing that it has started."""
    wait_for_end_of_offer(secrets_path)
    with suppress(OSError):
        print("The process that launched this job has ended, and the job ends with it.", file=sys.stderr, flush=True)
    if "PYSPARK_GATEWAY_PORT" in os.environ and os.getpgrp() == os.getppid():
        os.killpg(
            os.getpgrp(), signal.SIGKILL
        )  # with the JVM of spark-submit: it leads the group that the launcher has made
    os._exit(1)


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3, 4):
        print(USAGE, file=sys.stderr)
        return 2
    configure_logging()
    spec_path, report_path, *others = map(Path, arguments)
    secrets_path, lease_folder = others[:1], others[1:]
    try:
        spec = JobSpec.from_file(spec_path)
        secrets = read_secrets(secrets_path[0]) if secrets_path else os.environ
    except (OSError, ValueError) as problem:
        JobReport(run_id="", status=FAILED, error=f"{type(problem).__name__}: {problem}").write(report_path)
        print(problem, file=sys.stderr)
        return 1
    if secrets_path:
        Thread(target=_end_with_launcher, args=(secrets_path[0],), daemon=True).start()
    with bound_contextvars(run_id=spec.run_id, table=spec.table.uri):
        tell = ProgressTeller(report_path.with_name(FILE_NAME))
        lease = LeaseByFiles(lease_folder[0]) if lease_folder else None
        guidance = GuidanceByFiles(lease_folder[0]) if lease_folder else None
        spark = open_session(spec.run_id)
        report = execute(spec, spark=spark, secrets=secrets, on_start=tell.start, lease=lease, guidance=guidance)
        tell.stop()
    report.write(report_path)
    print(f"{report.status}: {report.counts}{f' {report.error}' if report.error else ''}", file=sys.stderr)
    return 1 if report.status == FAILED else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
