"""`python -m ingestion.spark spec.json report.json`, or the main file of spark-submit. Exit code 0 unless the job failed."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from ingestion.spark.contract.report import FAILED, JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.execute import execute
from ingestion.spark.session import open_session

USAGE = "usage: python -m ingestion.spark spec.json report.json"


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(USAGE, file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    spec_path, report_path = map(Path, arguments)
    try:
        spec = JobSpec.from_file(spec_path)
    except (OSError, ValueError) as problem:
        JobReport(run_id="", status=FAILED, error=f"{type(problem).__name__}: {problem}").write(report_path)
        print(problem, file=sys.stderr)
        return 1
    report = execute(spec, spark=open_session(spec.run_id), secrets=os.environ)
    report.write(report_path)
    print(f"{report.status}: {report.counts}{f' {report.error}' if report.error else ''}", file=sys.stderr)
    return 1 if report.status == FAILED else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
