"""Two functions for SQL in our Spark sessions.

    SELECT build_bloom_filter(carrier, flight, flight_date) FROM flights        -- the filter as a portable string
    SELECT use_bloom_filter('lakehub-bloom:1;...', carrier, flight, flight_date) FROM flights
    SELECT use_bloom_filter((SELECT build_bloom_filter(id) FROM here), id) AS found FROM there WHERE found <> 'exists'

`build_bloom_filter(key, ...)` is an aggregate, null of no rows; it is sized by `lakehub.bloom.items` (1,000,000 keys) and
`lakehub.bloom.fpr` (0.001), which `SET` changes. `use_bloom_filter(filter, key, ...)` is `exists` for a key that the filter has,
else the record: the key as a JSON object. A null filter has no keys.

Each is put together from Spark's own expressions when a query is analysed, and runs inside the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, _parse_datatype_json_string

from quality.domain.bloom.filters import SPARK, FilterShape, encode_head
from quality.spark.bloom import contains_key, filter_bits, key_text, might_contain

EXISTS = "exists"
ITEMS, FPR = "lakehub.bloom.items", "lakehub.bloom.fpr"
_DEFAULTS = {ITEMS: "1000000", FPR: "0.001"}


class BadFunctionCall(ValueError):
    """A call that makes no sense; says what is wanted."""


def register_bloom_functions(spark: SparkSession) -> None:
    """Makes both known to the session. Doing it again changes nothing."""
    for name, build in (("build_bloom_filter", _build_bloom_filter), ("use_bloom_filter", _use_bloom_filter)):
        _register(spark, name, build)


def _build_bloom_filter(spark: SparkSession, args: Sequence[Any]) -> Column:
    items, fpr = (spark.conf.get(name, usual) for name, usual in _DEFAULTS.items())
    shape = FilterShape.for_keys(int(items or 0), float(fpr or 0))
    bits = filter_bits(spark, F.xxhash64(_key(spark, args)), shape)
    return F.concat(
        F.lit(encode_head(SPARK, shape)),
        F.count(F.lit(1)).cast("string"),
        F.lit(";data=base64;"),
        # Spark 3.5 breaks it into lines.
        F.replace(F.base64(bits), F.lit("\r\n"), F.lit("")),
    )


def _use_bloom_filter(spark: SparkSession, args: Sequence[Any]) -> Column:
    if len(args) < 2:
        raise BadFunctionCall(
            "use_bloom_filter wants a filter and the columns of a key: use_bloom_filter(filter, key, ...)."
        )
    given, *key = args
    return F.when(F.coalesce(_is_in_filter(spark, given, key), F.lit(False)), EXISTS).otherwise(_record(spark, key))


def _is_in_filter(spark: SparkSession, given: Any, key: Sequence[Any]) -> Column:
    text = _key(spark, key)
    if given.foldable():
        value = given.eval(None)
        return F.lit(False) if value is None else contains_key(spark, str(value.toString()), text, F.xxhash64(text))
    if given.getClass().getSimpleName() == "ScalarSubquery":
        return might_contain(spark, _column(spark, _bits_within(spark, given)), F.xxhash64(text))
    raise BadFunctionCall(
        "The filter of use_bloom_filter is a text or a scalar subquery, not a column: it must be the same for all rows."
    )


def _bits_within(spark: SparkSession, subquery: Any) -> Any:
    """The subquery with the bits of its filter in place of the text, for the JVM wants them so."""
    java: Any = spark._jvm
    text = _column(spark, subquery.plan().output().head())
    bits = F.unbase64(F.substring_index(text, ";", -1)).alias("bits")._jc.named()
    project = java.org.apache.spark.sql.catalyst.plans.logical.Project
    return subquery.withNewPlan(project(_seq(spark, [bits]), subquery.plan()))


def _record(spark: SparkSession, key: Sequence[Any]) -> Column:
    named = (_column(spark, argument).alias(_name(argument, place)) for place, argument in enumerate(key, start=1))
    return F.to_json(F.struct(*named), {"ignoreNullFields": "false"})


def _key(spark: SparkSession, args: Sequence[Any]) -> Column:
    if not args:
        raise BadFunctionCall("Name the columns of the key: build_bloom_filter(key, ...).")
    return key_text(
        [
            (_name(argument, place), _column(spark, argument), _data_type(argument))
            for place, argument in enumerate(args, start=1)
        ]
    )


def _name(expression: Any, place: int) -> str:
    """What a column is called; another expression is called by its place."""
    return str(expression.name()) if expression.getClass().getSimpleName() == "AttributeReference" else f"key{place}"


def _data_type(expression: Any) -> DataType:
    return _parse_datatype_json_string(expression.dataType().json())


def _column(spark: SparkSession, expression: Any) -> Column:
    java: Any = spark._jvm
    return Column(java.org.apache.spark.sql.Column(expression))


def _seq(spark: SparkSession, items: Sequence[Any]) -> Any:
    java: Any = spark._jvm
    return java.PythonUtils.toSeq(list(items))


def _register(spark: SparkSession, name: str, build: Callable[[SparkSession, Sequence[Any]], Column]) -> None:
    java: Any = spark._jvm
    session: Any = spark._jsparkSession
    registry, identifier = (
        session.sessionState().functionRegistry(),
        java.org.apache.spark.sql.catalyst.FunctionIdentifier(name),
    )
    if not registry.functionExists(identifier):
        info = java.org.apache.spark.sql.catalyst.expressions.ExpressionInfo("lakehub", name)
        registry.registerFunction(identifier, info, _FunctionBuilder(spark, build))


class _FunctionBuilder:
    """Called by the analyser, in the thread that asked for the query, with the arguments as resolved expressions."""

    def __init__(self, spark: SparkSession, build: Callable[[SparkSession, Sequence[Any]], Column]) -> None:
        self._spark = spark
        self._build = build

    def apply(self, args: Any) -> Any:
        try:
            column = self._build(self._spark, [args.apply(place) for place in range(args.size())])
        except ValueError as wrong:
            # Raised from here it would be a trace of Java and Python.
            column = F.raise_error(F.lit(str(wrong))).cast("string")
        return column._jc.expr()

    class Java:
        implements = ("scala.Function1",)
