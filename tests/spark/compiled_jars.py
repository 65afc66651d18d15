"""Jars of Java sources, compiled in the JVM of the tests: a Java runtime has no compiler, and Spark brings one along, which knows no lambdas and no generics."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

INTERFACE = """
package org.apache.hudi.utilities.transform;

public interface Transformer {
    org.apache.spark.sql.Dataset apply(org.apache.spark.api.java.JavaSparkContext jsc, org.apache.spark.sql.SparkSession spark,
        org.apache.spark.sql.Dataset rows, org.apache.hudi.common.config.TypedProperties properties);
}
"""
"""As Hudi's own, which is in a jar that Lakehub has no use for."""


def make_jar(spark: SparkSession, path: Path, *sources: str, known: tuple[str, ...] = ()) -> None:
    """Of each source, a file of Java, all classes. Later ones may use the earlier ones, and those of `known`, which the jar does not get."""
    java: Any = spark._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    with zipfile.ZipFile(path, "w") as jar:
        for source in (*known, *sources):
            compiler = java.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(loader)
            compiler.cook(source)
            loader = compiler.getClassLoader()
            if source in sources:
                for name, code in dict(compiler.getBytecodes()).items():
                    jar.writestr(f"{name.replace('.', '/')}.class", bytes(code))
