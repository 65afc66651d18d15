"""Columns of a real server that get another name are told to whoever reads the changelog, and once only, wherever the tap ends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ingestion.capture.tap.position import reference_key
from ingestion.captures.records import begin_load, topic_of
from ingestion.captures.topics import topic_to_read
from ingestion.schemas import registry
from ingestion.schemas.captured_versions import subject_schema_of
from lakehub.catalog.models import Dataset
from tests.services.captured_shop import CapturedShop, captured_shop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(mariadb_url: str, tmp_path: Path, settings: Any) -> Iterator[CapturedShop]:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with captured_shop(mariadb_url, "lakehub_renamed", tmp_path) as captured:
        yield captured


def renames(dataset: Dataset) -> list[dict[str, str]]:
    return [dict(each.origins) for each in topic_to_read(dataset, now=datetime.now(UTC)).renames]


def test_a_rename_is_known_with_its_transaction_also_where_the_tap_begins_anew(shop: CapturedShop) -> None:
    definition = "id int PRIMARY KEY, a varchar(9), b int, x int, y int, `Straße ✓` varchar(9) AS (upper(a)) STORED"
    trips = shop.dataset("trips", definition=definition)
    trips.feed.columns_left_out = ["Straße ✓"]
    trips.feed.save()
    tap = shop.tap()
    tap.step()
    shop.execute("INSERT INTO trips (id, a, b, x, y) VALUES (1, 'v', 1, 1, 2)")
    shop.take(tap)
    assert renames(trips) == []
    shop.execute("ALTER TABLE trips DROP `Straße ✓`, ADD `Straße ✓` int", "ALTER TABLE trips RENAME COLUMN A TO name")
    sequence = shop.source.sequence()
    shop.step_until(tap, lambda: shop.capture(trips).is_stopped)  # what is left out was dropped for a moment
    begin_load(shop.capture(trips), uuid4())
    shop.follow_plan(tap)
    shop.step_until(tap, lambda: shop.capture(trips).is_captured)
    assert renames(trips) == [], "the rows of another load have it"
    shop.execute(
        "ALTER TABLE trips CHANGE COLUMN b n bigint, RENAME COLUMN x TO y, RENAME COLUMN y TO x",
        "INSERT INTO trips (id, name, n, x, y) VALUES (2, 'w', 3, 4, 5)",
    )
    shop.take(tap)
    tap._end_session()
    shop.take(tap)
    (rename,) = topic_to_read(trips, now=datetime.now(UTC)).renames
    assert rename.origins == {"n": "b", "x": "y", "y": "x"}
    assert rename.before > reference_key(sequence, 0)
    newest = subject_schema_of(registry.find_version(topic_of(trips)))
    assert newest.aliases == {"n": ("b",), "x": ("y",), "y": ("x",)}
    assert shop.rows(trips)[2,] == {"id": 2, "name": "w", "n": 3, "x": 4, "y": 5, "a": None, "b": None}


def test_a_rename_without_a_row_is_known_once_the_table_was_looked_at(shop: CapturedShop) -> None:
    trips = shop.dataset("trips", definition="id int PRIMARY KEY, a int")
    tap = shop.tap()
    tap.step()
    shop.execute("ALTER TABLE trips RENAME COLUMN a TO b", "ALTER TABLE trips RENAME COLUMN b TO c")
    shop.step_until(tap, lambda: bool(renames(trips)))
    shop.take(tap)
    assert renames(trips)[-1] == {"c": "a"}
    assert "c" in subject_schema_of(registry.find_version(topic_of(trips))).aliases
