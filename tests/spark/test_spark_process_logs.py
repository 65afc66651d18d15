"""A job in a process of its own logs in the instance's format, with the run's id."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from ingestion.spark import __main__ as process
from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.contract.spec import JobSpec, TableSpec
from tests.json_log import json_log

SPEC = JobSpec(
    run_id="run-1",
    kind="drop",
    table=TableSpec("flights", "file:///lake/flights", "file:///lake/_errors/flights", ("id",)),
)


def test_its_lines_carry_the_run_and_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(spec: JobSpec, **_: Any) -> JobReport:
        logging.getLogger("ingestion.spark").warning("slow\nvery")
        return JobReport(run_id=spec.run_id, status=SUCCEEDED)

    configured: list[bool] = []
    monkeypatch.setattr(process, "configure_logging", lambda: configured.append(True))
    monkeypatch.setattr(process, "open_session", lambda name: None)
    monkeypatch.setattr(process, "execute", execute)
    (tmp_path / "spec.json").write_text(SPEC.to_json())
    with json_log() as lines:
        assert process.main([str(tmp_path / "spec.json"), str(tmp_path / "report.json")]) == 0
    (line,) = (line for line in lines if line["logger"] == "ingestion.spark")
    assert (line["run_id"], line["table"], line["message"]) == ("run-1", "file:///lake/flights", "slow\nvery")
    assert configured == [True]
