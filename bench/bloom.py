"""Two copies of a table compared by sums of cells, by Bloom filter, by exact anti-join and by row count: time, bytes moved, records found.

10 million keys a side (1 million with --quick). One copy lost 1,000 records, doubled 1,000 others, so that the row counts
agree, and has other values in 1,000. A key is an opaque record id of 32 characters and a day. What a method has to move between the
data centers: a number, the filters, sums and the records that differ, or the columns of the key. reladiff runs in an environment of
its own (`python -m bench.peers`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import DataFrame

from bench import peers
from bench.harness import ChildFailed, Report, cached, child, run
from bench.peers import PeersNotInstalled
from ingestion.spark.session import close_session
from lakehub.catalog.metadata.tables import HudiCopy
from quality.cross_source.methods.bloom_match import matching
from quality.cross_source.methods.row_difference import difference
from quality.domain.bloom.filters import FilterShape, PybloomFilter
from quality.domain.bloom.keys import encode_key
from quality.domain.language.measures import Measure
from quality.engines import ENGINES
from quality.engines.scans.parts import WholeTable
from quality.engines.scans.scan import Limits
from tests.hudi_tables import hudi_table

KEY = ("record", "flight_date")
KEYS, QUICK_KEYS, QUICK_PEER_KEYS = 10_000_000, 1_000_000, 200_000
PLANTED = 1_000
PYBLOOM_KEYS = 100_000
TURNS = 3
LIMITS = Limits()


@dataclass(frozen=True)
class CopyPair:
    """`here` lost records, doubled and changed others, `there` has each once; their URIs, and the bytes of the columns of the key."""

    keys: int
    here: str
    there: str
    key_bytes: int

    @property
    def every(self) -> int:
        return self.keys // PLANTED


@dataclass(frozen=True)
class Method:
    """`found_count` records that are missing, doubled or changed, of which `named` by their keys; `false` ones are none of it."""

    name: str
    seconds: float
    moved: float
    found_count: int
    named: int
    false: int = 0

    def cells(self) -> list[object]:
        moved = "8 B" if self.moved < 100 else f"{self.moved / 1e6:,.1f} MB"
        return [self.name, f"{self.seconds:.2f}", moved, f"{self.found_count:,}", f"{self.named:,}"]


def bench(report: Report) -> None:
    data = copies_with_missing_rows(QUICK_KEYS if report.quick else KEYS)
    report.print_line(
        f"{data.keys:,} keys of {', '.join(KEY)} a side; {PLANTED:,} lost here, {PLANTED:,} doubled, {PLANTED:,} changed"
    )
    methods = [*methods_without_jvm(data), *methods_with_spark(data)]
    headings = ["method", "s", "moved", f"found of {3 * PLANTED:,}", "named"]
    report.table("Records that are missing, doubled or changed", headings, [method.cells() for method in methods])
    for method in methods:
        report.figure(f"{_slug(method.name)}_s", method.seconds)
        report.figure(f"{_slug(method.name)}_bytes", method.moved)
        report.figure(f"{_slug(method.name)}_found", method.found_count)
    whole = [method for method in methods if "Bloom" in method.name and "10%" not in method.name]
    report.at_least(
        "missing records found by Bloom filter", min(method.found_count for method in whole) / PLANTED, 0.99
    )
    report.at_most(
        "records called missing, doubled or changed that are not", sum(method.false for method in methods), 0
    )
    report.at_most(
        "bytes moved by Bloom filter, of those of the keys", max(method.moved for method in whole) / data.key_bytes, 1
    )
    _promise_differences(report, {method.name: method for method in methods}, data)
    _compare_with_reladiff(report)
    _compare_builders(report)


def _promise_differences(report: Report, methods: Mapping[str, Method], data: CopyPair) -> None:
    ours, joined = methods["difference, DuckDB"], methods["exact anti-join, DuckDB"]
    report.at_least("differing records named by sums of cells", ours.named / (3 * PLANTED), 1)
    report.at_most("its time, of that of the exact anti-join in DuckDB", ours.seconds / joined.seconds, 2, unit="x")
    report.at_most("its bytes, of those of the keys", ours.moved / data.key_bytes, 1 / 500)
    whole = methods["Bloom, DuckDB and numpy"]
    report.at_most("time by Bloom filter, of that of the anti-join", whole.seconds / joined.seconds, 5, unit="x")


def _compare_with_reladiff(report: Report) -> None:
    """Over fewer keys: it fetches more the more parts of the table differ."""
    data = copies_with_missing_rows(QUICK_PEER_KEYS if report.quick else QUICK_KEYS)
    try:
        peer = _run_reladiff(data)
    except (PeersNotInstalled, ChildFailed) as problem:
        report.print_line(f"\nreladiff: {problem}")
        return
    ours = _run_difference(data, "duckdb", "difference, DuckDB")
    portable = _run_difference(data, "duckdb", "difference by MD5, DuckDB", portable=True)
    rows = [[method.name, f"{method.seconds:.2f}", f"{method.found_count:,}"] for method in (peer, portable, ours)]
    report.table(f"{data.keys:,} keys a side", ["method", "s", f"found of {3 * PLANTED:,}"], rows)
    report.figure("reladiff_s", peer.seconds)
    report.figure("reladiff_found", peer.found_count)
    report.at_most("time by sums of cells, of that of reladiff", ours.seconds / peer.seconds, 1, unit="x")
    report.at_most("the same by MD5", portable.seconds / peer.seconds, 1, unit="x")


def _run_reladiff(data: CopyPair) -> Method:
    """Into tables of DuckDB's own first, which is not measured: it reads no files. Its best case, a key that is a whole number in
    the order of the rows."""
    database = cached("reladiff") / f"{data.keys}.duckdb"
    columns = ("record", "flight_date", "delay")
    if not database.exists():
        with duckdb.connect(str(database)) as connection:
            for name, source in _sources(data).items():
                selected = f"number::BIGINT AS number, record, flight_date, delay::BIGINT AS delay FROM {source}"
                connection.execute(f"CREATE TABLE {name} AS SELECT {selected} ORDER BY number")  # our own text
    command: list[str | Path] = [
        peers.python(peers.RELADIFF_REQUIREMENTS),
        "-m",
        "bench.contenders.reladiff_tables",
        str(database),
        "here",
        "there",
        ",".join(columns),
        "number",
    ]
    output = child(command, environ=peers.environ(), timeout_s=900).output
    # A changed record is a pair. What was doubled, it may take for one row.
    lost = output["lacking"] + output["more"]
    return Method(f"reladiff {output['version']}", output["seconds"], 0, min(lost - PLANTED, 3 * PLANTED), 0)


def copies_with_missing_rows(keys: int) -> CopyPair:
    """Two Hudi tables, made once into the cache."""
    folder = cached(f"differing-records-{keys}")
    number = f"i % {keys // PLANTED}"
    rows = {
        "here": f"{_rows_query(keys, f'{number} <> 7', changed=f'{number} = 9')} UNION ALL {_rows_query(keys, f'{number} = 8')}",
        "there": _rows_query(keys, "true"),
    }
    with duckdb.connect() as connection:
        for name, text in rows.items():
            if not (folder / f"{name}.made").exists():
                hudi_table(folder / name, {None: connection.sql(text).to_arrow_table()}, key=",".join(KEY))
                (folder / f"{name}.made").touch()
        size = _size_of_keys(connection, folder / "there")
    return CopyPair(keys, (folder / "here").as_uri(), (folder / "there").as_uri(), size)


def _rows_query(keys: int, which: str, changed: str = "false") -> str:
    return f"""
        SELECT md5(i::VARCHAR) AS record, strftime(DATE '2013-01-01' + (i % 365)::INT, '%Y-%m-%d') AS flight_date,
               i AS number,
               CASE WHEN {changed} THEN 5000::UBIGINT ELSE hash(i) % 1000 END AS delay
        FROM range({keys}) made(i) WHERE {which}
    """  # noqa: S608  # our own numbers


def _size_of_keys(connection: duckdb.DuckDBPyConnection, table: Path) -> int:
    """The compressed bytes of the columns of the key, which an anti-join has to bring over."""
    query = (
        f"SELECT sum(total_compressed_size) FROM parquet_metadata('{table}/*.parquet') WHERE path_in_schema IN {KEY}"  # noqa: S608
    )
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


def methods_without_jvm(data: CopyPair) -> list[Method]:
    """The least of some turns in which all of them are run: so that they meet the same machine."""
    turns = [_turn_without_jvm(data) for _ in range(TURNS)]
    return [min(runs, key=lambda method: method.seconds) for runs in zip(*turns, strict=True)]


def _turn_without_jvm(data: CopyPair) -> list[Method]:
    files = _sources(data)
    anti = f"SELECT {', '.join(KEY)} FROM {files['there']} AS there ANTI JOIN {files['here']} AS here USING ({', '.join(KEY)})"  # noqa: S608
    with duckdb.connect(config={"threads": LIMITS.threads}) as connection:
        counts, counted = _timed(
            lambda: [connection.execute(f"SELECT count(*) FROM {source}").fetchone() for source in files.values()]  # noqa: S608
        )
        missing, joined = _timed(lambda: connection.execute(anti).fetchall())
    here, there = (row[0] for row in counts if row is not None)
    return [
        Method("row counts", counted, 8, max(there - here, 0), 0),
        Method("exact anti-join, DuckDB", joined, data.key_bytes, len(missing), len(missing)),
        _run_difference(data, "duckdb", "difference, DuckDB"),
        _run_difference(data, "duckdb", "difference by MD5, DuckDB", portable=True),
        _run_filter(data, "duckdb", "Bloom, DuckDB and numpy", 1),
        _run_filter(data, "duckdb", "Bloom of 10%, DuckDB and numpy", 0.1),
    ]


def methods_with_spark(data: CopyPair) -> list[Method]:
    from quality.spark.session import quality_session

    spark = quality_session()
    try:
        here, there = (spark.read.format("hudi").load(uri) for uri in _table_uris(data).values())
        here.limit(1).count()
        filtered = _run_filter(data, "spark", "Bloom, Spark", 1)
        missing, joined = _timed(lambda: _anti_join(here, there))
        return [Method("exact anti-join, Spark", joined, data.key_bytes, missing, missing), filtered]
    finally:
        close_session(spark)


def _anti_join(here: DataFrame, there: DataFrame) -> int:
    return there.select(*KEY).join(here.select(*KEY), list(KEY), "left_anti").count()


def _sources(data: CopyPair) -> dict[str, str]:
    """The tables as DuckDB names them."""
    return {name: f"read_parquet('{uri.removeprefix('file://')}/*.parquet')" for name, uri in _table_uris(data).items()}


def _run_difference(data: CopyPair, engine: str, name: str, *, portable: bool = False) -> Method:
    """The exchange of the tests `difference@dc`; `portable`: as if the other side were another engine."""
    here, there = (
        ENGINES.get(engine)().row_endpoint(HudiCopy(uri), WholeTable(), LIMITS) for uri in _table_uris(data).values()
    )
    if portable:
        here.native_hash = ""
    answer, seconds = _timed(lambda: difference(Measure("difference", KEY), here, there))
    assert isinstance(answer, Mapping), answer
    planted = {
        (kind, md5(b"%d" % number, usedforsecurity=False).hexdigest())
        for first, kind in ((7, "missing"), (8, "doubled"), (9, "changed"))
        for number in range(first, data.keys, data.every)
    }
    named = {(record["kind"], record["key"]["record"]) for record in answer["differences"]}
    return Method(
        name, seconds, answer["report"]["bytes_moved"], answer["differing"], len(named & planted), len(named - planted)
    )


def _table_uris(data: CopyPair) -> dict[str, str]:
    return {"here": data.here, "there": data.there}


def _run_filter(data: CopyPair, engine: str, name: str, share: float) -> Method:
    """The exchange that the tests run: both ways, and with the measuring of its own false positives."""
    here, there = (
        ENGINES.get(engine)().endpoint(HudiCopy(uri), WholeTable(), KEY, LIMITS) for uri in _table_uris(data).values()
    )
    answer, seconds = _timed(lambda: matching(Measure("matching", KEY, values=(share,)), here, there))
    assert isinstance(answer, Mapping), answer
    lost = {md5(b"%d" % number, usedforsecurity=False).hexdigest() for number in range(7, data.keys, data.every)}
    false = sum(example["record"] not in lost for example in answer["missing"])
    found_count = answer["keys"] - answer["matching"]
    return Method(name, seconds, answer["report"]["bytes_moved"], found_count, len(answer["missing"]), false)


def _compare_builders(report: Report) -> None:
    """Why numpy and not pybloom-live, where there is no JVM."""
    from quality.domain.bloom.filters import SparkBloomFilter
    from quality.domain.bloom.keys import hash_keys

    keys = [encode_key(["UA", number, "2013-01-01"]) for number in range(PYBLOOM_KEYS)]
    spark_filter, pybloom_filter = (
        SparkBloomFilter(FilterShape.for_keys(PYBLOOM_KEYS, 0.001)),
        PybloomFilter.for_keys(PYBLOOM_KEYS, 0.001),
    )
    rows = []
    steps: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("numpy", lambda: spark_filter.add(hash_keys(keys)), lambda: spark_filter.might_contain(keys)),
        ("pybloom-live", lambda: pybloom_filter.add(keys), lambda: pybloom_filter.might_contain(keys)),
    ]
    for name, build, probe in steps:
        speeds = [PYBLOOM_KEYS / _timed(step)[1] for step in (build, probe)]
        rows.append([name, *(f"{speed / 1e6:.2f}" for speed in speeds)])
        report.figure(f"{_slug(name)}_keys_built_per_s", speeds[0])
    report.table(f"Without a JVM: million keys a second, of {PYBLOOM_KEYS:,}", ["layout by", "built", "probed"], rows)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.perf_counter()
    return work(), time.perf_counter() - begun


def _slug(name: str) -> str:
    return "_".join(name.lower().replace(",", "").replace("%", "").replace("-", " ").split())


def main() -> int:
    return run("bloom", bench, __doc__)


if __name__ == "__main__":
    raise SystemExit(main())
