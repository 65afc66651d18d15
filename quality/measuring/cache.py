"""Answers that are kept: what was measured of a partition is used again for as long as the partition is in the same state.

The state is the engine's word for it (of a Hudi table its files of that partition): where it has none, nothing is kept. So the
rows of each data center are stored once, and the others compare theirs with what is stored.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import TypeAlias

from django.conf import settings

from lakehub.catalog.metadata.tables import StoredTable
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.user_sql import BadQuery
from quality.domain.language import formula
from quality.domain.language.measures import Answer
from quality.domain.language.name_resolution import MAX_GROUPS
from quality.domain.language.values import Failed
from quality.domain.measurement_codec import from_json, to_json
from quality.domain.user_sql import parsed_query
from quality.engines import ENGINES, engine_for
from quality.engines.scans.parts import CannotRead, EachPartition, Part, WholeTable
from quality.measuring.requests import AnyRequest, MeasuredAnswer, MeasureRequest, Source
from quality.models import CachedMeasurement

log = logging.getLogger(__name__)

CACHE_FORMAT_VERSION = 1
"""Raise it with every change of what a measure answers of the same data: what was kept before is measured anew."""
_UNCACHEABLE_KINDS = frozenset({"committed"})
"""When the newest commit was made is what a state is made of."""
_CacheKey: TypeAlias = tuple[int, datetime, datetime, str]
_UPDATED_FIELDS = ("version", "instant", "answer", "groups", "read_at")


class MeasurementCache:
    """The answers to some requests that are still true, and the state that each table is in now."""

    def __init__(self, requests: Iterable[AnyRequest], *, anew: Collection[Source] = ()) -> None:
        """What is `anew` is measured whatever was kept, and kept again."""
        cacheable = [request for request in requests if isinstance(request, MeasureRequest) and _is_cacheable(request)]
        self._versions = _state_digests(cacheable) if settings.LAKEHUB_REUSE_RESULTS else {}
        self.hits: dict[AnyRequest, MeasuredAnswer] = dict(self._load(self._versions.keys() - set(anew)))

    def _load(self, usable: Iterable[MeasureRequest]) -> Iterable[tuple[MeasureRequest, MeasuredAnswer]]:
        keys: dict[_CacheKey, list[MeasureRequest]] = defaultdict(list)
        for request in usable:
            keys[_key(request)].append(request)
        rows = CachedMeasurement.objects.filter(
            copy__in={key[0] for key in keys}, measure__in={key[3] for key in keys}, start__in={key[1] for key in keys}
        )
        for row in rows if keys else ():
            for request in keys.get((row.copy_id, row.start, row.end, row.measure), ()):
                if row.version == self._versions[request]:
                    with log_and_continue(f"reading measurement {row.pk}"):  # what cannot be read is measured anew
                        answer = from_json(row.answer)
                        yield request, MeasuredAnswer(answer, row.instant, row.groups, row.read_at)

    def store(self, answers: Mapping[AnyRequest, MeasuredAnswer], *, now: datetime) -> None:
        """Stores what was measured just now of what is in the same state as before the scan.

        Of what changed meanwhile nobody knows which state was read; and one that was rolled back may come again.
        """
        measured = {
            request: (measured_answer, measured_answer.answer)
            for request, measured_answer in answers.items()
            if isinstance(request, MeasureRequest)
            and request in self._versions
            and not isinstance(measured_answer.answer, Failed)
        }
        after = _state_digests(measured)
        # Each once, though tests may ask for it with different timeouts.
        by_key = {
            _key(request): _row(request, self._versions[request], measured_answer, answer, now)
            for request, (measured_answer, answer) in measured.items()
            if after.get(request) == self._versions[request]
        }
        # In one order, so that two workers do not wait for each other.
        rows = [by_key[key] for key in sorted(by_key)]
        if rows:
            CachedMeasurement.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=["copy", "start", "end", "measure"],
                update_fields=_UPDATED_FIELDS,
                batch_size=500,
            )


def _is_cacheable(request: MeasureRequest) -> bool:
    measure = request.measure
    if measure.is_query and not _is_repeatable(str(measure.values[0])):
        return False
    return (
        request.copy is not None
        and not isinstance(request.part, EachPartition)
        and measure.kind not in _UNCACHEABLE_KINDS
    )


def _is_repeatable(sql: str) -> bool:
    """A query may ask for the time; what cannot be understood is asked for its error."""
    try:
        return parsed_query(sql).repeatable
    except BadQuery:
        return False


def _row(
    request: MeasureRequest, version: str, measured_answer: MeasuredAnswer, answer: Answer, now: datetime
) -> CachedMeasurement:
    copy, start, end, measure = _key(request)
    return CachedMeasurement(
        copy_id=copy,
        start=start,
        end=end,
        measure=measure,
        version=version,
        instant=measured_answer.instant,
        answer=to_json(answer),
        groups=measured_answer.groups,
        read_at=now,
    )


def _key(request: MeasureRequest) -> _CacheKey:
    assert request.copy is not None
    return request.copy, request.partition.start, request.partition.end, _digest(request)


def _digest(request: MeasureRequest) -> str:
    """What is measured, whoever asks for it."""
    measure = request.measure
    return _hash(
        CACHE_FORMAT_VERSION,
        measure.kind,
        measure.columns,
        formula(measure.other) if measure.other is not None else "",
        measure.other_columns,
        tuple((type(value).__name__, str(value)) for value in measure.values),
        (request.group_by, MAX_GROUPS if request.group_by else 0),
        request.table.engine,
    )


@lru_cache(maxsize=4096)
def _hash(*parts: object) -> str:
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _state_digests(requests: Iterable[MeasureRequest]) -> dict[MeasureRequest, str]:
    """The state of what each request looks at; without those where it is not known."""
    parts: dict[StoredTable, dict[Part, None]] = defaultdict(dict)
    for request in requests:
        for target, part in _tables_read(request):
            parts[target][part] = None
    target_states = {target: _part_states(target, looked) for target, looked in parts.items()}
    request_states = {
        request: [target_states[target].get(part, "") for target, part in _tables_read(request)] for request in requests
    }
    return {request: _hash(*state) for request, state in request_states.items() if all(state)}


def _part_states(table: StoredTable, parts: Collection[Part]) -> Mapping[Part, str]:
    """Whatever an engine raises, all is measured anew, and no test is without a result."""
    try:
        return ENGINES.get(engine_for(table))().part_states(table, parts)
    except CannotRead:
        return {}  # its measures will say so
    except Exception:
        log.exception("The state of %s is not known", table)
        return {}


def _tables_read(request: MeasureRequest) -> Iterator[tuple[StoredTable, Part]]:
    yield request.table.target, request.part
    yield from ((target, WholeTable()) for _, target in request.other_tables)
