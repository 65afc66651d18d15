"""Every engine that needs no server answers alike; those that need one are asked the same in tests/services and tests/spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakehub.catalog.metadata.tables import Files, HudiCopy
from quality.engines.duckdb import DuckDbEngine
from tests.contracts import answer_tables
from tests.contracts.engine_answers import LOOKED_INTO, NUMBERS, ODD, PART, SCHEMA, Place, arrow, every_fact
from tests.hudi_tables import hudi_table


def hudi(folder: Path) -> Place:
    """`p0` has a file and no row."""
    rows = {"p0": SCHEMA.empty_table(), "p1": arrow("p1"), "p2": arrow("p2")}
    parts: dict[str | None, pa.Table] = {part: of.drop_columns(ODD) for part, of in rows.items()}
    table = hudi_table(folder / "table", parts, column=PART)
    words = hudi_table(folder / "words", {None: pa.Table.from_pylist(LOOKED_INTO)}, key="word")
    numbers = hudi_table(folder / "numbers", {None: pa.Table.from_pylist(NUMBERS)}, key="x")
    return Place(DuckDbEngine(), HudiCopy(table), HudiCopy(words), HudiCopy(numbers), odd=False)


def parquet(folder: Path) -> Place:
    pq.write_table(arrow(), folder / "table.parquet")
    for name, rows in (("words", LOOKED_INTO), ("numbers", NUMBERS)):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    names = ("table", "words", "numbers")
    return Place(DuckDbEngine(), *(Files(f"{folder.as_uri()}/{name}.parquet", "parquet") for name in names))


def sqlite(folder: Path) -> Place:
    return answer_tables.filled(f"sqlite:///{folder / 'ops.db'}")


@pytest.fixture(scope="module", params=[hudi, parquet, sqlite], ids=lambda make: make.__name__)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    make: Callable[[Path], Place] = request.param
    return make(tmp_path_factory.mktemp("place"))


@every_fact
def test_every_engine_answers_alike(place: Place, fact: Callable[[Place], None]) -> None:
    fact(place)
