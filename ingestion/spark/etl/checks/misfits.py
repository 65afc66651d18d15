"""Values that the SELECT makes and the types of table.sql do not hold: a cast makes them null, or another number. They are flagged in the rows that are staged, and the run refuses them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ingestion.domain.column_types import STRING, ColumnType, Plain, is_plain_widening, parse_type
from ingestion.spark.etl.checks.words import misfits_in_rows
from ingestion.spark.tables.spark_columns import type_of_spark

MISFIT = "_lakehub_misfit"
"""A column of staged rows: the name of the first column whose value does not fit."""
_AS_DECIMAL = {"int": Plain("decimal(10,0)"), "long": Plain("decimal(19,0)")}


def misfit_flag(rows: DataFrame, sources: Mapping[str, str], types: Mapping[str, str]) -> Column | None:
    """`sources`: by column of the target the one of `rows` that it comes from. None: every value fits."""
    made = {field.name: field.dataType for field in rows.schema.fields}
    flags = [
        F.when(misfit, F.lit(name))
        for name, type_ in types.items()
        if (misfit := _does_not_fit(sources[name], made[sources[name]], parse_type(type_))) is not None
    ]
    return F.coalesce(*flags).alias(MISFIT) if flags else None


def misfits_in_words(rows: DataFrame, types: Mapping[str, str]) -> str:
    """Of rows with the flag; empty: there are none."""
    counts = rows.where(F.col(MISFIT).isNotNull()).groupBy(MISFIT).count().sort(MISFIT).collect()
    return misfits_in_rows({row[MISFIT]: row["count"] for row in counts}, types)


def _does_not_fit(name: str, spark_type: T.DataType, target: ColumnType) -> Column | None:
    """None: any value fits, or the cast only cuts it, as a time to its day."""
    if not isinstance(spark_type, T.StringType | T.NumericType) or not isinstance(target, Plain):
        return None
    value, source = F.col(f"`{name}`"), type_of_spark(spark_type)
    assert isinstance(source, Plain)
    if source == STRING:
        return None if target.name in ("string", "binary") else value.isNotNull() & value.cast(target.name).isNull()
    is_wider = is_plain_widening(_AS_DECIMAL.get(source.name, source) if target.decimal else source, target)
    if is_wider or not (target.decimal or target.name in ("int", "long")):
        return None
    # A cast makes of a number that is too large another, of the bits that there is room for.
    return value.isNotNull() & F.expr(f"try_cast(`{name}` AS {target.name}) IS NULL")
