"""A Thrift server that speaks as HBase's does, with the few calls of the index, and is as busy as a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from socket import SHUT_RDWR, socket
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import happybase  # noqa: F401 (makes the module Hbase_thrift from HBase's interface)
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import TTransportException

from ingestion.index.entries import FAMILIES, STATE_ROW

INTERFACE: Any = import_module("Hbase_thrift")
PROTOCOLS: Any = import_module("thriftpy2.protocol")
TRANSPORTS: Any = import_module("thriftpy2.transport")
BUSY = (
    b"org.apache.hadoop.hbase.RegionTooBusyException: Over memstore limit=512.0M\n\tat java.base/java.lang.Thread.run"
)


@dataclass
class ThriftServer:
    """`busy`: of so many calls HBase says what `says` is: that a region is too busy. `cut`: so many rows are missing at the end of an answer.
    `rows`: that were asked for or written, also in vain."""

    port: int = 0
    busy: int = 0
    says: bytes = BUSY
    cut: int = 0
    rows: int = 0
    cells: dict[bytes, dict[bytes, bytes]] = field(default_factory=lambda: {STATE_ROW: {b"s:mark": b""}})
    connections: list[socket] = field(default_factory=list)

    def drop_connections(self) -> None:
        """As those that nobody used for a minute."""
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)

    def getRowsWithColumns(self, table: bytes, rows: list[bytes], columns: list[bytes], attributes: Any) -> list[Any]:  # noqa: N802
        self._count(len(rows))
        answer = [
            INTERFACE.TRowResult(row, {column: INTERFACE.TCell(value, 1) for column, value in self.cells[row].items()})
            for row in rows
            if row in self.cells
        ]
        return answer[: len(answer) - self.cut]

    def mutateRowsTs(self, table: bytes, batches: list[Any], timestamp: int, attributes: Any) -> None:  # noqa: N802
        self._count(len(batches))
        for batch in batches:
            self.cells[batch.row] = {mutation.column: mutation.value for mutation in batch.mutations}

    def getColumnDescriptors(self, table: bytes) -> dict[bytes, Any]:  # noqa: N802
        return {family + b":": INTERFACE.ColumnDescriptor(name=family + b":") for family in FAMILIES}

    def getTableRegions(self, table: bytes) -> list[Any]:  # noqa: N802
        return [INTERFACE.TRegionInfo(b"", b"", 1, b"region", 1, b"127.0.0.1", 16020)]

    def _count(self, rows: int) -> None:
        self.rows += rows
        if self.busy:
            self.busy -= 1
            raise INTERFACE.IOError(self.says)


@contextmanager
def thrift_server() -> Iterator[ThriftServer]:
    hbase = ThriftServer()

    class Conversation(BaseRequestHandler):
        def handle(self) -> None:
            hbase.connections.append(self.request)
            transport = TRANSPORTS.TBufferedTransport(TRANSPORTS.TSocket(sock=self.request))
            protocol = PROTOCOLS.TBinaryProtocol(transport)
            processor = TProcessor(INTERFACE.Hbase, hbase)
            with suppress(TTransportException, OSError):
                while True:
                    processor.process(protocol, protocol)

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Conversation) as server:
        hbase.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield hbase
        finally:
            hbase.drop_connections()
            server.shutdown()
            thread.join()
