"""From needs to answers: what shares a table and a part is one scan, and many parts of one table are one scan too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, cast

from quality.allowance import UNBOUNDED, Allowance
from quality.domain.expression.measures import Answer, of_no_rows
from quality.domain.expression.values import Failed, error
from quality.engines import read
from quality.engines.queries import KIND
from quality.engines.scan import CannotRead, Each, Limits, Measured, One, Part, Scan
from quality.exchanges import exchange
from quality.needs import Need, Table, Trade, Wanted

EACH_FROM = 4
"""So many partitions of one table are measured by one scan that groups by partition."""
_APART = frozenset({"query", "frequencies", "committed"})
"""Measures that are not answered partition by partition."""


@dataclass(frozen=True)
class Found:
    """One answer; `instant` is the commit that was read, `groups` how many there are in all. `read_at`: it was kept from then."""

    answer: Answer | Failed
    instant: str = ""
    groups: int = 0
    read_at: datetime | None = None


_Pass: TypeAlias = tuple[Table, str, int]
"""What one pass over a part may share: the table, the column that it is grouped by, and how many groups."""


def found(wanted: Iterable[Wanted], allowance: Allowance = UNBOUNDED) -> dict[Wanted, Found]:
    """An answer for each; what cannot be read, or is not allowed any more, is a Failed among them, never an exception."""
    passes: dict[_Pass, list[Need]] = defaultdict(list)
    answers: dict[Wanted, Found] = {}
    for one in wanted:
        if isinstance(one, Trade):
            answers[one] = _traded(one, allowance)
        else:
            passes[one.table, one.by, one.most].append(one)
    for key, needs in passes.items():
        answers.update(_passed(key, needs, allowance))
    return answers


def _traded(one: Trade, allowance: Allowance) -> Found:
    try:
        limits = Limits(timeout=allowance.take(one.timeout, [one.measure]))
    except CannotRead as failed:
        return Found(error(str(failed)))
    answer = exchange(one.measure, one.here, one.there, one.partition, limits, engine=one.engine)
    return Found(cast("Answer | Failed", answer))


def _passed(key: _Pass, needs: Sequence[Need], allowance: Allowance) -> Iterator[tuple[Need, Found]]:
    table, by, most = key
    parts = _parts(needs, by)
    for part, sharing in _queries_alone(parts) if allowance.is_bounded else parts:
        measures = tuple(dict.fromkeys(one.measure for one in sharing))
        tables = {name: target for one in sharing for name, target in one.others}
        measured = _read(table, Scan(table.target, measures, part, tables, by, most), allowance)
        yield from ((one, _found(one, part, measured)) for one in sharing)


def _parts(needs: Sequence[Need], by: str) -> Iterator[tuple[Part, list[Need]]]:
    """The needs by the part that is scanned for them. Many single partitions are answered by one scan over all of them."""
    parts: dict[Part, list[Need]] = defaultdict(list)
    for one in needs:
        parts[one.part].append(one)
    singles: dict[str, list[One]] = defaultdict(list)
    for part, sharing in parts.items():
        if isinstance(part, One) and not by and any(one.measure.kind not in _APART for one in sharing):
            singles[part.column].append(part)
    for column, ones in singles.items():
        if len(ones) >= EACH_FROM:
            for part in ones:
                shared = [one for one in parts[part] if one.measure.kind not in _APART]
                parts[part] = [one for one in parts[part] if one.measure.kind in _APART]
                parts[Each(column)] += shared
    yield from ((part, sharing) for part, sharing in parts.items() if sharing)


def _queries_alone(parts: Iterable[tuple[Part, list[Need]]]) -> Iterator[tuple[Part, list[Need]]]:
    """Each query has a timeout of its own: what is left is looked at before each."""
    for part, sharing in parts:
        yield from ((part, [one]) for one in sharing if one.measure.kind == KIND)
        if rest := [one for one in sharing if one.measure.kind != KIND]:
            yield part, rest


def _read(table: Table, scan: Scan, allowance: Allowance) -> Measured | CannotRead:
    try:
        return read(table.engine, scan, Limits(timeout=allowance.take(table.timeout, scan.measures)))
    except CannotRead as failed:
        return failed


def _found(need: Need, part: Part, measured: Measured | CannotRead) -> Found:
    if isinstance(measured, CannotRead):
        return Found(error(str(measured)))
    answer = measured.answers[need.measure]
    if part != need.part and isinstance(answer, Mapping) and isinstance(need.part, One):
        # A partition that no row was written for is absent from a scan over all of them.
        answer = answer[need.part.value] if need.part.value in answer else of_no_rows(need.measure)
    return Found(answer, measured.instant, measured.groups)
