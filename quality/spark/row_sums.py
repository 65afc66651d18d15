"""Sums over the rows of a frame, cut into cells, and the rows that are asked for: `quality.domain.difference.sums`, inside the JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quality.domain.difference.kept_sums import WithinCells
from quality.domain.difference.reconcile import WantedRows
from quality.domain.difference.records import Row
from quality.domain.difference.sums import KEY_SHIFT, ROW_MASK, CellSums, Hashes
from quality.spark.bloom import key_column, value_text

_HALVES = {"k_high": ("k", 1), "k_low": ("k", 9), "r_high": ("r", 1), "r_low": ("r", 9)}


def cell_sums(
    frame: DataFrame, key: Sequence[str], names: Sequence[str], depth: int, within: WithinCells | None
) -> CellSums:
    """One job. Raises UnsupportedKeyType, UnknownColumn."""
    digests = frame.select(F.md5(key_column(frame, key)).alias("k"), F.md5(key_column(frame, names)).alias("r"))
    rows = digests.select(*(_half(*of).alias(name) for name, of in _HALVES.items()))
    if within is not None:
        rows = rows.join(
            F.broadcast(_numbers(frame, within.prefixes)), _prefix(within.depth) == F.col("wanted"), "left_semi"
        )
    product = (_key_bits() * F.col("r_low").bitwiseAND(F.lit(ROW_MASK))).cast("decimal(20,0)")
    sums = rows.groupBy(_prefix(depth).alias("prefix")).agg(
        F.count(F.lit(1)), F.sum("r_high"), F.sum("r_low"), F.sum(product)
    )
    return _cell_sums(depth, sums.collect())


def fetch_rows(
    frame: DataFrame, key: Sequence[str], names: Sequence[str], wanted: WantedRows, *, longest: int, most_of_key: int
) -> Iterator[Row]:
    """The wanted rows; texts longer than `longest` are shown by their beginning and their MD5."""
    keyed = frame.withColumn("lakehub_k", F.md5(key_column(frame, key)))
    parted = keyed.withColumns({name: _half("lakehub_k", start) for name, (_, start) in list(_HALVES.items())[:2]})
    chosen = parted
    for number, (values, column) in enumerate(
        ((wanted.key_bits, _key_bits()), (wanted.prefixes, _prefix(wanted.depth)))
    ):
        listed = _numbers(frame, values).select(F.col("wanted").alias(f"wanted{number}"))
        chosen = chosen.join(F.broadcast(listed), column == F.col(f"wanted{number}"), "left")
    chosen = chosen.where("wanted0 IS NOT NULL OR wanted1 IS NOT NULL")
    texts = [_shown(value_text(frame, name), longest).alias(f"c{place}") for place, name in enumerate(names)]
    written = chosen.select(F.col("lakehub_k").alias("k"), F.md5(key_column(frame, names)).alias("r"), *texts)
    shown = [F.first(f"c{place}").alias(f"c{place}") for place in range(len(names))]
    counted = written.groupBy("k", "r").agg(F.count(F.lit(1)).alias("n"), *shown)
    place = F.expr("row_number() OVER (PARTITION BY k ORDER BY r)")
    for row in counted.withColumn("place", place).where(F.col("place") <= most_of_key).drop("place").collect():
        yield Row(int(row[0][:16], 16), int(row[1][:16], 16), tuple(row[3:]), row[2])


def _half(digest: str, start: int) -> Column:
    return F.conv(F.substring(digest, start, 8), 16, 10).cast("long")


def _prefix(depth: int) -> Column:
    return F.shiftright("k_high", 32 - depth)


def _key_bits() -> Column:
    return F.shiftleft("k_high", 32 - KEY_SHIFT) + F.shiftright("k_low", KEY_SHIFT)


def _numbers(frame: DataFrame, values: Hashes) -> DataFrame:
    return frame.sparkSession.createDataFrame([(value,) for value in values.tolist()], "wanted long")


def _shown(text: Column, longest: int) -> Column:
    length = F.length(text)
    short = F.concat(
        F.substring(text, 1, longest // 2), F.lit("... ("), length.cast("string"), F.lit(" characters, md5 "),
        F.md5(text), F.lit(")"),
    )  # fmt: skip
    return F.when(length > longest, short).otherwise(text)


def _cell_sums(depth: int, rows: Sequence[Sequence[int]]) -> CellSums:
    cells = np.zeros((len(rows), 4), np.uint64)
    for place, (prefix, count, high, low, product) in enumerate(rows):
        cells[place] = [prefix, count, ((high << 32) + low) % 2**64, int(product) % 2**64]
    return CellSums(depth, cells[:, 0], cells[:, 1:]).merged()
