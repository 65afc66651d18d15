"""Has a column become narrower? Its stored values may have been cut or rounded then, and no row of the binlog says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn

_K = ColumnKind
_INTEGER_BYTES = {_K.TINY: 1, _K.SHORT: 2, _K.INT24: 3, _K.LONG: 4, _K.LONGLONG: 8}
_TIMES = (_K.DATETIME, _K.TIMESTAMP, _K.TIME)


def narrower_columns(before: Iterable[MappedColumn], now: Iterable[MappedColumn]) -> list[str]:
    """Those that cannot have each value any more that they could have, and how a type is told. What becomes another kind of value is the schema's affair."""
    known = {column.name: column for column in before}
    return [column.name for column in now if column.name in known and not _holds(column, known[column.name])]


def changing_columns(before: Iterable[MappedColumn], now: Iterable[MappedColumn]) -> list[str]:
    """Those whose stored values may have become others: of another kind of value all but whole numbers that are decimals now."""
    known = {column.name: column for column in before}
    pairs = [(column, known[column.name]) for column in now if column.name in known]
    return [now.name for now, before in pairs if not _keeps_values(now, before)]


def _keeps_values(now: MappedColumn, before: MappedColumn) -> bool:
    if before.kind in _INTEGER_BYTES and now.kind is _K.DECIMAL:
        precision, scale = now.metadata
        return precision - scale >= len(str(max(map(abs, _bounds(before)))))
    return _family(now.kind) == _family(before.kind) and _holds(now, before) and not _loses_spaces(now, before)


def _loses_spaces(now: MappedColumn, before: MappedColumn) -> bool:
    """About which no server asks."""
    return now.kind is _K.STRING and before.kind in (_K.VARCHAR, _K.BLOB)


def _holds(now: MappedColumn, before: MappedColumn) -> bool:
    if _family(now.kind) == _family(before.kind) == "integer":
        (least, most), (least_before, most_before) = _bounds(now), _bounds(before)
        return least <= least_before and most_before <= most
    if now.kind is not before.kind:
        kinds = (_family(before.kind), _family(now.kind))
        return kinds not in _NARROWINGS and (kinds != ("text", "text") or _most_bytes(now) >= _most_bytes(before))
    return (before.is_unsigned or not now.is_unsigned) and _HOLDS.get(now.kind, _always)(now, before)


_NARROWINGS = {("double", "float"), ("datetime", "timestamp"), ("datetime", "date")}


def _family(kind: ColumnKind) -> str:
    if kind in _INTEGER_BYTES:
        return "integer"
    return "text" if kind in (_K.VARCHAR, _K.STRING, _K.VAR_STRING, _K.BLOB) else kind.name.lower()


def _bounds(column: MappedColumn) -> tuple[int, int]:
    values = 1 << 8 * _INTEGER_BYTES[column.kind]
    return (0, values - 1) if column.is_unsigned else (-values // 2, values // 2 - 1)


def _always(now: MappedColumn, before: MappedColumn) -> bool:
    return True


def _holds_decimal(now: MappedColumn, before: MappedColumn) -> bool:
    (precision, scale), (precision_before, scale_before) = now.metadata, before.metadata
    return scale >= scale_before and precision - scale >= precision_before - scale_before


def _holds_text(now: MappedColumn, before: MappedColumn) -> bool:
    return _most_bytes(now) >= _most_bytes(before)


def _most_bytes(column: MappedColumn) -> int:
    """As the binlog has it: a long text tells how many bytes its length takes, and one of fixed length keeps two bits of its own beside its kind."""
    if column.kind is _K.BLOB:
        return (1 << 8 * column.metadata[0]) - 1
    if column.kind is _K.STRING:
        kind, length = column.metadata
        return length | ((kind & 0x30) ^ 0x30) << 4
    least, most = column.metadata
    return least | most << 8


def _holds_labels(now: MappedColumn, before: MappedColumn) -> bool:
    return {*before.labels} <= {*now.labels}


def _holds_bits(now: MappedColumn, before: MappedColumn) -> bool:
    return now.metadata[::-1] >= before.metadata[::-1]


def _holds_fraction(now: MappedColumn, before: MappedColumn) -> bool:
    """Of a second."""
    return now.metadata >= before.metadata


_HOLDS: Mapping[ColumnKind, Callable[[MappedColumn, MappedColumn], bool]] = {
    _K.DECIMAL: _holds_decimal,
    **dict.fromkeys((_K.VARCHAR, _K.VAR_STRING, _K.STRING, _K.BLOB), _holds_text),
    **dict.fromkeys((_K.ENUM, _K.SET), _holds_labels),
    _K.BIT: _holds_bits,
    **dict.fromkeys(_TIMES, _holds_fraction),
}
