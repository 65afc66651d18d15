"""Classes of the operator's jars that are made for Hudi's interface `org.apache.hudi.utilities.transform.Transformer`, called in the JVM of the job."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from ingestion.spark.compiled_java import class_of
from ingestion.spark.etl.transformers.errors import BadTransformer, java_class
from ingestion.spark.etl.transformers.jars import JarCode, copied

_ARGUMENTS = (
    "org.apache.spark.api.java.JavaSparkContext",
    "org.apache.spark.sql.SparkSession",
    "org.apache.spark.sql.Dataset",
    "org.apache.hudi.common.config.TypedProperties",
)
_MISSING = ("java.lang.NoClassDefFoundError", "java.lang.ClassNotFoundException")


@dataclass(frozen=True)
class JvmTransformer:
    """`properties`: what its `apply` gets as such."""

    code: JarCode
    properties: Mapping[str, str]

    def __call__(self, rows: DataFrame) -> object:
        """Raises BadTransformer where the class cannot be used, and what it raises."""
        print(f"The transformer `{self.code.name}` is called.", file=sys.stderr, flush=True)
        spark: Any = rows.sparkSession
        apply, instance = self._loaded(spark)
        made = apply.invoke(instance, _array(spark, "Object", self._arguments(spark, rows)))
        return None if made is None else DataFrame(made.toDF(), spark)

    def _loaded(self, spark: Any) -> tuple[Any, Any]:
        """Its method, and what it is called on. By names, so that the interface need not be known here."""
        java = spark._jvm
        try:
            _add_jars(spark, self.code, Path(java.java.lang.System.getProperty("java.io.tmpdir")))
            loaded = class_of(java, self.code.class_name)
            apply = loaded.getMethod("apply", _array(spark, "Class", [class_of(java, name) for name in _ARGUMENTS]))
            constructor = loaded.getDeclaredConstructor(_array(spark, "Class", []))
            for each in (apply, constructor):
                each.setAccessible(True)
            return apply, constructor.newInstance(_array(spark, "Object", []))
        except Py4JJavaError as problem:
            print(problem, file=sys.stderr)
            raise BadTransformer(
                f"The transformer `{self.code.name}` cannot be loaded: {_reason(problem)} Nothing was written."
            ) from problem

    def _arguments(self, spark: Any, rows: DataFrame) -> list[Any]:
        properties = spark._jvm.org.apache.hudi.common.config.TypedProperties()
        for name, text in self.properties.items():
            properties.setProperty(name, text)
        return [spark.sparkContext._jsc, spark._jsparkSession, rows._jdf, properties]


def _add_jars(spark: Any, code: JarCode, folder: Path) -> None:
    """To the driver and to the executors, for as long as the JVM is there; this thread of it loads classes from them."""
    for path in copied(code, folder):
        spark._jsparkSession.sessionState().resourceLoader().addJar(str(path))


def _array(spark: SparkSession, kind: str, values: list[Any]) -> Any:
    """Of `java.lang`."""
    gateway: Any = spark.sparkContext._gateway
    array = gateway.new_array(getattr(gateway.jvm.java.lang, kind), len(values))
    for number, value in enumerate(values):
        array[number] = value
    return array


def _reason(problem: Py4JJavaError) -> str:
    kind, cause = java_class(problem)
    if kind in _MISSING:
        # The name of a class is no value of a row.
        return f"it needs the class `{str(cause.getMessage()).replace('/', '.')}`, which no jar has. Name the jar that has it in `jars`."
    if kind == "java.lang.NoSuchMethodException":
        return "it needs a constructor without arguments, and `apply(JavaSparkContext, SparkSession, Dataset, TypedProperties)` as Hudi's interface `Transformer` has it."
    return f"{kind}. The log of the worker has its words."
