"""Answers that are kept: what was measured of a partition is used again for as long as the partition is in the same state.

The state is the engine's word for it (of a Hudi table its files of that partition): where it has none, nothing is kept. So the
rows of each data center are stored once, and the others compare theirs with what is stored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import TypeAlias

from django.conf import settings

from lakehub.kernel.apart import apart
from quality.domain.expression import formula
from quality.domain.expression.measures import Answer
from quality.domain.expression.values import Failed
from quality.domain.queries import BadQuery, understood
from quality.domain.stored import from_json, to_json
from quality.engines.scan import Each, Part, Target, Whole
from quality.engines.states import states
from quality.models import Measurement
from quality.needs import Need, Wanted
from quality.scanning import Found

MEASURED_AS = 1
"""Raise it with every change of what a measure answers of the same data: what was kept before is measured anew."""
_NOT_KEPT = frozenset({"committed"})
"""When the newest commit was made is what a state is made of."""
_Key: TypeAlias = tuple[int, datetime, datetime, str]
_WRITTEN = ("version", "instant", "answer", "groups", "read_at")


class Kept:
    """The answers to some needs that are still true, and the state that each table is in now."""

    def __init__(self, wanted: Iterable[Wanted]) -> None:
        needs = [one for one in wanted if isinstance(one, Need) and _can_be_kept(one)]
        self._versions = _versions(needs) if settings.LAKEHUB_REUSE_RESULTS else {}
        self.found: dict[Wanted, Found] = dict(self._recalled())

    def _recalled(self) -> Iterable[tuple[Need, Found]]:
        keys: dict[_Key, list[Need]] = defaultdict(list)
        for need in self._versions:
            keys[_key(need)].append(need)
        rows = Measurement.objects.filter(
            copy__in={key[0] for key in keys}, measure__in={key[3] for key in keys}, start__in={key[1] for key in keys}
        )
        for row in rows if keys else ():
            for need in keys.get((row.copy_id, row.start, row.end, row.measure), ()):
                if row.version == self._versions[need]:
                    with apart(f"reading measurement {row.pk}"):  # what cannot be read is measured anew
                        answer = from_json(row.answer)
                        yield need, Found(answer, row.instant, row.groups, row.read_at)

    def keep(self, found: Mapping[Wanted, Found], *, now: datetime) -> None:
        """Stores what was measured just now of what is in the same state as before the scan.

        Of what changed meanwhile nobody knows which state was read; and one that was rolled back may come again.
        """
        measured = {
            need: (one, one.answer)
            for need, one in found.items()
            if isinstance(need, Need) and need in self._versions and not isinstance(one.answer, Failed)
        }
        after = _versions(measured)
        # Each once, though tests may ask for it with different timeouts.
        by_key = {
            _key(need): _row(need, self._versions[need], one, answer, now)
            for need, (one, answer) in measured.items()
            if after.get(need) == self._versions[need]
        }
        # In one order, so that two workers do not wait for each other.
        rows = [by_key[key] for key in sorted(by_key)]
        if rows:
            Measurement.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=["copy", "start", "end", "measure"],
                update_fields=_WRITTEN,
                batch_size=500,
            )


def _can_be_kept(need: Need) -> bool:
    measure = need.measure
    if measure.kind == "query" and not _is_repeatable(str(measure.values[0])):
        return False
    return need.copy is not None and not isinstance(need.part, Each) and measure.kind not in _NOT_KEPT


def _is_repeatable(sql: str) -> bool:
    """A query may ask for the time; what cannot be understood is asked for its error."""
    try:
        return understood(sql).repeatable
    except BadQuery:
        return False


def _row(need: Need, version: str, one: Found, answer: Answer, now: datetime) -> Measurement:
    copy, start, end, measure = _key(need)
    return Measurement(
        copy_id=copy,
        start=start,
        end=end,
        measure=measure,
        version=version,
        instant=one.instant,
        answer=to_json(answer),
        groups=one.groups,
        read_at=now,
    )


def _key(need: Need) -> _Key:
    assert need.copy is not None
    return need.copy, need.partition.start, need.partition.end, _digest(need)


def _digest(need: Need) -> str:
    """What is measured, whoever asks for it."""
    measure = need.measure
    return _hashed(
        MEASURED_AS,
        measure.kind,
        measure.columns,
        formula(measure.other) if measure.other is not None else "",
        measure.other_columns,
        tuple((type(value).__name__, str(value)) for value in measure.values),
        (need.by, need.most if need.by else 0),
        need.table.engine,
    )


@lru_cache(maxsize=4096)
def _hashed(*said: object) -> str:
    return sha256(json.dumps(said).encode()).hexdigest()[:32]


def _versions(needs: Iterable[Need]) -> dict[Need, str]:
    """The state of what each need looks at; without those where it is not known."""
    parts: dict[Target, dict[Part, None]] = defaultdict(dict)
    for need in needs:
        for target, part in _looked_at(need):
            parts[target][part] = None
    known = {target: states(target, looked) for target, looked in parts.items()}
    found = {need: [known[target].get(part, "") for target, part in _looked_at(need)] for need in needs}
    return {need: _hashed(*state) for need, state in found.items() if all(state)}


def _looked_at(need: Need) -> Iterator[tuple[Target, Part]]:
    yield need.table.target, need.part
    yield from ((target, Whole()) for _, target in need.others)
