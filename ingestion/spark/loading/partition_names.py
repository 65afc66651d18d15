"""The name of the partition of each row, from the columns that say it: as many looks at the calendar as there are partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakehub.kernel.interval import BEGINNING, Interval
from lakehub.kernel.partitions import local_bounds, partition_at, partition_name, partition_of_local
from lakehub.kernel.partitions.form import TIME_IN_UTC, PartitionForm

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_READ_ERRORS = (ValueError, OverflowError)


def partition_names(columns: Sequence[pa.ChunkedArray], raw: Sequence[Any] | None, form: PartitionForm) -> pa.Array:
    """One text a row; null where the values are no partition. `columns` are as they are stored, `raw` is the first one as the
    source has it: a time without a zone is stored as if it were UTC."""
    if form.is_time:
        return _names_by_zone(columns[0], raw, form)
    texts = [column.cast(pa.string()) for column in columns]
    values = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "/")
    encoded = pc.dictionary_encode(values.combine_chunks())
    names = pa.array([_name_of(text, form) for text in encoded.dictionary.to_pylist()], pa.string())
    return names.take(encoded.indices)


def _name_of(text: str | None, form: PartitionForm) -> str | None:
    try:
        return partition_name(form.parse(text), form.grain, form.zone)
    except _READ_ERRORS:
        return None


def _names_by_zone(column: pa.ChunkedArray, raw: Sequence[Any] | None, form: PartitionForm) -> pa.Array:
    """A text of one row may say at which instant it is, and that of the next may not."""
    zoned = [True] if form.text == TIME_IN_UTC else _with_zone(raw, column.type)
    if all(zoned):
        return _names_of_times(column, form, is_local=False)
    local = _names_of_times(column, form, is_local=True)
    if not any(zoned):
        return local
    return pc.if_else(pa.array(zoned), _names_of_times(column, form, is_local=False), local)


def _with_zone(raw: Sequence[Any] | None, type_: pa.DataType) -> list[bool]:
    """Of each row, or of all of them in one: does the source say at which instant its time is?"""
    if not pa.types.is_timestamp(type_) or raw is None:
        return [False]
    if isinstance(raw, pa.Array | pa.ChunkedArray):
        if pa.types.is_timestamp(raw.type):
            return [raw.type.tz is not None]
        raw = raw.to_pylist()
    return [_has_zone(_plain(value)) for value in raw]


def _has_zone(value: Any) -> bool:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return False  # its row is rejected for the column itself
    return isinstance(value, datetime) and value.tzinfo is not None


def _plain(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _names_of_times(column: pa.ChunkedArray, form: PartitionForm, *, is_local: bool) -> pa.Array:
    times = column.combine_chunks().cast(
        pa.timestamp("us", column.type.tz if pa.types.is_timestamp(column.type) else None)
    )
    known = times.drop_null().cast(pa.int64()).to_numpy()
    values, places = np.unique(known, return_inverse=True)
    names: list[str | None] = []
    for name, count in _runs(values, _local_partition if is_local else _partition_of_instant, form):
        names += [name] * count
    of_known = pa.array(names, pa.string()).take(pa.array(places))
    if not times.null_count:
        return of_known
    rank = pc.cast(pc.cumulative_sum(pc.cast(times.is_valid(), pa.int64())), pa.int64())
    return of_known.take(pc.if_else(times.is_valid(), pc.subtract(rank, 1), None))


def _runs(
    values: Any, partition_of: Callable[[datetime, PartitionForm], tuple[Interval, datetime]], form: PartitionForm
) -> Iterator[tuple[str | None, int]]:
    """Of sorted microseconds: the name of a partition, and how many values lie in it."""
    at = 0
    while at < len(values):
        try:
            partition, end = partition_of(_EPOCH + int(values[at]) * _MICROSECOND, form)
            name = partition_name(partition, form.grain, form.zone) if partition.start >= BEGINNING else None
            following = int(np.searchsorted(values, (end - _EPOCH) // _MICROSECOND))
        except _READ_ERRORS:
            name, following = None, at + 1
        yield name, following - at
        at = following


def _partition_of_instant(instant: datetime, form: PartitionForm) -> tuple[Interval, datetime]:
    partition = partition_at(instant, form.grain, form.zone)
    return partition, partition.end


def _local_partition(shown: datetime, form: PartitionForm) -> tuple[Interval, datetime]:
    """`shown` is what a local clock shows, as if that were UTC; so is the end."""
    partition = partition_of_local(shown.replace(tzinfo=None), form.grain, form.zone)
    return partition, local_bounds(partition, form.grain, form.zone)[1].replace(tzinfo=UTC)
