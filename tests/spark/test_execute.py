"""Whatever goes wrong in a job is told by its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ingestion.spark import core_seconds
from ingestion.spark.execute import execute
from ingestion.spark.tables import fence
from tests.spark.order_shop import Orders


@pytest.mark.parametrize("problem", [OSError("No space left on device"), ImportError("no codec"), AssertionError("a")])
def test_a_problem_that_nobody_expects_is_a_report_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr(fence, "hold_fence", fails)
    report = execute(Orders(tmp_path).spec("bootstrap", "b"), spark=Mock(), secrets={})
    assert (report.status, report.error) == ("failed", f"{type(problem).__name__}: {problem}")


def test_a_job_whose_cost_cannot_be_read_is_reported_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(root: int) -> None:
        raise ValueError(f"process {root}")

    monkeypatch.setattr(core_seconds, "tree_of", fails)
    orders = Orders(tmp_path)
    report = execute(orders.spec("bootstrap", "b"), spark=Mock(), secrets={})
    assert (report.run_id, report.core_s) == ("b", None)
    assert "The core-seconds of a job could not be read" in caplog.text
