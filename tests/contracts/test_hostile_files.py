"""Files that somebody wrote badly, or to do harm: what is no row is told, all others are read, and nothing takes the memory."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.sources import SOURCES, Chunk, SourceConfig, SourceError
from ingestion.sources.files.formats import delimited, json_lines
from ingestion.sources.files.formats.records import MAX_CHUNK_BYTES, MAX_COLUMNS, MAX_RECORD_BYTES
from ingestion.spark.loading.fitting import FitResult, FitRules, fit_rows
from lakehub.setup.locations import PACKAGES
from tests.contracts import damaged_parquet
from tests.fuzz_seed import REPEAT, SEED
from tests.polling import scaled

MEBIBYTE = 2**20


def chunks_of(folder: Path, content: bytes, ending: str) -> Iterator[Chunk]:
    (folder / f"rows.{ending}").write_bytes(content)
    return SOURCES.get("files")(SourceConfig(folder.as_uri(), f"rows.{ending}")).snapshot().batches


def fitted(folder: Path, content: bytes, ending: str) -> list[FitResult]:
    """What a job stores of it, with the types that are inferred."""
    (folder / f"rows.{ending}").write_bytes(content)
    source = SOURCES.get("files")(SourceConfig(folder.as_uri(), f"rows.{ending}"))
    rules = FitRules(source.schema())
    return [fit_rows(chunk, rules) for chunk in source.snapshot().batches]


def stored(results: list[FitResult], column: str) -> list[object]:
    return [value for result in results for value in result.rows[column].to_pylist()]


def rejected(results: list[FitResult]) -> list[tuple[str, str]]:
    """(reason, raw)"""
    return [(row.reason, row.raw) for result in results for row in result.rejected]


def test_one_byte_that_is_no_text_is_one_row_in_the_error_table(tmp_path: Path) -> None:
    csv_rows = fitted(tmp_path, b"id,name\n1,tea\n2,caf\xe9\n3,milk\n", "csv")
    json_rows = fitted(
        tmp_path, b'{"id": 1, "name": "tea"}\n{"id": 2, "name": "caf\xe9"}\n{"id": 3, "name": "milk"}\n', "jsonl"
    )
    escaped = fitted(
        tmp_path, b'{"id": 1, "name": "tea"}\n{"id": 2, "name": "\\ud800"}\n{"id": 3, "name": "milk"}\n', "jsonl"
    )
    for results in (csv_rows, json_rows, escaped):
        assert stored(results, "name") == ["tea", "milk"]
        ((reason, raw),) = rejected(results)
        assert "`name`" in reason
        assert raw.encode()  # can be written


def test_types_are_inferred_of_the_rows_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbfid,name,price\n1,caf\xe9,0.5\n2\n3,"two\nlines",7\n')
    schema = SOURCES.get("files")(SourceConfig(tmp_path.as_uri(), "a.csv")).schema()
    assert schema.types == {"id": "long", "name": "string", "price": "double"}


def test_a_long_field_is_a_field_and_what_is_longer_than_a_record_is_told(tmp_path: Path) -> None:
    long, too_long = "x" * 300_000, "y" * (MAX_RECORD_BYTES + 10)
    csv_rows = fitted(tmp_path, f"id,name\n1,{long}\n2,{too_long}\n3,z\n".encode(), "csv")
    lines = [{"id": 1, "name": long}, {"id": 2, "name": too_long}, {"id": 3, "name": "z"}]
    json_rows = fitted(tmp_path, "\n".join(map(json.dumps, lines)).encode(), "jsonl")
    for results in (csv_rows, json_rows):
        assert stored(results, "id") == [1, 3]
        ((reason, raw),) = rejected(results)
        assert f"longer than {MAX_RECORD_BYTES:,} bytes" in reason
        assert len(raw) < 11_000


def test_a_quote_that_is_never_closed_costs_its_own_line_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = fitted(tmp_path, b'id,name\n1,a\n2,"b\n3,c\n4,d\n', "csv")
    assert stored(results, "id") == [1, 3, 4]
    assert rejected(results) == [("a quote is opened and not closed: the file ends", '2,"b')]
    monkeypatch.setattr(delimited, "MAX_RECORD_BYTES", 20_000)
    far = b"".join(b"%d,c\n" % number for number in range(9_000))
    assert len(far) > 20_000
    results = fitted(tmp_path, b'id,name\n1,a\n-2,"b\n' + far + b'7,"b\n8,d\n', "csv")
    assert sum(result.rows.num_rows for result in results) == 9_002
    assert [raw for _, raw in rejected(results)] == ['-2,"b', '7,"b']


def test_quotes_that_are_never_closed_are_read_again_so_often_and_not_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these lines opens a quote wherever reading begins, so that each could cost a whole record."""
    monkeypatch.setattr(delimited, "MAX_RECORD_BYTES", 20_000)
    handed = 0
    take = delimited._Lines.__next__

    def counting(lines: delimited._Lines) -> str:
        nonlocal handed
        handed += 1
        return take(lines)

    monkeypatch.setattr(delimited._Lines, "__next__", counting)
    lines = 50_000
    list(chunks_of(tmp_path, b"a,b,c\n" + b'a,"b","c\n' * lines, "csv"))
    assert handed < 2 * (lines + 50 * 20_000 / 9 + 100)  # the columns are looked at first


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": ' + b"[" * 100_000,
        b'{"id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
        b'{"id": ' + b"9" * 5_000 + b"}",
        b'{"a\\ud800": 1}',
        b"\xff\xfe{\x00}\x00",
        b"nul",
        b'"text"',
    ],
    ids=["open", "closed", "objects", "a number of 5,000 digits", "half a character", "UTF-16", "no JSON", "no object"],
)
def test_a_line_that_is_no_row_is_told_and_all_after_it_is_read(tmp_path: Path, line: bytes) -> None:
    results = fitted(tmp_path, b'{"id": 1}\n' + line + b'\n{"id": 3}\n', "jsonl")
    assert stored(results, "id") == [1, 3]
    assert len(rejected(results)) == 1


@pytest.mark.parametrize("line", [b"2,a\rb", b'2,"a\nb"c\rd'])
def test_a_carriage_return_within_a_line_is_one_row_in_the_error_table(tmp_path: Path, line: bytes) -> None:
    results = fitted(tmp_path, b"id,name\n1,tea\n" + line + b"\n3,milk\n", "csv")
    assert {"tea", "milk"} <= set(stored(results, "name"))
    assert "carriage return" in rejected(results)[0][0]


def test_values_that_no_type_can_hold_are_rows_in_the_error_table(tmp_path: Path) -> None:
    texts = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(struct.pack("4i", 0, 1, 2, 3)), pa.py_buffer(b"a\xffb")]
    )
    columns = {
        "text": texts,
        "day": pa.array([0, 2**30, 1], pa.int32()).view(pa.date32()),
        "second": pa.array([0, 2**61, 1], pa.timestamp("ms")),
        "instant": pa.array([0, 2**61, 1], pa.timestamp("us", "UTC")),
    }
    for name, values in columns.items():
        written = io.BytesIO()
        pq.write_table(pa.table({"id": pa.array([1, 2, 3]), name: values}), written)
        results = fitted(tmp_path, written.getvalue(), "parquet")
        assert stored(results, "id") == [1, 3], name
        ((reason, raw),) = rejected(results)
        assert f"`{name}`" in reason
        assert raw.encode()


def test_a_decimal_that_is_wider_than_the_lakes_is_a_text(tmp_path: Path) -> None:
    written = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([Decimal(10) ** 60, None], pa.decimal256(70, 2))}), written)
    first, last = stored(fitted(tmp_path, written.getvalue(), "parquet"), "a")
    assert (Decimal(str(first)), last) == (Decimal(10) ** 60, None)


def test_brackets_in_texts_do_not_nest(tmp_path: Path) -> None:
    value = '[{"\\"' * 200
    results = fitted(tmp_path, json.dumps({"id": value}).encode(), "jsonl")
    assert stored(results, "id") == [value]
    assert json_lines._depth(json.dumps({"a": [[{"b": "]]]" * 90}]] * 60}).encode()) == 4


def test_columns_without_end_take_no_memory_without_end(tmp_path: Path) -> None:
    """Each line has names of its own: all rows by all columns would be 400 million cells."""
    lines = b"".join(
        json.dumps({f"c{number * 3 + more}": 1 for more in range(3)}).encode() + b"\n" for number in range(20_000)
    )
    tracemalloc.start()
    rows = broken = 0
    for chunk in chunks_of(tmp_path, lines, "jsonl"):
        rows, broken = rows + chunk.rows, broken + len(chunk.unreadable)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (rows, broken) == (MAX_COLUMNS // 3, 20_000 - MAX_COLUMNS // 3)
    assert most < 300 * MEBIBYTE
    with pytest.raises(SourceError, match=r"rows.csv cannot be read: its header has 6,000 columns; 5,000 are the most"):
        list(chunks_of(tmp_path, b",".join(b"c%d" % number for number in range(6_000)), "csv"))


def test_two_columns_of_one_name_are_refused_before_one_of_them_is_lost(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    for kind, content in {"csv": b"id,x,id\n1,2,3\n", "parquet": parquet(twice)}.items():
        with pytest.raises(
            SourceError, match=f"rows.{kind} cannot be read: it has more than one column with the name `id`"
        ):
            list(chunks_of(tmp_path, content, kind))
    (chunk,) = chunks_of(tmp_path, b"id,,\n1,,\n", "csv")
    assert chunk.rows == 1


def repeated(value: str, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([value]))


def parquet(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd", store_schema=False)
    return content.getvalue()


def avro(table: pa.Table) -> bytes:
    content = io.BytesIO()
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}]
    fastavro.writer(content, {"type": "record", "name": "row", "fields": fields}, table.to_pylist())
    return content.getvalue()


def test_a_file_of_few_bytes_is_handed_over_in_pieces_that_fit(tmp_path: Path) -> None:
    """5 kB that stand for 20 GB."""
    content = parquet(pa.table({"s": repeated("x" * MEBIBYTE, 20_000), "n": pa.array(range(20_000))}))
    assert len(content) < 200_000
    before, rows = pa.total_allocated_bytes(), 0
    for chunk in chunks_of(tmp_path, content, "parquet"):
        rows += chunk.rows
        assert pa.total_allocated_bytes() - before < 4 * MAX_CHUNK_BYTES
        if rows > 1_000:
            break
    assert chunk.columns["s"][0].as_py() == "x" * MEBIBYTE


def test_texts_in_lists_are_counted_too_and_a_row_that_is_too_large_is_told(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 300, 302]), repeated("x" * MEBIBYTE, 302).dictionary_decode())
    content = parquet(pa.table({"tags": lists, "id": [1, 2, 3]}))
    results = fitted(tmp_path, content, "parquet")
    assert stored(results, "id") == [1, 3]
    ((reason, raw),) = rejected(results)
    assert reason == f"the texts of the row take {298 * MEBIBYTE:,} bytes; {MAX_CHUNK_BYTES:,} are the most"
    assert "tags" in raw


def test_nested_values_of_one_row_group_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingestion.sources.files.formats.parquet.MAX_NESTED_VALUES", 10)
    content = parquet(pa.table({"tags": [[1] * 11]}))
    with pytest.raises(SourceError, match=r"`tags.list.element` has 11 values in one row group; 10 are the most"):
        list(chunks_of(tmp_path, content, "parquet"))


def test_nested_values_are_counted_in_the_pages_whatever_the_footer_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestion.sources.files.formats.parquet.MAX_NESTED_VALUES", 1_000)
    # The field of the footer that says 100,000, and the same as long that says 10.
    written, claimed = b"\x16\xc0\x9a\x0c", b"\x16\x94\x80\x00"
    whole = parquet(pa.table({"tags": [[7] * 100_000]}))
    pages, footer = whole[: -_footer_bytes(whole)], whole[-_footer_bytes(whole) :]
    assert footer.count(written) == 1
    with pytest.raises(
        SourceError, match=r"`tags.list.element` has [\d,]+ values in one row group; 1,000 are the most"
    ):
        list(chunks_of(tmp_path, pages + footer.replace(written, claimed), "parquet"))


def _footer_bytes(whole: bytes) -> int:
    return int.from_bytes(whole[-8:-4], "little") + 8


def test_texts_in_lists_and_structures_are_read_from_every_row_group(tmp_path: Path) -> None:
    rows = [
        {"tags": ["x", None, "yy"], "s": {"a": "u"}, "m": [("k", "v")]},
        {"tags": None, "s": {"a": None}, "m": []},
    ] * 30
    kinds = [
        ("tags", pa.list_(pa.string())),
        ("s", pa.struct([("a", pa.string())])),
        ("m", pa.map_(pa.string(), pa.string())),
    ]
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(kinds)), content, row_group_size=25)
    chunks = list(chunks_of(tmp_path, content.getvalue(), "parquet"))
    assert [chunk.rows for chunk in chunks] == [25, 25, 10]
    assert [row for chunk in chunks for row in pa.table(chunk.columns).to_pylist()] == rows


def test_nested_columns_are_as_they_were_written(tmp_path: Path) -> None:
    rows = [
        {"m": [("k", "v"), ("l", None)], "s": {"a": "x", "b": [{"c": "y"}]}, "t": "z", "b": b"\xff", "n": None},
        {"m": None, "s": None, "t": None, "b": None, "n": None},
        {"m": [], "s": {"a": None, "b": []}, "t": "z", "b": b"", "n": None},
    ]
    schema = pa.schema(
        [
            ("m", pa.map_(pa.string(), pa.string())),
            ("s", pa.struct([("a", pa.string()), ("b", pa.large_list(pa.struct([("c", pa.large_string())])))])),
            ("t", pa.large_string()),
            ("b", pa.binary()),
            ("n", pa.null()),
        ]
    )
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema), content)
    (chunk,) = chunks_of(tmp_path, content.getvalue(), "parquet")
    assert [{name: values[row].as_py() for name, values in chunk.columns.items()} for row in range(3)] == rows


@contextmanager
def suppress_refusal(words: str) -> Iterator[None]:
    try:
        yield
    except SourceError as refusal:
        if words not in str(refusal):
            raise


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "avro"])
def test_whatever_a_file_holds_it_is_read_or_refused_by_name(tmp_path: Path, ending: str) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    pieces = [
        b'"',
        b",",
        b"\n",
        b"\r\n",
        b"{",
        b"}",
        b"[",
        b"id",
        b"name",
        b":",
        b"1",
        b"\xe9",
        b"\x00",
        b'\\"',
        b"\xef\xbb\xbf",
        b"null",
        b"1e999",
        b"\\ud83d",
        b"'",
    ]
    read = 0
    for _ in range(60):
        body = b"".join(chance.choice(pieces) for _ in range(chance.randrange(300)))
        if ending in ("parquet", "avro"):
            rows = pa.table({"id": [1, 2, 3] * 50, "name": ["a", None, "c" * 40] * 50})
            whole = bytearray(parquet(rows) if ending == "parquet" else avro(rows))
            for _ in range(chance.choice([1, 2, 10])):
                whole[chance.randrange(len(whole))] = chance.randrange(256)
            body = bytes(whole)
        elif ending == "csv":
            body = b"id,name\n1,a\n" + body
        with suppress_refusal(f"rows.{ending} cannot be read"):
            results = fitted(tmp_path, body, ending)
            read += any(result.rows.num_rows or result.rejected for result in results)
    assert read


READS = """
import sys
from ingestion.sources.files.formats.parquet import ParquetFormat
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        try:
            ParquetFormat().schema(file)
        except (OSError, ValueError):
            pass
print("read")
"""


def test_damaged_statistics_end_no_process(tmp_path: Path) -> None:
    """Of a column whose level histograms are damaged, the library ends the whole process when it is asked for its numbers."""
    rows = pa.table({"id": [1, 2, 3] * 50, "name": ["a", None, "c" * 40] * 50})
    paths = []
    for seed in (125, 233):
        chance, whole = random.Random(seed), bytearray(parquet(rows))
        for _ in range(chance.choice([1, 2, 10])):
            whole[chance.randrange(len(whole))] = chance.randrange(256)
        paths.append(tmp_path / f"{seed}.parquet")
        paths[-1].write_bytes(whole)
    command = [sys.executable, "-c", READS, *map(str, paths)]
    ended = subprocess.run(command, cwd=PACKAGES, capture_output=True, text=True, timeout=scaled(60), check=False)
    assert ended.stdout == "read\n", ended.stderr[-500:]


def test_a_nested_file_with_a_changed_byte_anywhere_is_read_or_refused_by_name_and_ends_no_process(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", damaged_parquet.__name__, str(tmp_path), str(SEED)]
    ended = subprocess.run(command, cwd=PACKAGES, capture_output=True, text=True, timeout=scaled(120), check=False)
    assert ended.returncode == 0, f"{REPEAT}: {ended.stdout}{ended.stderr[-500:]}"
    counts = [int(number) for number in re.findall(r"(\d+) (?:read|refused)", ended.stdout)]
    assert min(counts) > 100


def test_a_chunk_is_bounded_by_its_bytes(tmp_path: Path) -> None:
    content = b"id,name\n" + b"".join(b"%d,%s\n" % (number, b"x" * MEBIBYTE) for number in range(100))
    sizes = [chunk.rows for chunk in chunks_of(tmp_path, content, "csv")]
    assert sum(sizes) == 100
    assert max(sizes) <= 64
