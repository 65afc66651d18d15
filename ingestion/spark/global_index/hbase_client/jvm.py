"""HBase's own client, in the driver's JVM: in a class loader of its own, and asked through classes of ours that are compiled there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from ingestion.index.client import IndexUnavailable
from ingestion.index.error_words import in_words
from ingestion.index.outages import is_outage
from ingestion.spark.session import jvm

JARS_VARIABLE = "LAKEHUB_HBASE_JARS"
ENDS_SOON = {
    "zookeeper.session.timeout": "10000",
    "zookeeper.recovery.retry": "1",
    "zookeeper.recovery.retry.intervalmill": "200",
    "hbase.client.retries.number": "5",
    "hbase.client.pause": "500",
    "hbase.rpc.timeout": "20000",
    "hbase.client.operation.timeout": "40000",
    "hbase.client.meta.operation.timeout": "40000",
    "hbase.client.scanner.timeout.period": "20000",
}
"""Milliseconds, and how often. By HBase's own, a call to a cluster that is away is tried again for 20 minutes. To wait until all regions of a new table are
open has a limit of its own, ten minutes."""

_SESSION = r"""
package lakehub;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

public abstract class HBaseSession {
    protected final Configuration configuration;
    protected final Connection connection;

    protected HBaseSession(String settings) throws IOException {
        ClassLoader before = enter();
        try {
            configuration = HBaseConfiguration.create();
            configuration.setClassLoader(HBaseSession.class.getClassLoader());
            set(configuration, settings);
            connection = ConnectionFactory.createConnection(configuration);
        } finally {
            leave(before);
        }
    }

    protected static void set(Configuration configuration, String settings) {
        String[] words = settings.split("\0", -1);
        for (int place = 0; place + 1 < words.length; place += 2) {
            configuration.set(words[place], words[place + 1]);
        }
    }

    // HBase finds services by the thread's class loader. Spark, Hadoop and Hudi do so too, on the same thread, and must not see HBase's jars.
    protected static ClassLoader enter() {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(HBaseSession.class.getClassLoader());
        return before;
    }

    protected static void leave(ClassLoader before) {
        Thread.currentThread().setContextClassLoader(before);
    }
}
"""
_OF_MANY_ROWS = "RetriesExhaustedWithDetailsException"


JavaProblem = (Py4JJavaError, CapturedException)
"""Errors of Java: some of its own classes come as those that PySpark has made of them, whoever raised them."""


class HBaseJarsNotFound(LookupError):
    """HBase's client is not known to this driver."""


class RefusedByHBase(ValueError):
    """HBase answers, and does not do it: as somebody may not, or a file is damaged."""


def packed_settings(settings: Mapping[str, str]) -> str:
    return "\0".join(part for setting in settings.items() for part in setting)


def constructor(spark: SparkSession, name: str, source: str) -> Callable[[Mapping[str, str]], Any]:
    """Of the class `lakehub.<name>`, an `HBaseSession`, compiled once in each JVM: settings of HBase's client -> an instance. Raises HBaseJarsNotFound."""
    context: Any = spark.sparkContext
    compiled = _compiled(spark, name, source)

    def make(settings: Mapping[str, str]) -> Any:
        arguments = context._gateway.new_array(jvm(spark).java.lang.Object, 1)
        arguments[0] = packed_settings(settings)
        return compiled.newInstance(arguments)

    return make


def kept(spark: SparkSession) -> Any:
    """What lives as long as the JVM, by name."""
    java: Any = jvm(spark)
    return java.java.lang.System.getProperties()


def _compiled(spark: SparkSession, name: str, source: str) -> Any:
    known, key = kept(spark), f"lakehub.hbase.{name}"
    if known.get(key) is None:
        known.put(key, _compile(spark, name, source, _kept_session(spark).getClassLoader()).getConstructors()[0])
    return known.get(key)


def _kept_session(spark: SparkSession) -> Any:
    """The class that the others are subclasses of."""
    known, key = kept(spark), "lakehub.hbase"
    if known.get(key) is None:
        known.put(key, _compile(spark, "HBaseSession", _SESSION, _loader(spark)))
    return known.get(key)


def _compile(spark: SparkSession, name: str, source: str, parent: Any) -> Any:
    compiler = jvm(spark).org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(f"lakehub.{name}")


def _loader(spark: SparkSession) -> Any:
    """HBase's jars over Spark's own."""
    context: Any = spark.sparkContext
    java: Any = jvm(spark)
    jars = hbase_jars(os.environ)
    urls = context._gateway.new_array(java.java.net.URL, len(jars))
    for place, jar in enumerate(jars):
        urls[place] = java.java.io.File(jar).toURI().toURL()
    parent = java.java.lang.Thread.currentThread().getContextClassLoader()
    return java.java.net.URLClassLoader(urls, parent)


def hbase_jars(environ: Mapping[str, str]) -> list[str]:
    """LAKEHUB_HBASE_JARS, several with commas between, and the folder of `hbase-site.xml` where it is among them; else those that the set-up has fetched. Raises
    HBaseJarsNotFound."""
    named = [name for name in _named_jars(environ).split(",") if name]
    try:
        jars = named or _fetched_jars()
    except ImportError:
        jars = []
    missing = [jar for jar in jars if not Path(jar).exists()]
    if missing or not jars:
        what = f"{', '.join(missing)} is not there" if missing else f"{JARS_VARIABLE} is not set"
        raise HBaseJarsNotFound(
            f"The client of HBase is not known to this driver: {what}. Run `lakehub setup --hbase`, or set {JARS_VARIABLE} to its jars "
            "(those of `hbase mapredcp`)."
        )
    return jars


def jars_for_driver(environ: Mapping[str, str]) -> dict[str, str]:
    """The variable of a driver in a process of its own, which has no cache of jars; empty where they are not known here either."""
    if named := _named_jars(environ):
        return {JARS_VARIABLE: named}
    try:
        return {JARS_VARIABLE: ",".join(_fetched_jars())}
    except HBaseJarsNotFound:
        return {}


def _named_jars(environ: Mapping[str, str]) -> str:
    return environ.get("LAKEHUB_HBASE_JARS", "")


def _fetched_jars() -> list[str]:
    from lakehub.setup.artifacts import HBASE_JARS, ArtifactNotFetched, artifact_path

    try:
        return [str(artifact_path(jar)) for jar in HBASE_JARS]
    except ArtifactNotFetched as problem:
        raise HBaseJarsNotFound(f"{problem} For the index `hbase` it is `lakehub setup --hbase`.") from problem


def ask(method: Callable[..., Any], *arguments: Any) -> Any:
    """Raises IndexUnavailable, RefusedByHBase."""
    try:
        return method(*arguments)
    except JavaProblem as problem:
        errors = errors_in(problem)
        if not is_outage(errors):
            raise refused(errors) from problem
        raise IndexUnavailable(
            f"HBase does not answer: {in_words(errors)}. What waits goes on when it is back."
        ) from problem


def refused(errors: Sequence[str]) -> RefusedByHBase:
    return RefusedByHBase(
        f"HBase refuses what it is asked: {in_words(errors)}. Put that right in HBase, then rebuild the index."
    )


def errors_in(problem: Py4JJavaError | CapturedException) -> list[str]:
    return [*_errors_of(problem.java_exception if isinstance(problem, Py4JJavaError) else problem._origin)]


def _errors_of(java: Any) -> Iterator[str]:
    """`class: message` of the error, and of what it came of. One of a call of many rows says little: it is the first of theirs."""
    while java is not None:
        name = java.getClass().getName()
        if name.endswith(_OF_MANY_ROWS) and java.getNumExceptions():
            java = java.getCause(0)
            continue
        yield f"{name}: {java.getMessage() or ''}"
        java = java.getCause()
