"""A result stays small however wide the rows are that it names."""

from __future__ import annotations

import json

from lakehub.kernel.outcome import Outcome
from quality.domain.evaluation.evaluate import Evaluation
from quality.domain.named_records import MAX_BYTES
from quality.execution.store import result_detail


def test_a_result_with_wide_changed_rows_stays_small() -> None:
    """200 changed rows of 50 columns were 1.7 MB: with the unit, each of its results and its incident."""
    columns = {f"column{column}": ["x" * 80, "y" * 80] for column in range(50)}
    differences = [{"kind": "changed", "key": {"id": str(number)}, "columns": columns} for number in range(200)]
    answer = {"keys": 200, "differing": 200, "differences": differences, "report": {"changed": 200}}
    detail = result_detail(Evaluation(Outcome.FAIL, "", naming_answer=answer), None)
    assert 3 < len(detail["differences"]) < 200
    assert detail["bloom"] == {"changed": 200}
    assert len(json.dumps(detail, ensure_ascii=False).encode()) < MAX_BYTES + 2_000
