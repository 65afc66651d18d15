"""From requests to answers: what shares a table and a part is one scan, and many parts of one table are one scan too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, cast

from quality.cross_source.run import run_cross_source
from quality.domain.language.measures import Answer, answer_without_rows
from quality.domain.language.values import Failed, error
from quality.engines import run_scan
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition, Part
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.engines.user_sql.user_queries import QUERY_KIND
from quality.measuring.query_budget import UNLIMITED, QueryBudget
from quality.measuring.requests import AnyRequest, MeasureRequest, ScanTable, TwoSidedRequest

MIN_PARTITIONS_FOR_GROUPED_SCAN = 4
"""So many partitions of one table are measured by one scan that groups by partition."""
_UNGROUPABLE = frozenset({"query", "frequencies", "committed"})
"""Measures that are not answered partition by partition."""


@dataclass(frozen=True)
class MeasuredAnswer:
    """One answer; `instant` is the commit that was read, `groups` how many there are in all. `read_at`: it was kept from then."""

    answer: Answer | Failed
    instant: str = ""
    groups: int = 0
    read_at: datetime | None = None


_ScanKey: TypeAlias = tuple[ScanTable, str, int]
"""What one pass over a part may share: the table, the column that it is grouped by, and how many groups."""


def run_requests(
    requests: Iterable[AnyRequest], allowance: QueryBudget = UNLIMITED
) -> dict[AnyRequest, MeasuredAnswer]:
    """An answer for each; what cannot be read, or is not allowed any more, is a Failed among them, never an exception."""
    passes: dict[_ScanKey, list[MeasureRequest]] = defaultdict(list)
    answers: dict[AnyRequest, MeasuredAnswer] = {}
    for request in requests:
        if isinstance(request, TwoSidedRequest):
            answers[request] = _run_two_sided(request, allowance)
        else:
            passes[request.table, request.group_by, request.max_groups].append(request)
    for key, scan_requests in passes.items():
        answers.update(_run_scans(key, scan_requests, allowance))
    return answers


def _run_two_sided(request: TwoSidedRequest, allowance: QueryBudget) -> MeasuredAnswer:
    try:
        limits = Limits(timeout=allowance.take_timeout(request.timeout, [request.measure]))
    except CannotRead as failed:
        return MeasuredAnswer(error(str(failed)))
    answer = run_cross_source(request.measure, request.here, request.there, request.partition, limits)
    return MeasuredAnswer(cast("Answer | Failed", answer))


def _run_scans(
    key: _ScanKey, requests: Sequence[MeasureRequest], allowance: QueryBudget
) -> Iterator[tuple[MeasureRequest, MeasuredAnswer]]:
    table, by, most = key
    parts = _by_part(requests, by)
    for part, sharing in _separate_queries(parts) if allowance.is_bounded else parts:
        measures = tuple(dict.fromkeys(request.measure for request in sharing))
        tables = {name: target for request in sharing for name, target in request.other_tables}
        measured = _run_scan(table, Scan(table.target, measures, part, tables, by, most), allowance)
        yield from ((request, _answer_for(request, part, measured)) for request in sharing)


def _by_part(requests: Sequence[MeasureRequest], by: str) -> Iterator[tuple[Part, list[MeasureRequest]]]:
    """The requests by the part that is scanned for them. Many single partitions are answered by one scan over all of them."""
    parts: dict[Part, list[MeasureRequest]] = defaultdict(list)
    for request in requests:
        parts[request.part].append(request)
    singles: dict[str, list[OnePartition]] = defaultdict(list)
    for part, sharing in parts.items():
        if (
            isinstance(part, OnePartition)
            and not by
            and any(request.measure.kind not in _UNGROUPABLE for request in sharing)
        ):
            singles[part.column].append(part)
    for column, single_parts in singles.items():
        if len(single_parts) >= MIN_PARTITIONS_FOR_GROUPED_SCAN:
            for part in single_parts:
                shared = [request for request in parts[part] if request.measure.kind not in _UNGROUPABLE]
                parts[part] = [request for request in parts[part] if request.measure.kind in _UNGROUPABLE]
                parts[EachPartition(column)] += shared
    yield from ((part, sharing) for part, sharing in parts.items() if sharing)


def _separate_queries(
    parts: Iterable[tuple[Part, list[MeasureRequest]]],
) -> Iterator[tuple[Part, list[MeasureRequest]]]:
    """Each query has a timeout of its own: what is left is looked at before each."""
    for part, sharing in parts:
        yield from ((part, [request]) for request in sharing if request.measure.kind == QUERY_KIND)
        if rest := [request for request in sharing if request.measure.kind != QUERY_KIND]:
            yield part, rest


def _run_scan(table: ScanTable, scan: Scan, allowance: QueryBudget) -> ScanAnswers | CannotRead:
    try:
        return run_scan(table.engine, scan, Limits(timeout=allowance.take_timeout(table.timeout, scan.measures)))
    except CannotRead as failed:
        return failed


def _answer_for(request: MeasureRequest, part: Part, measured: ScanAnswers | CannotRead) -> MeasuredAnswer:
    if isinstance(measured, CannotRead):
        return MeasuredAnswer(error(str(measured)))
    answer = measured.answers[request.measure]
    if part != request.part and isinstance(answer, Mapping) and isinstance(request.part, OnePartition):
        # A partition that no row was written for is absent from a scan over all of them.
        answer = answer[request.part.value] if request.part.value in answer else answer_without_rows(request.measure)
    return MeasuredAnswer(answer, measured.instant, measured.group_count)
