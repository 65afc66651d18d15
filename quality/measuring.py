"""From the due units of one copy to the answers of their tests: what shares a table and a partition is one scan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from django.db.models import Max

from ingestion.models import Commit, Finding
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import Interval
from quality.domain.evaluation import asks
from quality.domain.expression import THIS, Expression, Name, parse
from quality.domain.expression.measures import COMMITTED, Answer, Ask, Measure, Reach
from quality.domain.expression.values import Failed, error
from quality.engines import read
from quality.engines.scan import (
    CannotRead,
    Each,
    HudiCopy,
    Limits,
    Measured,
    One,
    Part,
    Scan,
    Target,
    Whole,
    of_nothing,
)
from quality.models import Unit
from quality.places import Place, Places

EACH_FROM = 4
"""So many partitions of one table are measured by one scan that groups by partition."""
TIMEOUT = timedelta(minutes=2)


@dataclass(frozen=True)
class Answers:
    """What the test of one unit needs; `instant` is the commit of the unit's own copy that was read."""

    of: Mapping[Ask, Answer | Failed]
    instant: str = ""


@dataclass(frozen=True)
class _Table:
    """What one engine reads in one go: measures that look into other tables bring those along."""

    engine: str
    target: Target
    timeout: timedelta


@dataclass
class _Wish:
    """The measures wanted of each part of one table."""

    parts: dict[Part, dict[Measure, None]] = field(default_factory=lambda: defaultdict(dict))
    tables: dict[Name, Target] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def understood(flattened: str) -> Expression:
    """The expression of a test's version. Versions do not change."""
    return parse(flattened)


def measure(copy: DatasetCopy, units: Sequence[Unit]) -> dict[int, Answers]:
    """The answers for each unit by its id. What cannot be read is a Failed among them, never an exception."""
    places = Places(copy)
    wishes: dict[_Table, _Wish] = defaultdict(_Wish)
    for unit in units:
        for ask in asks(_expression(unit)):
            _wish(wishes, places, unit, ask)
    measured = {table: dict(_scan(table, wish)) for table, wish in wishes.items()}
    return {unit.pk: _answers(unit, places, measured) for unit in units}


def _expression(unit: Unit) -> Expression:
    assert unit.test.version is not None
    return understood(unit.test.version.flattened)


def _range(unit: Unit) -> Interval:
    return Interval(unit.start, unit.end)


def _table(place: Place, expression: Expression) -> _Table:
    given = expression.parameters
    engine = given.engine if given.engine and isinstance(place.target, HudiCopy) else place.engine
    return _Table(engine, place.target, given.timeout or TIMEOUT)


def _wish(wishes: dict[_Table, _Wish], places: Places, unit: Unit, ask: Ask) -> None:
    """Notes the measure, unless the database answers it or its table cannot be found: `_answers` says so then."""
    if _from_database(unit, ask):
        return
    try:
        place = places.of(ask.table)
        other = places.of(ask.measure.other).target if ask.measure.other is not None else None
    except CannotRead:
        return
    wish = wishes[_table(place, _expression(unit))]
    wish.parts[place.part(ask.reach, _range(unit))][ask.measure] = None
    if ask.measure.other is not None and other is not None:
        wish.tables[ask.measure.other] = other


def _scan(table: _Table, wish: _Wish) -> Iterator[tuple[Part, Measured | CannotRead]]:
    """Each part with its measures. Many single partitions are answered by one scan over all of them."""
    ones = [part for part in wish.parts if isinstance(part, One)]
    grouped: dict[str, list[One]] = defaultdict(list)
    for one in ones:
        grouped[one.column].append(one)
    for column, parts in grouped.items():
        if len(parts) >= EACH_FROM:
            each = wish.parts.setdefault(Each(column), {})
            for one in parts:
                each.update(wish.parts.pop(one))
    for part, measures in wish.parts.items():
        yield part, _read(table, Scan(table.target, tuple(measures), part, wish.tables))


def _read(table: _Table, scan: Scan) -> Measured | CannotRead:
    try:
        return read(table.engine, scan, Limits(timeout=table.timeout))
    except CannotRead as failed:
        return failed


def _answers(unit: Unit, places: Places, measured: Mapping[_Table, Mapping[Part, Measured | CannotRead]]) -> Answers:
    answers: dict[Ask, Answer | Failed] = {}
    instant = ""
    for ask in asks(_expression(unit)):
        known = _from_database(unit, ask)
        if known is not None:
            answers[ask] = known(unit, ask)
            continue
        try:
            place = places.of(ask.table)
            if ask.measure.other is not None:
                places.of(ask.measure.other)
            found = _part_of(measured[_table(place, _expression(unit))], place.part(ask.reach, _range(unit)))
        except CannotRead as failed:
            answers[ask] = error(str(failed))
            continue
        answers[ask] = _answer(found, ask, place.part(ask.reach, _range(unit)))
        if ask.table == Name(THIS):
            instant = found.instant
    return Answers(answers, instant)


def _part_of(parts: Mapping[Part, Measured | CannotRead], part: Part) -> Measured:
    """Raises CannotRead where its scan did."""
    found = parts[part] if part in parts else parts[Each(part.column if isinstance(part, One) else "")]
    if isinstance(found, CannotRead):
        raise found
    return found


def _answer(found: Measured, ask: Ask, part: Part) -> Answer | Failed:
    answer = found.answers[ask.measure]
    if isinstance(answer, Failed):
        return answer
    if isinstance(part, One) and isinstance(answer, Mapping):
        (nothing,) = of_nothing([ask.measure], each=False).values()
        return answer.get(part.value, nothing)
    if ask.reach is Reach.EACH_PARTITION and isinstance(part, Whole) and not isinstance(answer, Mapping):
        return {"": answer}
    return answer


# What the database knows better than an engine


def _from_database(unit: Unit, ask: Ask) -> Callable[[Unit, Ask], Answer] | None:
    """Findings are rows of ours; so are the commits of what Lakehub ingests. A copy that it only watches is asked itself."""
    if ask.measure.kind == "findings":
        return _open_findings
    if ask.measure == COMMITTED and (unit.test.dataset.ingested or unit.test.dataset.feed.connection.plugin != "hudi"):
        return _last_commit
    return None


def _open_findings(unit: Unit, ask: Ask) -> Answer:
    (kind,) = ask.measure.columns
    found = Finding.objects.filter(
        copy=unit.copy_id, kind=kind, start__lt=unit.end, end__gt=unit.start, cleared_at=None
    )
    return found.count()


def _last_commit(unit: Unit, ask: Ask) -> Answer:
    newest: datetime | None = Commit.objects.filter(copy=unit.copy_id).aggregate(Max("completed_at"))[
        "completed_at__max"
    ]
    return newest
