"""What only HBase's own client can do: make a table with its regions, and load HFiles. It runs in the driver's JVM, in a class loader of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ingestion.index.client import IndexUnavailable
from ingestion.index.outages import is_outage
from ingestion.spark.session import jvm

JARS_VARIABLE = "LAKEHUB_HBASE_JARS"
_MARKER = "lakehub.global_index"
_ENDS_SOON = {
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
_LOADS_PATIENTLY = {"hbase.rpc.timeout": "120000", "hbase.client.operation.timeout": "600000"}
"""A call moves the files of a region. One that is given up may have moved them all the same, and then they are not there for the next."""
_SOURCE = r"""
package lakehub;

import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.UnknownHostException;
import java.util.EnumSet;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.tool.BulkLoadHFilesTool;

public class GlobalIndexAdministration {
    private final Configuration configuration;
    private final Connection connection;
    private final Admin admin;

    public GlobalIndexAdministration(String settings) throws IOException {
        ClassLoader before = enter();
        try {
            configuration = HBaseConfiguration.create();
            configuration.setClassLoader(GlobalIndexAdministration.class.getClassLoader());
            set(configuration, settings);
            connection = ConnectionFactory.createConnection(configuration);
            admin = connection.getAdmin();
        } finally {
            leave(before);
        }
    }

    private static void set(Configuration configuration, String settings) {
        String[] words = settings.split("\0", -1);
        for (int place = 0; place + 1 < words.length; place += 2) {
            configuration.set(words[place], words[place + 1]);
        }
    }

    // HBase finds services by the thread's class loader. Spark, Hadoop and Hudi do so too, on the same thread, and must not see HBase's jars.
    private static ClassLoader enter() {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        Thread.currentThread().setContextClassLoader(GlobalIndexAdministration.class.getClassLoader());
        return before;
    }

    private static void leave(ClassLoader before) {
        Thread.currentThread().setContextClassLoader(before);
    }

    public String owner(String table) throws IOException {
        ClassLoader before = enter();
        try {
            TableName name = TableName.valueOf(table);
            if (!admin.tableExists(name)) {
                return null;
            }
            String owner = admin.getDescriptor(name).getValue("LAKEHUB");
            return owner == null ? "" : owner;
        } finally {
            leave(before);
        }
    }

    public void create(String table, String owner, String families, String splits) throws IOException {
        ClassLoader before = enter();
        try {
            TableDescriptorBuilder made = TableDescriptorBuilder.newBuilder(TableName.valueOf(table));
            made.setValue("LAKEHUB", owner);
            String[] names = families.split(",");
            for (int place = 0; place < names.length; place++) {
                made.setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(names[place].getBytes()).setMaxVersions(1).build());
            }
            String[] rows = splits.isEmpty() ? new String[0] : splits.split(",");
            byte[][] starts = new byte[rows.length][];
            for (int place = 0; place < rows.length; place++) {
                starts[place] = HexFormat.of().parseHex(rows[place]);
            }
            if (rows.length == 0) {
                admin.createTable(made.build());
            } else {
                admin.createTable(made.build(), starts);
            }
        } finally {
            leave(before);
        }
    }

    public void drop(String table) throws IOException {
        ClassLoader before = enter();
        try {
            TableName name = TableName.valueOf(table);
            if (admin.isTableEnabled(name)) {
                admin.disableTable(name);
            }
            admin.deleteTable(name);
        } finally {
            leave(before);
        }
    }

    public int load(String table, String folder, String settings) throws IOException {
        ClassLoader before = enter();
        try {
            Configuration patient = new Configuration(configuration);
            set(patient, settings);
            return new BulkLoadHFilesTool(patient).bulkLoad(TableName.valueOf(table), new Path(folder)).size();
        } finally {
            leave(before);
        }
    }

    public int regions(String table) throws IOException {
        ClassLoader before = enter();
        try {
            return admin.getRegions(TableName.valueOf(table)).size();
        } finally {
            leave(before);
        }
    }

    public String servers() throws IOException {
        ClassLoader before = enter();
        try {
            StringBuilder told = new StringBuilder();
            Map live = admin.getClusterMetrics(EnumSet.of(ClusterMetrics.Option.LIVE_SERVERS)).getLiveServerMetrics();
            for (Iterator each = live.values().iterator(); each.hasNext();) {
                ServerMetrics server = (ServerMetrics) each.next();
                String host = server.getServerName().getHostname();
                told.append(host).append(' ').append(server.getServerName().getPort()).append(' ');
                told.append(server.getInfoServerPort()).append(' ').append(isHere(host)).append('\n');
            }
            return told.toString();
        } finally {
            leave(before);
        }
    }

    private static boolean isHere(String host) throws IOException {
        try {
            InetAddress address = InetAddress.getByName(host);
            return address.isLoopbackAddress() || NetworkInterface.getByInetAddress(address) != null;
        } catch (UnknownHostException problem) {
            return false;
        }
    }

    public void close() throws IOException {
        ClassLoader before = enter();
        try {
            admin.close();
            connection.close();
        } finally {
            leave(before);
        }
    }
}
"""


class HBaseJarsNotFound(RuntimeError):
    """HBase's client is not known to this driver."""


class ForeignTable(ValueError):
    """A table of HBase has the name of an index, and is none of ours, or of another table of the lake."""


class RefusedByHBase(ValueError):
    """HBase answers, and does not do it: as somebody may not, or a file is damaged."""


class Loaded(NamedTuple):
    """`files`: that HBase has taken; more than there were where it has split some."""

    files: int
    regions: int


class RegionServer(NamedTuple):
    """`info_port`: of its pages, 0 or less where it has none. `is_here`: on the machine of the driver."""

    host: str
    port: int
    info_port: int
    is_here: bool

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Administration:
    """Of the HBase behind one ZooKeeper. Each method raises IndexUnavailable, RefusedByHBase."""

    def __init__(self, java: Any) -> None:
        self._java = java

    def create(self, name: str, owner: str, families: Sequence[bytes], starts: Sequence[bytes]) -> None:
        """A table with a region from each of the rows `starts` on, and one before the first. One that is there already is dropped, if `owner` made it.

        Raises ForeignTable."""
        self.drop(name, owner)
        names = ",".join(family.decode() for family in families)
        _ask(self._java.create, name, owner, names, ",".join(start.hex() for start in starts))

    def drop(self, name: str, owner: str) -> None:
        """Raises ForeignTable."""
        if self.check_owner(name, owner):
            _ask(self._java.drop, name)

    def check_owner(self, name: str, owner: str) -> bool:
        """Whether there is such a table. Raises ForeignTable where `owner` has not made it."""
        found_owner = _ask(self._java.owner, name)
        if found_owner is None:
            return False
        if found_owner != owner:
            whose = f"it is that of {found_owner}" if found_owner else "Lakehub has not made it"
            raise ForeignTable(
                f"HBase has a table `{name}` already, and {whose}: it is left as it is. "
                "Let this installation have an index cluster of its own, or remove that table."
            )
        return True

    def servers(self) -> list[RegionServer]:
        """Those that are alive."""
        words = (line.split(" ") for line in _ask(self._java.servers).splitlines())
        return [RegionServer(host, int(port), int(info), is_here == "true") for host, port, info, is_here in words]

    def load(self, name: str, folder: str) -> Loaded:
        """Hands the HFiles below `folder`, one folder a column family, over to the region servers, which move them."""
        files = _ask(self._java.load, name, folder, _words(_LOADS_PATIENTLY))
        return Loaded(files, _ask(self._java.regions, name))

    def regions(self, name: str) -> int:
        regions: int = _ask(self._java.regions, name)
        return regions


@contextmanager
def open_administration(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[Administration]:
    """`settings`: of HBase's client, such as `hbase.zookeeper.quorum`. Raises HBaseJarsNotFound, IndexUnavailable, RefusedByHBase."""
    java = _ask(_factory(spark).newInstance, _arguments(spark, _words({**_ENDS_SOON, **settings})))
    try:
        yield Administration(java)
    finally:
        java.close()


def _words(settings: Mapping[str, str]) -> str:
    return "\0".join(part for setting in settings.items() for part in setting)


def _arguments(spark: SparkSession, text: str) -> Any:
    context: Any = spark.sparkContext
    array = context._gateway.new_array(jvm(spark).java.lang.Object, 1)
    array[0] = text
    return array


def _factory(spark: SparkSession) -> Any:
    """The constructor of our class, compiled once in each JVM."""
    java: Any = jvm(spark)
    kept = java.java.lang.System.getProperties()
    if kept.get(_MARKER) is None:
        loader = _loader(spark)
        compiler = java.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        compiler.cook(_SOURCE)
        made = compiler.getClassLoader().loadClass("lakehub.GlobalIndexAdministration")
        kept.put(_MARKER, made.getConstructors()[0])
    return kept.get(_MARKER)


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
    """LAKEHUB_HBASE_JARS, several with commas between, else those that the set-up has fetched. Raises HBaseJarsNotFound."""
    named = [name for name in environ.get(JARS_VARIABLE, "").split(",") if name]
    try:
        jars = named or _fetched_jars()
    except ImportError:
        jars = []
    missing = [jar for jar in jars if not Path(jar).is_file()]
    if missing or not jars:
        what = f"{', '.join(missing)} is not there" if missing else f"{JARS_VARIABLE} is not set"
        raise HBaseJarsNotFound(
            f"The client of HBase is not known to this driver: {what}. Run `lakehub setup --hbase`, or set {JARS_VARIABLE} to its jars "
            "(those of `hbase mapredcp`)."
        )
    return jars


def _fetched_jars() -> list[str]:
    from lakehub.setup.artifacts import HBASE_JARS, ArtifactNotFetched, artifact_path

    try:
        return [str(artifact_path(jar)) for jar in HBASE_JARS]
    except ArtifactNotFetched as problem:
        raise HBaseJarsNotFound(f"{problem} For the index `hbase` it is `lakehub setup --hbase`.") from problem


def _ask(method: Any, *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except Py4JJavaError as problem:
        errors = list(_errors(problem.java_exception))
        words = _because(errors)
        if is_outage(errors):
            raise IndexUnavailable(f"HBase does not answer: {words}. What waits goes on when it is back.") from problem
        raise RefusedByHBase(
            f"HBase refuses what it is asked: {words}. Put that right in HBase, then rebuild the index."
        ) from problem


def _errors(java: Any) -> Iterator[str]:
    """`class: message` of the error, and of what it came of."""
    while java is not None:
        yield f"{java.getClass().getName()}: {java.getMessage() or ''}"
        java = java.getCause()


def _because(errors: Sequence[str]) -> str:
    """The first line of the first and of the innermost."""
    lines = [error.partition("\n")[0][:300] for error in errors]
    return lines[0] if lines[-1] in lines[0] else f"{lines[0]} because of {lines[-1]}"
