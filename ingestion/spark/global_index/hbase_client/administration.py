"""What only HBase's own client can do: make a table with its regions, and load HFiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from ingestion.index.hfile.writer import BLOCK_BYTES
from ingestion.spark.global_index.hbase_client.jvm import ENDS_SOON, ask, constructor, packed_settings

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
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.tool.BulkLoadHFilesTool;

public class GlobalIndexAdministration extends HBaseSession {
    private final Admin admin;

    public GlobalIndexAdministration(String settings) throws IOException {
        super(settings);
        ClassLoader before = enter();
        try {
            admin = connection.getAdmin();
        } finally {
            leave(before);
        }
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

    public void create(String table, String owner, String families, int blockBytes, String splits) throws IOException {
        ClassLoader before = enter();
        try {
            TableDescriptorBuilder made = TableDescriptorBuilder.newBuilder(TableName.valueOf(table));
            made.setValue("LAKEHUB", owner);
            String[] names = families.split(",");
            for (int place = 0; place < names.length; place++) {
                ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(names[place].getBytes());
                made.setColumnFamily(family.setMaxVersions(1).setBlocksize(blockBytes).build());
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


class ForeignTable(ValueError):
    """A table of HBase has the name of an index, and is none of ours, or of another table of the lake."""


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
        What HBase writes anew has blocks as large as those of our HFiles.

        Raises ForeignTable."""
        self.drop(name, owner)
        names = ",".join(family.decode() for family in families)
        ask(self._java.create, name, owner, names, BLOCK_BYTES, ",".join(start.hex() for start in starts))

    def drop(self, name: str, owner: str) -> None:
        """Raises ForeignTable."""
        if self.check_owner(name, owner):
            ask(self._java.drop, name)

    def check_owner(self, name: str, owner: str) -> bool:
        """Whether there is such a table. Raises ForeignTable where `owner` has not made it."""
        found_owner = ask(self._java.owner, name)
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
        words = (line.split(" ") for line in ask(self._java.servers).splitlines())
        return [RegionServer(host, int(port), int(info), is_here == "true") for host, port, info, is_here in words]

    def load(self, name: str, folder: str) -> Loaded:
        """Hands the HFiles below `folder`, one folder a column family, over to the region servers, which move them."""
        files = ask(self._java.load, name, folder, packed_settings(_LOADS_PATIENTLY))
        return Loaded(files, ask(self._java.regions, name))

    def regions(self, name: str) -> int:
        regions: int = ask(self._java.regions, name)
        return regions


@contextmanager
def open_administration(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[Administration]:
    """`settings`: of HBase's client, such as `hbase.zookeeper.quorum`. Raises HBaseJarsNotFound, IndexUnavailable, RefusedByHBase."""
    java = ask(constructor(spark, "GlobalIndexAdministration", _SOURCE), {**ENDS_SOON, **settings})
    try:
        yield Administration(java)
    finally:
        java.close()
