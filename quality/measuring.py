"""From the due units of one copy to the answers of their tests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.db import DatabaseError, transaction
from django.db.models import Max

from ingestion.models import Commit, Finding
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.apart import apart
from lakehub.kernel.interval import Interval
from quality.allowance import UNBOUNDED, Allowance
from quality.delays import Delays
from quality.domain.evaluation import asks
from quality.domain.expression import THIS, Expression, Name, parse
from quality.domain.expression.measures import COMMITTED, Answer, Ask, Reach
from quality.domain.expression.values import Failed, error
from quality.domain.groups import SIZES
from quality.engines.scan import CannotRead, Whole
from quality.models import Unit
from quality.needs import Need, Wanted, wanted
from quality.places import Places
from quality.reuse import Kept
from quality.scanning import Found, found

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reused:
    """Of `of` measures `measures` were not measured anew: nothing has changed since, at the earliest, `read_at`."""

    measures: int
    of: int
    read_at: datetime
    instant: str


@dataclass(frozen=True)
class Answers:
    """What the test of one unit needs; `instant` is the commit of the unit's own copy that was read.

    `groups`: how many groups a dimension test has, with those that were not measured.
    """

    of: Mapping[Ask, Answer | Failed]
    instant: str = ""
    groups: int = 0
    reused: Reused | None = None


@lru_cache(maxsize=4096)
def understood(flattened: str) -> Expression:
    """The expression of a test's version. Versions do not change."""
    return parse(flattened)


def is_understood(flattened: str) -> bool:
    """False for what an older grammar stored: its result is an ERROR that says why."""
    try:
        understood(flattened)
    except Exception:
        return False
    return True


@lru_cache(maxsize=4096)
def _asks(flattened: str) -> tuple[Ask, ...]:
    return asks(understood(flattened))


def measure(
    copy: DatasetCopy, units: Sequence[Unit], allowance: Allowance = UNBOUNDED, *, now: datetime
) -> dict[int, Answers]:
    """The answers for each unit by its id. What cannot be read is a Failed among them, never an exception.

    A test that is not understood asks for nothing: whoever evaluates it finds out why.
    """
    places = Places(copy)
    asked = {unit: _asked(unit) for unit in units}
    delays = Delays(copy, ((unit, ask) for unit, each in asked.items() for ask in each))
    sources = {unit.pk: {ask: _source(unit, ask, places, delays, now) for ask in each} for unit, each in asked.items()}
    needs = list(dict.fromkeys(one for each in sources.values() for one in each.values() if not isinstance(one, Found)))
    kept = Kept(needs)
    measured = found((one for one in needs if one not in kept.found), allowance)
    with apart("keeping what was measured"), transaction.atomic():
        kept.keep(measured, now=now)
    known = {**measured, **kept.found}
    return {pk: _answers(each, known) for pk, each in sources.items()}


def _asked(unit: Unit) -> tuple[Ask, ...]:
    try:
        return _asks(_text(unit))
    except Exception:
        logger.exception("Unit %s asks what is not understood: %s", unit.pk, _text(unit))
        return ()


def _text(unit: Unit) -> str:
    assert unit.test.version is not None
    return unit.test.version.flattened


def _source(unit: Unit, ask: Ask, places: Places, delays: Delays, now: datetime) -> Wanted | Found:
    """Where the answer comes from: a table, our own database, or there is none. What raises costs this answer only."""
    try:
        known = _from_database(unit, ask, delays)
        if known is not None:
            return Found(known(unit, ask, now))
        return wanted(understood(_text(unit)), ask, Interval(unit.start, unit.end), places)
    except CannotRead as failed:
        return Found(error(str(failed)))
    except DatabaseError:
        raise
    except Exception as problem:
        logger.exception("What unit %s asks for cannot be looked up", unit.pk)
        return Found(error(f"it cannot be looked up ({type(problem).__name__}): see the worker's log"))


def _answers(sources: Mapping[Ask, Wanted | Found], known: Mapping[Wanted, Found]) -> Answers:
    each = {ask: source if isinstance(source, Found) else known[source] for ask, source in sources.items()}
    own = [one for ask, one in each.items() if ask.table == Name(THIS) and one.instant]
    return Answers(
        of={ask: _shaped(ask, sources[ask], one.answer) for ask, one in each.items()},
        instant=own[-1].instant if own else "",
        groups=each[SIZES].groups if SIZES in each else 0,
        reused=_reused(list(each.values())),
    )


def _shaped(ask: Ask, source: Wanted | Found, answer: Answer | Failed) -> Answer | Failed:
    """A table without partitions is one partition."""
    one_piece = isinstance(source, Need) and isinstance(source.part, Whole)
    if ask.reach is Reach.EACH_PARTITION and one_piece and not isinstance(answer, Mapping | Failed):
        return {"": answer}
    return answer


def _reused(each: Sequence[Found]) -> Reused | None:
    earlier = [(one.read_at, one.instant) for one in each if one.read_at is not None]
    if not earlier:
        return None
    read_at, instant = min(earlier)
    return Reused(len(earlier), len(each), read_at, instant)


# What the database knows better than an engine


def _from_database(unit: Unit, ask: Ask, delays: Delays) -> Callable[[Unit, Ask, datetime], Answer] | None:
    """Findings are rows of ours; so are the commits of what Lakehub ingests. A copy that it only watches is asked itself."""
    if ask.measure.kind == "delay":
        return delays.answer
    if ask.measure.kind == "findings":
        return _open_findings
    if ask.measure == COMMITTED and (unit.test.dataset.ingested or unit.test.dataset.feed.connection.plugin != "hudi"):
        return _last_commit
    return None


def _open_findings(unit: Unit, ask: Ask, now: datetime) -> Answer:
    (kind,) = ask.measure.columns
    findings = Finding.objects.filter(
        copy=unit.copy_id, kind=kind, start__lt=unit.end, end__gt=unit.start, cleared_at=None
    )
    return findings.count()


def _last_commit(unit: Unit, ask: Ask, now: datetime) -> Answer:
    newest: datetime | None = Commit.objects.filter(copy=unit.copy_id).aggregate(Max("completed_at"))[
        "completed_at__max"
    ]
    return newest
