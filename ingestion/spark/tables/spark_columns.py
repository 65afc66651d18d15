"""Columns in Spark: their type, a stored one in the type that it widens to, what those of nested types are compared by, and numbers without a negative zero."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ingestion.domain.column_types import ArrayOf, ColumnType, MapOf, Plain, StructOf, UnknownType, has_map

TIMES_IN_FULL = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options of texts in JSON. By themselves they have milliseconds: rows that differ by less would be alike."""
_PLAIN_NAMES = {"bigint": "long", "smallint": "int", "tinyint": "int", "timestamp_ntz": "timestamp"}


def type_of_spark(spark_type: T.DataType) -> ColumnType:
    match spark_type:
        case T.ArrayType():
            return ArrayOf(type_of_spark(spark_type.elementType))
        case T.MapType() if isinstance(spark_type.keyType, T.StringType):
            return MapOf(type_of_spark(spark_type.valueType))
        case T.MapType():
            raise UnknownType(f"`{spark_type.simpleString()}` has keys that are no texts.")
        case T.StructType():
            return StructOf(tuple((field.name, type_of_spark(field.dataType)) for field in spark_type.fields))
    name = spark_type.simpleString()
    return Plain(_PLAIN_NAMES.get(name, name))


def as_type(column: Column, stored: ColumnType, target: ColumnType) -> Column:
    """`target` is `stored` or wider. Spark itself casts no structure to one with more fields."""
    match stored, target:
        case _ if stored == target:
            return column
        case StructOf(), StructOf(fields):
            there = stored.types
            parts = [
                (as_type(column[name], there[name], field) if name in there else F.lit(None).cast(str(field))).alias(
                    name
                )
                for name, field in fields
            ]
            return F.when(column.isNotNull(), F.struct(*parts))
        case ArrayOf(old), ArrayOf(new):
            return F.transform(column, lambda element: as_type(element, old, new))
        case MapOf(old), MapOf(new):
            return F.transform_values(column, lambda key, value: as_type(value, old, new))
    return column.cast(str(target))


def comparable(column: Column, type_: ColumnType) -> Column:
    """Spark does not compare maps: each is the list of its entries, in the order of their keys."""
    match type_:
        case _ if not has_map(type_):
            return column
        case MapOf(value):
            inner = F.transform_values(column, lambda key, item: comparable(item, value)) if has_map(value) else column
            return F.array_sort(F.map_entries(inner))
        case ArrayOf(element):
            return F.transform(column, lambda item: comparable(item, element))
        case StructOf(fields):
            parts = [comparable(column[name], field).alias(name) for name, field in fields]
            return F.when(column.isNotNull(), F.struct(*parts))
    raise AssertionError(type_)


def without_negative_zeros(rows: DataFrame) -> DataFrame:
    """-0.0 becomes 0.0, within structures too. GROUP BY, DISTINCT, joins and windows take both for one number, but as texts they differ."""
    types = {field.name: field.dataType for field in rows.schema.fields if _has_floats(field.dataType)}
    values = {name: _without_negative_zero(F.col(f"`{name}`"), type_) for name, type_ in types.items()}
    return rows.withColumns(values) if values else rows


def _has_floats(type_: T.DataType) -> bool:
    match type_:
        case T.ArrayType():
            return _has_floats(type_.elementType)
        case T.MapType():
            return _has_floats(type_.valueType)
        case T.StructType():
            return any(_has_floats(field.dataType) for field in type_.fields)
    return isinstance(type_, T.FloatType | T.DoubleType)


def _without_negative_zero(column: Column, type_: T.DataType) -> Column:
    match type_:
        case _ if not _has_floats(type_):
            return column
        case T.ArrayType():
            return F.transform(column, lambda item: _without_negative_zero(item, type_.elementType))
        case T.MapType():
            return F.transform_values(column, lambda _, item: _without_negative_zero(item, type_.valueType))
        case T.StructType():
            parts = [
                _without_negative_zero(column[field.name], field.dataType).alias(field.name) for field in type_.fields
            ]
            return F.when(column.isNotNull(), F.struct(*parts))
    return column + F.lit(0).cast(type_)  # by IEEE 754, -0.0 + 0.0 is 0.0
