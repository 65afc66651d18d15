"""From requests to answers: what shares a table and a part is one scan, and many parts of one table are one scan too.

What one caller may take of the engines is bounded by a budget.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TypeAlias, TypeGuard, cast

from django.conf import settings

from lakehub.kernel.partitions import Grain, is_later_of_two_hours, parse_partition_name
from quality.cross_source.run import run_cross_source
from quality.domain.language.measures import Answer, Measure, answer_without_rows
from quality.domain.language.name_resolution import MAX_GROUPS
from quality.domain.language.values import Failed, error
from quality.engines import run_scan
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition, Part
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.measuring.requests import AnyRequest, MeasuredAnswer, MeasureRequest, ScanTable, TwoSidedRequest

MIN_PARTITIONS_FOR_GROUPED_SCAN = 4
"""So many partitions of one table are measured by one scan that groups by partition."""
_UNGROUPABLE = frozenset({"query", "frequencies", "committed"})
"""Measures that are not answered partition by partition."""


MIN_TIMEOUT = timedelta(seconds=1)
"""Databases take less than a millisecond for no timeout at all."""


class QueryBudget:
    """So long on the clock, and so many queries of people, which run by themselves each. None: as much as each scan may take."""

    def __init__(self, budget: timedelta | None = None, queries: int | None = None) -> None:
        self._begun = time.monotonic()
        self._budget = budget
        self._queries = queries

    @property
    def spent(self) -> timedelta:
        return timedelta(seconds=time.monotonic() - self._begun)

    @property
    def is_bounded(self) -> bool:
        return self._budget is not None or self._queries is not None

    @property
    def is_exhausted(self) -> bool:
        return self._queries == 0 or (self._budget is not None and self.spent >= self._budget)

    def take_timeout(self, own: timedelta, measures: Sequence[Measure]) -> timedelta:
        """How long a scan may take that may take `own` by itself. Raises CannotRead where nothing is left."""
        if self._queries is not None:
            query_count = sum(measure.is_query for measure in measures)
            if query_count > self._queries:
                self._queries = 0
                raise CannotRead("these are more queries than one request may run")
            self._queries -= query_count
        if self._budget is None:
            return own
        left = self._budget - self.spent
        if left <= timedelta():
            raise CannotRead("the time of the request was over before it was read")
        return min(own, max(left, MIN_TIMEOUT))


UNLIMITED = QueryBudget()


_ScanKey: TypeAlias = tuple[ScanTable, str]
"""What one pass over a part may share: the table, and the column that it is grouped by."""


def run_requests(requests: Iterable[AnyRequest], budget: QueryBudget = UNLIMITED) -> dict[AnyRequest, MeasuredAnswer]:
    """An answer for each; what cannot be read, or is not allowed any more, is a Failed among them, never an exception."""
    passes: dict[_ScanKey, list[MeasureRequest]] = defaultdict(list)
    answers: dict[AnyRequest, MeasuredAnswer] = {}
    for request in requests:
        if isinstance(request, TwoSidedRequest):
            answers[request] = _run_two_sided(request, budget)
        else:
            passes[request.table, request.group_by].append(request)
    for key, scan_requests in passes.items():
        answers.update(_run_scans(key, scan_requests, budget))
    return answers


def _run_two_sided(request: TwoSidedRequest, budget: QueryBudget) -> MeasuredAnswer:
    try:
        limits = Limits(timeout=budget.take_timeout(request.timeout, [request.measure]))
    except CannotRead as failed:
        return MeasuredAnswer(error(str(failed)))
    answer = run_cross_source(request.measure, request.here, request.there, request.partition, limits)
    return MeasuredAnswer(cast("Answer | Failed", answer))


def _run_scans(
    key: _ScanKey, requests: Sequence[MeasureRequest], budget: QueryBudget
) -> Iterator[tuple[MeasureRequest, MeasuredAnswer]]:
    table, by = key
    parts = _by_part(requests, by)
    for part, sharing in _separate_queries(parts) if budget.is_bounded else parts:
        measures = tuple(dict.fromkeys(request.measure for request in sharing))
        tables = {name: target for request in sharing for name, target in request.other_tables}
        measured = _run_scan(table, Scan(table.target, measures, part, tables, by, MAX_GROUPS), budget)
        yield from ((request, _answer_for(request, part, measured)) for request in sharing)


def _by_part(requests: Sequence[MeasureRequest], by: str) -> Iterator[tuple[Part, list[MeasureRequest]]]:
    """The requests by the part that is scanned for them. Many single partitions are answered by one scan over all of them."""
    parts: dict[Part, list[MeasureRequest]] = defaultdict(list)
    for request in requests:
        parts[request.part].append(request)
    singles: dict[EachPartition, list[OnePartition]] = defaultdict(list)
    for part, sharing in parts.items():
        if not by and _has_a_group(part) and any(_is_groupable(request.measure) for request in sharing):
            singles[EachPartition(part.column, part.form)].append(part)
    for each, single_parts in singles.items():
        if len(single_parts) >= MIN_PARTITIONS_FOR_GROUPED_SCAN:
            for part in single_parts:
                shared = [request for request in parts[part] if _is_groupable(request.measure)]
                parts[part] = [request for request in parts[part] if not _is_groupable(request.measure)]
                parts[each] += shared
    yield from ((part, sharing) for part, sharing in parts.items() if sharing)


def _has_a_group(part: Part) -> TypeGuard[OnePartition]:
    """Whether a scan that groups by partition has all of its rows under its name. Where columns say a local time without its
    offset, two hours have the same rows when clocks go back: such a scan has them under the first."""
    if not isinstance(part, OnePartition) or part.also:
        return False
    form = part.form
    if form is None or form.grain is not Grain.HOUR:
        return True
    with suppress(ValueError):  # what is no hour has no second one
        return not is_later_of_two_hours(parse_partition_name(part.value, form.grain, form.zone), form.zone)
    return True


def _is_groupable(measure: Measure) -> bool:
    return measure.kind not in _UNGROUPABLE and not measure.shown


def _separate_queries(
    parts: Iterable[tuple[Part, list[MeasureRequest]]],
) -> Iterator[tuple[Part, list[MeasureRequest]]]:
    """Each query has a timeout of its own: what is left is looked at before each."""
    for part, sharing in parts:
        yield from ((part, [request]) for request in sharing if request.measure.is_query)
        if rest := [request for request in sharing if not request.measure.is_query]:
            yield part, rest


def _run_scan(table: ScanTable, scan: Scan, budget: QueryBudget) -> ScanAnswers | CannotRead:
    try:
        timeout = budget.take_timeout(table.timeout, scan.measures)
        return run_scan(table.engine, scan, Limits(timeout=timeout, max_grouped_keys=settings.LAKEHUB_GROUPED_KEYS))
    except CannotRead as failed:
        return failed


def _answer_for(request: MeasureRequest, part: Part, measured: ScanAnswers | CannotRead) -> MeasuredAnswer:
    if isinstance(measured, CannotRead):
        return MeasuredAnswer(error(str(measured)))
    answer = measured.answers[request.measure]
    if part != request.part and isinstance(answer, Mapping) and isinstance(request.part, OnePartition):
        # A partition that no row was written for is absent from a scan over all of them.
        answer = answer[request.part.value] if request.part.value in answer else answer_without_rows(request.measure)
    elif request.buckets is not None and isinstance(answer, Mapping):
        answer = cast("Answer", request.buckets.summed(cast("Mapping[str | None, int]", answer)))
    return MeasuredAnswer(answer, measured.instant, measured.group_count)
