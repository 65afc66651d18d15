"""Columns of nested types in Spark: their type, a stored one in the type that it widens to, and what they are compared by."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ingestion.domain.column_types import ArrayOf, ColumnType, MapOf, Plain, StructOf, UnknownType, has_map

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
