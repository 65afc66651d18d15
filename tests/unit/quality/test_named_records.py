"""Records that a run names are kept within a bound of bytes, and no kind of them hides another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quality.domain.measurement_codec import storable_json
from quality.domain.named_records import MAX_BYTES, bounded_records


def changed(number: int, columns: int, text: str = "x" * 80) -> dict[str, Any]:
    values = {f"column{column}": [text, text] for column in range(columns)}
    return {"kind": "changed", "key": {"id": str(number)}, "columns": values}


def stored_bytes(records: dict[str, list[Any]]) -> int:
    return len(json.dumps(storable_json(records), ensure_ascii=False).encode())


@pytest.mark.parametrize("text", ["é" * 200, "\x00" * 200, "\ud800" * 200, "👍" * 200])
def test_bytes_count_as_they_are_stored(text: str) -> None:
    missing, differences = [{"id": text} for _ in range(100)], [changed(n, 4, text) for n in range(200)]
    kept = bounded_records({"missing": missing, "differences": differences})
    assert stored_bytes({name: list(records) for name, records in kept.items()}) < MAX_BYTES + 2_000
    assert kept["missing"]
    assert kept["differences"]


def test_no_kind_hides_another_and_the_order_stays() -> None:
    lost = [{"kind": "missing", "key": {"id": f"{number}"}} for number in range(3)]
    wide = [changed(number, 50) for number in range(100)]
    kept = bounded_records({"differences": [*wide, *lost]})["differences"]
    assert kept[-3:] == lost
    assert kept[:-3] == wide[: len(kept) - 3]
    assert len(kept) > 4


def test_one_that_is_too_large_hides_none_that_fits() -> None:
    small = [{"id": "1"}, {"id": "2"}]
    assert bounded_records({"missing": [{"id": "x" * MAX_BYTES}, *small]}) == {"missing": small}


def test_of_each_kind_200_are_kept() -> None:
    many = [{"kind": kind, "key": {"id": "1"}} for kind in ("missing", "surplus") for _ in range(300)]
    assert len(bounded_records({"differences": many})["differences"]) == 400


def test_of_a_record_that_is_too_large_the_key_and_the_columns_are_kept() -> None:
    kept = bounded_records({"differences": [changed(7, 600), changed(8, 1)]})["differences"]
    assert [record["key"] for record in kept] == [{"id": "7"}, {"id": "8"}]
    assert set(kept[0]["columns"]) == {f"column{number}" for number in range(600)}
    assert kept[1] == changed(8, 1)
