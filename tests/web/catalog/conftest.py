"""A database of an operator, each table of which is a watched dataset."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from lakehub.catalog.models import LineageEdge
from tests import factories as make
from tests.factories import HOUR, NOW
from tests.lineage_events import event, table

TABLES = ("airlines", "flights", "delays")


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    """A database with three tables, each a watched dataset of its name."""
    file = tmp_path / "ops.db"
    with sqlite3.connect(file) as db:
        for name in TABLES:
            db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
    connection = make.connection(url=f"sqlite:///{file}")
    for name in TABLES:
        columns = [{"name": "id", "type": "integer", "nullable": True}]
        dataset = make.dataset(name, ingested=False, by_day=False, columns=columns)
        make.feed(dataset, connection=connection)
    return file


@pytest.fixture
def folder(ops: Path, tmp_path: Path) -> Path:
    made = tmp_path / "events"
    made.mkdir()
    run_event = event("load", NOW - HOUR, [table("ops/flights", one_to_one=True)], [table("ops/delays")])
    (made / "load.json").write_text(json.dumps(run_event))
    return made


def known_edges() -> set[str]:
    return {f"{edge}{' one to one' if edge.one_to_one else ''}" for edge in LineageEdge.objects.all()}
