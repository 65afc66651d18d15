"""Some of the rows that break a test: read when it fails, kept while it does.

Only keys and the columns that the test is about are read, at most 100 rows a measure and 64 KB a unit, texts cut.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from lakehub.catalog.models import Dataset
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.interval import Interval
from quality.domain.language import Expression
from quality.domain.language.measures import Ask, Measure
from quality.domain.language.values import Failed
from quality.domain.measurement_codec import storable_json
from quality.domain.parsed import parsed
from quality.engines.scans.parts import CannotRead
from quality.execution.evaluate import Execution, row_asks
from quality.measuring.requests import MeasuredAnswer, MeasureRequest, build_request
from quality.measuring.scan_planner import QueryBudget, run_requests
from quality.measuring.table_bindings import TableBindings
from quality.models import FailingRows, Result

MAX_SHOWN_COLUMNS = 20
MAX_MEASURES = 5
"""Of one test."""
MAX_BYTES = 64 * 1024
"""Of the rows of one unit, as JSON."""
MAX_UNITS = 20
"""Of one claim; a day on which everything fails shows rows of some."""
READ_AGAIN_AFTER = timedelta(hours=1)
"""A rerun that observes the same as before shows the same rows for so long."""
BUDGET = timedelta(seconds=30)
"""For all units of one claim: their results wait for it."""


@dataclass(frozen=True)
class RowSample:
    """Rows that one measure counts, as texts and nulls. `why`: they could not be read."""

    measure: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str | None]] = ()
    why: str = ""


def read_failing_rows(runs: Sequence[Execution], *, now: datetime) -> dict[int, list[RowSample]]:
    """Samples by the id of the unit; of those whose rows were read a while ago and that observe the same as then, none."""
    known = _recently_read(runs, now=now)
    wanted = [run for run in runs if known.get(run.unit.pk) != _observed(run.evaluation.observed_text)][:MAX_UNITS]
    if not wanted:
        return {}
    samples = {run.unit.pk: _named_already(run) for run in wanted if (run.evaluation.naming_answer or {}).get("rows")}
    wanted = [run for run in wanted if run.unit.pk not in samples]
    if not wanted:
        return samples
    with log_and_continue("reading rows that fail"):
        requests = _requests(wanted, now=now)
        answers = run_requests(
            (request for of_unit in requests.values() for request in of_unit.values()), QueryBudget(BUDGET)
        )
        for pk, of_unit in requests.items():
            samples[pk] = _within_bytes([_sample(measure, answers[request]) for measure, request in of_unit.items()])
    return samples


def keep_failing_rows(results: Sequence[Result], samples: Mapping[int, list[RowSample]]) -> None:
    """The newest of each unit; one whose lease was lost has no result, and keeps what it had."""
    with log_and_continue("keeping rows that fail"):
        FailingRows.objects.bulk_create(
            [
                FailingRows(
                    unit_id=result.unit_id,
                    result=result,
                    read_at=result.read_at,
                    observed=_observed(result.detail.get("observed")),
                    samples=[storable_json(vars(sample)) for sample in samples[result.unit_id]],
                )
                for result in results
                if result.unit_id in samples
            ],
            update_conflicts=True,
            unique_fields=["unit"],
            update_fields=["result", "read_at", "observed", "samples"],
        )


def _named_already(run: Execution) -> list[RowSample]:
    """By the measure itself: to look for them again takes as long as it took."""
    answer: Any = run.evaluation.naming_answer or {}
    return _within_bytes([RowSample("across_partitions", answer["columns"], answer["rows"])])


def _recently_read(runs: Sequence[Execution], *, now: datetime) -> dict[int, str]:
    rows = FailingRows.objects.filter(unit__in=[run.unit.pk for run in runs], read_at__gt=now - READ_AGAIN_AFTER)
    return dict(rows.values_list("unit_id", "observed"))


def _observed(text: str | None) -> str:
    return (text or "")[:60]


def _requests(runs: Sequence[Execution], *, now: datetime) -> dict[int, dict[Measure, MeasureRequest]]:
    places = TableBindings(runs[0].unit.copy)
    requests: dict[int, dict[Measure, MeasureRequest]] = {}
    for run in runs:
        assert run.unit.test.version is not None
        expression, tested = parsed(run.unit.test.version.flattened), Interval(run.unit.start, run.unit.end)
        asks = list(row_asks(run.unit))[:MAX_MEASURES]
        requests[run.unit.pk] = {
            ask.measure: request
            for ask in asks
            if (request := _request(expression, ask, tested, places, run.unit.test.dataset, now)) is not None
        }
    return requests


def _request(
    expression: Expression, ask: Ask, tested: Interval, places: TableBindings, dataset: Dataset, now: datetime
) -> MeasureRequest | None:
    """The tested columns, after the key and the group: a key of hundreds of columns is cut."""
    tested_columns = ask.measure.columns[:MAX_SHOWN_COLUMNS]
    by = [expression.parameters.by] if expression.parameters.by is not None else []
    others = [name for name in (*dataset.primary_key, *by) if name not in tested_columns]
    shown = (*dict.fromkeys(others[: MAX_SHOWN_COLUMNS - len(tested_columns)]), *tested_columns)
    listing = replace(ask, measure=replace(ask.measure, shown=shown))
    try:
        request = build_request(expression, listing, tested, places, now=now)
    except CannotRead:
        return None
    return replace(request, group_by="", copy=None) if isinstance(request, MeasureRequest) else None


def _sample(measure: Measure, measured: MeasuredAnswer) -> RowSample:
    answer: Any = measured.answer
    if isinstance(answer, Failed):
        return RowSample(str(measure), why=answer.cause)
    if not isinstance(answer, Mapping) or not answer:
        return RowSample(str(measure))
    return RowSample(str(measure), answer["columns"], answer["rows"])


def _within_bytes(samples: Sequence[RowSample]) -> list[RowSample]:
    left, kept = MAX_BYTES, []
    for sample in samples:
        rows = []
        for row in sample.rows:
            left -= len(json.dumps(row, ensure_ascii=False).encode())
            if left < 0:
                break
            rows.append(row)
        kept.append(replace(sample, rows=rows))
    return kept
