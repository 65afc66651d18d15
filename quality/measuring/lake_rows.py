"""How many records a table in the lake holds: the port `ingestion.RowsInLake`."""

from __future__ import annotations

from lakehub.catalog.metadata.tables import HudiCopy
from quality.domain.language.measures import ROWS
from quality.domain.language.values import Failed
from quality.engines import engine_for, run_scan
from quality.engines.scans.parts import CannotRead, WholeTable
from quality.engines.scans.scan import Limits, Scan


def rows_in_lake(uri: str) -> int:
    """Raises ValueError."""
    target = HudiCopy(uri)
    try:
        answer = run_scan(engine_for(target), Scan(target, (ROWS,), WholeTable()), Limits()).answers[ROWS]
    except CannotRead as problem:
        raise ValueError(str(problem)) from problem
    if isinstance(answer, Failed) or not isinstance(answer, int):
        raise ValueError(str(answer.cause) if isinstance(answer, Failed) else f"{answer!r} is no number of rows")
    return answer
