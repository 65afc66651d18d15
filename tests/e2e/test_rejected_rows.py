"""The page of rejected rows on a phone, with a column whose name is as long as databases allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page

from lakehub.catalog.models import DataCenter, DatasetCopy
from tests.e2e.conftest import findings
from tests.error_tables import error_row, error_table

COLUMN = "departure_delay_" * 4
PHONE = {"width": 390, "height": 844}


def test_nothing_lies_over_anything_else(tab: Callable[..., Page], whole_fleet: None, tmp_path: Path) -> None:
    DataCenter.objects.filter(name="dc1").update(lake_uri=tmp_path.as_uri())
    copy = DatasetCopy.objects.get(dataset__name="flights", data_center__name="dc1")
    DatasetCopy.objects.filter(pk=copy.pk).update(uri=(tmp_path / "flights").as_uri())
    error_table(tmp_path / "_errors" / "flights", [error_row(n, column=COLUMN, reason="no double") for n in range(3)])
    page = tab("/datasets/flights/rejected?dc=dc1", viewport=PHONE, reduced_motion="reduce")
    rows = page.locator("#rows tbody tr")
    assert rows.count() == 3
    for row in rows.all():
        assert _right_end(row.locator("code")) <= _right_end(row)
        parts = [row.locator(part) for part in ("input", "code", ".wide .break", "summary")]
        assert not [(a, b) for n, a in enumerate(parts) for b in parts[:n] if _overlap(a, b)]
    assert findings(page) == []


def _right_end(part: Locator) -> float:
    box = part.first.bounding_box()
    assert box is not None
    return box["x"] + box["width"]


def _overlap(one_part: Locator, other: Locator) -> bool:
    a, b = one_part.first.bounding_box(), other.first.bounding_box()
    assert a is not None
    assert b is not None
    return (
        a["x"] < b["x"] + b["width"]
        and b["x"] < a["x"] + a["width"]
        and a["y"] < b["y"] + b["height"]
        and b["y"] < a["y"] + a["height"]
    )
