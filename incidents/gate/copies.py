"""Which copy a question to the gate is about: found by name and data center, with what is known of its data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from incidents.models import GateOverride, GatePolicy, Incident
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy
from lakehub.db.prepared_query import Parameter, PreparedQuery, instant_parameter, stored_object
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import BEGINNING, FOREVER, Interval
from lakehub.kernel.suggest import did_you_mean


def find_copies(names: Iterable[str], consumer: str, *, now: datetime) -> Mapping[str, list[KnownCopy]]:
    """The copies of the live datasets of these names, for the consumer's question; names that are not there are left out."""
    return copies_by_name(names, consumer, now=now)


def choose_copy(dataset: str, data_center: str, known_copies: Mapping[str, list[KnownCopy]]) -> KnownCopy:
    """The copy that is asked about. Raises NotFound with the nearest name, Refused where a data center must be said."""
    candidates = known_copies.get(dataset, [])
    if not candidates:
        live = Dataset.objects.filter(offboarded_at=None).values_list("name", flat=True)
        raise NotFound(f"There is no dataset `{dataset}`.{did_you_mean(dataset, live[:1000])}")
    names = [candidate.copy.data_center.name for candidate in candidates]
    if not data_center and len(candidates) > 1:
        raise Refused.for_fields(
            {"dc": f"`{dataset}` has copies in {', '.join(names)}: say which one, as in `dc={names[0]}`."}
        )
    for candidate in candidates:
        if data_center in ("", candidate.copy.data_center.name):
            return candidate
    raise NotFound(f"`{dataset}` has no copy in `{data_center}`.{did_you_mean(data_center, names)}")


def find_copy(dataset: str, data_center: str = "") -> DatasetCopy:
    """The copy of this name, for those who go on with its row. Raises as `choose_copy`."""
    copies = DatasetCopy.objects.select_related("dataset__team", "dataset__feed", "data_center", "watch")
    named = copies.filter(dataset__name=dataset, dataset__offboarded_at=None)
    return choose_copy(dataset, data_center, {dataset: [KnownCopy(copy) for copy in named]}).copy


@dataclass(frozen=True)
class Pause:
    """A person has paused what brings the rows: no new ones come before it is resumed. `since` None: not known."""

    since: datetime | None
    why: str


@dataclass(frozen=True)
class KnownCopy:
    """A copy that can be asked about. What a flag denies need not be looked for."""

    copy: DatasetCopy
    reported: bool = True
    overridden: bool = True
    policed: bool = True
    """The consumer that asks has a policy of its own, for some tier."""


@dataclass(frozen=True)
class RequestedRange:
    """A range of a copy. `metric`: asked for it, so that the tests of the dataset's other metrics do not count."""

    known_copy: KnownCopy
    data: Interval
    metric: str = ""

    @property
    def copy(self) -> DatasetCopy:
        return self.known_copy.copy


_PAUSE_COLUMNS = ("dataset__feed__paused", "dataset__feed__paused_at", "dataset__feed__paused_why")
_COPY_COLUMNS = ("pk", "monitored_from")
_DATA_CENTER_COLUMNS = ("data_center__pk", "data_center__name")
_DATASET_COLUMNS = ("pk", "name", "team_id", "tier", "ingested", "grain", "partition_tz", "overrides", "grace_until")  # fmt: skip


def copies_by_name(names: Iterable[str], consumer: str, *, now: datetime) -> dict[str, list[KnownCopy]]:
    """The copies of these live datasets, by the dataset's name."""
    wanted_names = list(dict.fromkeys(names))
    by_name: defaultdict[str, list[KnownCopy]] = defaultdict(list)
    parameters = {f"name{place}": name for place, name in enumerate(wanted_names)} | {"consumer": consumer}
    for row in _copies_query(len(wanted_names)).rows(now=now, **parameters) if wanted_names else ():
        known_copy = _known_copy(row)
        by_name[known_copy.copy.dataset.name].append(known_copy)
    return by_name


@lru_cache(maxsize=128)
def _copies_query(count: int) -> PreparedQuery:
    reports = Incident.objects.filter(dataset=OuterRef("dataset"), resolved_at=None, reported=True)
    overrides = GateOverride.objects.filter(
        dataset=OuterRef("dataset"), ended_at=None, expires_at__gt=instant_parameter("now")
    )
    policies = GatePolicy.objects.filter(consumer=Parameter("consumer"))

    def build() -> QuerySet[Any, Any]:
        named = [Parameter(f"name{place}") for place in range(count)]
        copies = DatasetCopy.objects.filter(dataset__name__in=named, dataset__offboarded_at=None)
        return copies.order_by("data_center__name").values_list(
            *_COPY_COLUMNS, *_DATA_CENTER_COLUMNS, "watch__polled_at", Exists(reports), Exists(overrides),
            Exists(policies), *_PAUSE_COLUMNS,
            *(f"dataset__{name}" for name in _DATASET_COLUMNS),
        )  # fmt: skip

    return PreparedQuery(build)


def _known_copy(row: tuple[Any, ...]) -> KnownCopy:
    pk, monitored_from, center, center_name, polled_at, *flags, paused, paused_at, paused_why = row[:11]
    reported, overridden, policed = flags
    dataset_pk, *of_dataset = row[11:]
    dataset = stored_object(Dataset, id=dataset_pk, **dict(zip(_DATASET_COLUMNS[1:], of_dataset, strict=True)))
    copy = stored_object(
        DatasetCopy, id=pk, dataset_id=dataset_pk, data_center_id=center, monitored_from=monitored_from
    )
    copy.dataset = dataset
    copy.data_center = stored_object(DataCenter, id=center, name=center_name)
    copy.polled_at = polled_at  # type: ignore[attr-defined]  # carried along, see partitions_seen_at
    copy.pause = Pause(paused_at, paused_why) if paused else None  # type: ignore[attr-defined]  # see pause_of
    return KnownCopy(copy, bool(reported), bool(overridden), bool(policed))


def partitions_seen_at(copy: DatasetCopy) -> datetime:
    """What is ingested says itself what it writes; what is only watched is not known before the first look."""
    if copy.dataset.ingested:
        return FOREVER
    if not hasattr(copy, "polled_at"):
        watch = getattr(copy, "watch", None)
        return BEGINNING if watch is None or watch.polled_at is None else watch.polled_at
    return copy.polled_at or BEGINNING


def pause_of(copy: DatasetCopy) -> Pause | None:
    """None: its ingestion goes on, or Lakehub does not load it."""
    if hasattr(copy, "pause"):
        known: Pause | None = copy.pause
        return known
    feed = copy.dataset.feed_or_none
    return Pause(feed.paused_at, feed.paused_why) if feed is not None and feed.paused else None
