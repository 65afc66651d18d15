"""Our HFiles, as HBase sees them: its printer reads the same cells, and it loads and looks into them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen
from uuid import uuid4

import happybase
import pyarrow as pa
import pytest

from ingestion.index.hfile import writer
from ingestion.index.hfile.writer import BlockSizes, HFileWriter, WrittenHFile
from tests.polling import wait_until
from tests.services.hbase_tools import bulk_load, printed_hfile
from tests.services.own_hbase import connect

FAMILY, QUALIFIERS, WRITTEN_MS = b"f", (b"at", b"path"), 1_700_000_000_000
SMALL_BLOCKS = BlockSizes(data=1_024, index=512, bloom_chunk=1_024)
"""So that few rows have an index of several levels and a Bloom filter of several chunks."""
AWKWARD_KEYS = (
    b"\0",
    b"\0\0",
    b"a",
    b"a\0",
    b"a/f:at/1/Put",
    b"back\\x41slash",
    b"\x7f",
    b"\x80",
    b"\xff\xff",
    b"z" * 32_767,
)
BATCH = 1_000


def rows_to_write(count: int) -> dict[bytes, tuple[bytes, bytes]]:
    """In the order of keys; of the values, some are empty and some are long."""
    keys = sorted({*AWKWARD_KEYS, *(sha256(b"%d" % number).digest()[: 4 + number % 29] for number in range(count))})
    return {key: (key[:8], b"2024/01/%d\0" % number * (number % 7)) for number, key in enumerate(keys)}


def write_hfile(file: Path, rows: dict[bytes, tuple[bytes, bytes]]) -> WrittenHFile:
    with file.open("wb") as out:
        hfile = HFileWriter(out, family=FAMILY, qualifiers=QUALIFIERS, timestamp_ms=WRITTEN_MS, sizes=SMALL_BLOCKS)
        keys = list(rows)
        for begin in range(0, len(keys), BATCH):
            batch = keys[begin : begin + BATCH]
            values = [pa.array([rows[key][place] for key in batch], pa.binary()) for place in range(len(QUALIFIERS))]
            hfile.append(pa.array(batch, pa.binary()), values)
        return hfile.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """HBase wants a folder named like the family."""
    folder = tmp_path / "hfiles" / FAMILY.decode()
    folder.mkdir(parents=True)
    return folder


def test_the_printer_of_hbase_reads_what_was_written(hbase_url: str, folder: Path) -> None:
    rows = rows_to_write(3_000)
    written = write_hfile(folder / "hfile", rows)
    printed = printed_hfile(folder / "hfile")
    assert printed.cells == [
        (key, FAMILY, qualifier, WRITTEN_MS, value)
        for key, values in rows.items()
        for qualifier, value in zip(QUALIFIERS, values, strict=True)
    ]
    assert printed.complaints == []
    assert written.cells == int(printed.properties["entries"]) == 2 * len(rows)
    assert written.size == int(printed.properties["length"])
    assert int(printed.properties["numDataIndexLevels"]) > 1
    assert printed.properties["majorVersion"] == "3"


def test_the_printer_of_hbase_complains_of_rows_out_of_order(
    hbase_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "check_rows", lambda rows, last: None)
    write_hfile(folder / "hfile", {b"b": (b"", b""), b"a": (b"", b"")})
    assert printed_hfile(folder / "hfile").complaints


@pytest.fixture
def table(hbase_url: str) -> Iterator[happybase.Table]:
    port = urlsplit(hbase_url).port
    assert port
    connection, name = connect(port), f"test-{uuid4().hex}"
    connection.create_table(name, {FAMILY.decode(): {"bloom_filter_type": "ROW", "max_versions": 1}})
    try:
        yield connection.table(name)
    finally:
        connection.delete_table(name, disable=True)
        connection.close()


def test_hbase_finds_each_row_of_a_loaded_hfile_and_asks_its_bloom_filter_of_others(
    hbase_url: str, table: happybase.Table, folder: Path
) -> None:
    rows = rows_to_write(20_000)
    write_hfile(folder / "hfile", rows)
    bulk_load(folder.parent, table.name.decode(), (urlsplit(hbase_url).port or 0) + 1)

    def read(keys: list[bytes]) -> dict[bytes, tuple[bytes, ...]]:
        batches = (keys[begin : begin + BATCH] for begin in range(0, len(keys), BATCH))
        answers = (row for batch in batches for row in table.rows(batch))
        return {key: tuple(cells[FAMILY + b":" + each] for each in QUALIFIERS) for key, cells in answers}

    assert read(list(rows)) == rows
    assert [key for key, _ in table.scan()] == list(rows)
    (region,) = table.regions()
    refused = refused_by_bloom_filters(region["port"])
    missing = [key + b"?" for key in rows if len(key) < 1_000]
    assert read(missing) == {}
    wait_until(lambda: refused_by_bloom_filters(region["port"]) >= refused + 0.9 * len(missing))


def refused_by_bloom_filters(region_server_port: int) -> int:
    """Look-ups of this region server that needed no block of data. Now and then its counters are registered anew, and are not there for a moment."""
    query = "qry=Hadoop:service=HBase,name=RegionServer,sub=Server"
    beans: list[dict[str, int]] = []

    def are_told() -> bool:
        with urlopen(f"http://127.0.0.1:{region_server_port + 10}/jmx?{query}", timeout=30) as answer:
            beans[:] = json.load(answer)["beans"]
        return bool(beans)

    wait_until(are_told)
    return beans[0]["bloomFilterNegativeResultsCount"]
