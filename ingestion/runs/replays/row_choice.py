"""Asking for rejected rows to be tried again: which rows, with which values, and what is refused before a job starts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from ingestion.models import JobKind, JobRun, ReplayRequest
from ingestion.runs import job_runs
from ingestion.runs.job_specs import chosen_keys
from ingestion.runs.replays.values import check_values
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused

MAX_ROWS = 200
"""That are named one by one."""
_MAX_SHOWN = 100
_ERROR_KEY = re.compile(r"[0-9a-f]{64}-[0-9]{1,12}")


@dataclass(frozen=True)
class RowChoice:
    """Rows by `error_key`, each with its own values, or all open rows of a column and kind of reason. `values`: for rows without their own."""

    fixes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    column: str = ""
    kind: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: Sequence[Mapping[str, Any]] = (),
        column: str = "",
        kind: str = "",
        values: Mapping[str, Any] | None = None,
    ) -> Self:
        """Raises Refused for a row that is named twice."""
        fixes = {row["error_key"]: row["values"] for row in rows}
        if len(fixes) < len(rows):
            raise Refused.for_fields({"rows": "A row is named twice: name each once."})
        return cls(fixes, column, kind, values or {})


def request_replay(copy: DatasetCopy, choice: RowChoice, *, asked_by: str, now: datetime) -> JobRun:
    """Queue a run of the kind `replay`. Raises Refused for what makes no sense, and Busy."""
    _check_choice(choice)
    for values in (*choice.fixes.values(), choice.values):
        check_values(copy.dataset, values)
    replay = ReplayRequest(
        keys=list(choice.fixes),
        column=choice.column,
        reason_kind=choice.kind,
        fixes={key: values for key, values in choice.fixes.items() if values},
        values=choice.values,
    )
    rows = chosen_keys(copy, replay)
    _check_rows(choice, rows)
    return job_runs.request_run(copy, JobKind.REPLAY, {"rows": len(rows)}, asked_by=asked_by, now=now, replay=replay)


def _check_choice(choice: RowChoice) -> None:
    if bool(choice.fixes) == bool(choice.kind):
        raise Refused.for_fields(
            {"rows": "Name `rows`, or `kind` and `column` of a group of the counts: one of the two."}
        )
    if len(choice.fixes) > MAX_ROWS:
        raise Refused.for_fields({"rows": f"These are {len(choice.fixes)} rows: name {MAX_ROWS} at most, or a `kind`."})
    for key in choice.fixes:
        if not _ERROR_KEY.fullmatch(key):
            raise Refused.for_fields(
                {"rows": f"`{key[:_MAX_SHOWN]}` is not an `error_key`. The list of rejected rows has them."}
            )


def _check_rows(choice: RowChoice, rows: Sequence[str]) -> None:
    if not rows and choice.kind:
        shown = choice.kind[:_MAX_SHOWN]
        raise Refused.for_fields(
            {
                "kind": f"No open row is rejected by `{choice.column[:_MAX_SHOWN]}` as `{shown}`. The counts list the kinds."
            }
        )
    gone = choice.fixes.keys() - set(rows)
    if gone:
        raise Refused.for_fields(
            {
                "rows": f"{len(gone)} of the rows are not in the error table, or resolved already, such as `{min(gone)}`. Leave them out."
            }
        )
