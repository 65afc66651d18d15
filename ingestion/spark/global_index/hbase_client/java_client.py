"""The Global Index through HBase's own client, which asks the region servers themselves. It is in the driver's JVM, so only the driver has it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

from ingestion.index.client import IndexUnavailable, Region
from ingestion.index.entries import FAMILY
from ingestion.index.error_words import class_of, in_words
from ingestion.index.outages import is_outage
from ingestion.index.packed_parts import PartReader, packed_number, packed_parts
from ingestion.index.patient_client import BATCH, Change, Pace, PatientIndexClient, Row, Unanswered
from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.global_index.hbase_client.jvm import (
    ENDS_SOON,
    JavaProblem,
    constructor,
    errors_in,
    kept,
    packed_settings,
    refused,
)
from ingestion.spark.session import running_session

_ASKED_BY_US_AGAIN = {"hbase.client.retries.number": "1", "hbase.client.pause": "100"}
"""Once by HBase's client, where a region has moved since it last knew of it; what more is needed is paid for, and told."""
_TIMEOUTS = (
    "zookeeper.session.timeout",
    "hbase.rpc.timeout",
    "hbase.client.operation.timeout",
    "hbase.client.meta.operation.timeout",
    "hbase.client.scanner.timeout.period",
)
_NOW = 2**63 - 1
"""As HBase says it: the region server's clock."""
_opening = Lock()
_SOURCE = r"""
package lakehub;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;

// What goes in and comes out is a row of bytes: parts with their length before them. To hand over each object would take longer than HBase does.
public class GlobalIndexRows extends HBaseSession {
    public GlobalIndexRows(String settings) throws IOException {
        super(settings);
    }

    private Table table(String name, int timeout) throws IOException {
        return connection.getTableBuilder(TableName.valueOf(name), null)
            .setOperationTimeout(timeout).setRpcTimeout(timeout).setReadRpcTimeout(timeout).setWriteRpcTimeout(timeout).build();
    }

    public byte[] get(String name, int timeout, byte[] asked) throws IOException {
        ClassLoader before = enter();
        try {
            DataInputStream parts = new DataInputStream(new ByteArrayInputStream(asked));
            byte[][] columns = new byte[parts.readInt()][];
            for (int place = 0; place < columns.length; place++) {
                columns[place] = part(parts);
            }
            List gets = new ArrayList();
            while (parts.available() > 0) {
                Get get = new Get(part(parts));
                for (int place = 0; place < columns.length; place++) {
                    int end = end(columns[place]);
                    if (end == columns[place].length) {
                        get.addFamily(columns[place]);
                    } else {
                        get.addColumn(family(columns[place], end), qualifier(columns[place], end));
                    }
                }
                gets.add(get);
            }
            Table table = table(name, timeout);
            try {
                return packed(table.get(gets));
            } finally {
                table.close();
            }
        } finally {
            leave(before);
        }
    }

    public void change(String name, int timeout, long at, byte[] changes) throws IOException {
        ClassLoader before = enter();
        try {
            DataInputStream parts = new DataInputStream(new ByteArrayInputStream(changes));
            List puts = new ArrayList();
            List deletes = new ArrayList();
            while (parts.available() > 0) {
                byte[] row = part(parts);
                Put put = new Put(row);
                Delete delete = new Delete(row);
                int cells = parts.readInt();
                for (int place = 0; place < cells; place++) {
                    byte[] column = part(parts);
                    int end = end(column);
                    byte[] value = part(parts);
                    if (value == null) {
                        delete.addColumns(family(column, end), qualifier(column, end), at);
                    } else {
                        put.addColumn(family(column, end), qualifier(column, end), at, value);
                    }
                }
                if (!put.isEmpty()) {
                    puts.add(put);
                }
                if (!delete.isEmpty()) {
                    deletes.add(delete);
                }
            }
            Table table = table(name, timeout);
            try {
                if (!puts.isEmpty()) {
                    table.put(puts);
                }
                if (!deletes.isEmpty()) {
                    table.delete(deletes);
                }
            } finally {
                table.close();
            }
        } finally {
            leave(before);
        }
    }

    public byte[] scan(String name, int timeout, byte[] family, byte[] start, byte[] stop, int limit) throws IOException {
        ClassLoader before = enter();
        try {
            Table table = table(name, timeout);
            try {
                Scan scan = new Scan().withStartRow(start).withStopRow(stop).addFamily(family).setLimit(limit).setCaching(limit);
                ResultScanner scanner = table.getScanner(scan);
                try {
                    return packed(scanner.next(limit));
                } finally {
                    scanner.close();
                }
            } finally {
                table.close();
            }
        } finally {
            leave(before);
        }
    }

    // HBase has limits of its own for what it asks its table of regions.
    public byte[] regions(String name, int timeout) throws IOException {
        ClassLoader before = enter();
        try {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            RegionLocator locator = connection.getRegionLocator(TableName.valueOf(name));
            try {
                locator.clearRegionLocationCache();
                for (Iterator each = locator.getAllRegionLocations().iterator(); each.hasNext();) {
                    HRegionLocation location = (HRegionLocation) each.next();
                    ServerName server = location.getServerName();
                    write(out, location.getRegion().getStartKey());
                    write(out, location.getRegion().getEndKey());
                    write(out, (server == null ? "" : server.getHostname()).getBytes("UTF-8"));
                    out.writeInt(server == null ? 0 : server.getPort());
                }
            } finally {
                locator.close();
            }
            return bytes.toByteArray();
        } finally {
            leave(before);
        }
    }

    private static byte[] packed(Result[] results) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        for (int number = 0; number < results.length; number++) {
            if (results[number].isEmpty()) {
                continue;
            }
            Cell[] cells = results[number].rawCells();
            write(out, results[number].getRow());
            out.writeInt(cells.length);
            for (int place = 0; place < cells.length; place++) {
                byte[] family = CellUtil.cloneFamily(cells[place]);
                byte[] qualifier = CellUtil.cloneQualifier(cells[place]);
                out.writeInt(family.length + 1 + qualifier.length);
                out.write(family);
                out.write(':');
                out.write(qualifier);
                write(out, CellUtil.cloneValue(cells[place]));
            }
        }
        return bytes.toByteArray();
    }

    private static void write(DataOutputStream out, byte[] part) throws IOException {
        out.writeInt(part.length);
        out.write(part);
    }

    private static byte[] part(DataInputStream parts) throws IOException {
        int length = parts.readInt();
        if (length < 0) {
            return null;
        }
        byte[] part = new byte[length];
        parts.readFully(part);
        return part;
    }

    private static int end(byte[] column) {
        int end = 0;
        while (end < column.length && column[end] != ':') {
            end++;
        }
        return end;
    }

    private static byte[] family(byte[] column, int end) {
        return java.util.Arrays.copyOfRange(column, 0, end);
    }

    private static byte[] qualifier(byte[] column, int end) {
        return java.util.Arrays.copyOfRange(column, end + 1, column.length);
    }
}
"""


class JavaIndexClient(PatientIndexClient):
    """Its connection is that of all of its HBase in this JVM, and stays open: HBase's client heals it."""

    def __init__(self, spec: GlobalIndexSpec, *, timeout_s: float, patience_s: float, pace: Pace | None = None) -> None:
        super().__init__(spec.table, f"at the region servers that {spec.quorum} names", patience_s, pace=pace)
        self._settings = {"hbase.zookeeper.quorum": spec.quorum, "zookeeper.znode.parent": spec.znode}
        self._timeout_ms = round(timeout_s * 1000)

    def close(self) -> None:
        pass

    def _ask_rows(self, rows: Sequence[bytes], columns: Sequence[bytes]) -> list[Row]:
        return _rows(self._answer("get", packed_number(len(columns)) + packed_parts([*columns, *rows])))

    def _change_rows(self, changes: Sequence[Change], at_ms: int | None) -> None:
        packed = [
            packed_parts([row])
            + packed_number(len(cells))
            + packed_parts(part for cell in cells.items() for part in cell)
            for row, cells in changes
        ]
        self._answer("change", _NOW if at_ms is None else at_ms, b"".join(packed))

    def _scan_rows(self, start: bytes, end: bytes) -> list[Row]:
        return _rows(self._answer("scan", FAMILY, start, end, BATCH))

    def _ask_regions(self) -> list[Region]:
        return [*_regions(self._answer("regions"))]

    def _answer(self, method: str, *arguments: object) -> bytes:
        try:
            answer: bytes = getattr(self._java(), method)(self.name, self._timeout_ms, *arguments)
            return answer
        except JavaProblem as problem:
            errors = errors_in(problem)
            classes = {*map(class_of, errors)}
            if "TableNotFoundException" in classes:
                raise self._missing() from problem
            if "NoSuchColumnFamilyException" in classes:
                raise self._not_an_index() from problem
            if not is_outage(errors):
                raise refused(errors) from problem
            raise Unanswered(in_words(errors)) from problem

    def _java(self) -> Any:
        spark = running_session()
        if spark is None:
            raise IndexUnavailable("HBase is not asked: the Spark session whose JVM has its client has ended.")
        settings = {**ENDS_SOON, **_ASKED_BY_US_AGAIN, **_at_most(self._timeout_ms), **self._settings}
        known, key = kept(spark), f"lakehub.hbase.rows {packed_settings(settings)}"
        with _opening:
            if known.get(key) is None:
                known.put(key, constructor(spark, "GlobalIndexRows", _SOURCE)(settings))
        return known.get(key)


def _at_most(timeout_ms: int) -> dict[str, str]:
    """Whatever HBase's client asks before it asks for the rows, such as where they are, takes no longer than these may."""
    return {name: str(min(int(ENDS_SOON[name]), timeout_ms)) for name in _TIMEOUTS}


def _rows(packed: bytes) -> list[Row]:
    parts = PartReader(packed)
    rows: list[Row] = []
    while not parts.is_over:
        row, cells = parts.part(), parts.number()
        rows.append((row, {parts.part(): parts.part() for _ in range(cells)}))
    return rows


def _regions(packed: bytes) -> Iterator[Region]:
    parts = PartReader(packed)
    while not parts.is_over:
        yield Region(parts.part(), parts.part(), parts.part().decode(), parts.number())
