"""The Global Index through a Thrift server of HBase (version 1 of its interface), from any Python process."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import happybase
from happybase.batch import BatchMutation, Mutation
from thriftpy2.thrift import TException
from thriftpy2.transport import TTransportException

from ingestion.index.client import Region
from ingestion.index.entries import FAMILIES, FAMILY
from ingestion.index.error_words import in_words
from ingestion.index.patient_client import BATCH, Change, Pace, PatientIndexClient, Row, Unanswered

T = TypeVar("T")
_LOST = (TTransportException, socket.error, EOFError)
IDLE_S = 30.0
"""A Thrift server closes what was not used for 60 s: before that, the connection is opened anew, and not taken for one that was lost."""


@dataclass(frozen=True)
class ThriftAddress:
    """`timeout_s`: of a call. A killed region server keeps a call waiting for up to half a minute, and then it succeeds. `patience_s`: for how long a call is
    tried again."""

    host: str
    port: int
    timeout_s: float = 60.0
    patience_s: float = 120.0


class ThriftIndexClient(PatientIndexClient):
    """Opens its connection when it is needed, and again where it was lost."""

    def __init__(
        self,
        address: ThriftAddress,
        name: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        pace: Pace | None = None,
    ) -> None:
        reached = f"through its Thrift server {address.host}:{address.port}"
        super().__init__(name, reached, address.patience_s, monotonic=monotonic, pause=pause, pace=pace)
        self.address = address
        self._connection: happybase.Connection | None = None
        self._used_at = 0.0

    def close(self) -> None:
        if self._connection is not None:
            with suppress(*_LOST):
                self._connection.close()
        self._connection = None

    def _ask_rows(self, rows: Sequence[bytes], columns: Sequence[bytes]) -> list[Row]:
        asked = [*rows], [*columns]
        return _rows(self._answer(lambda client: client.getRowsWithColumns(self._table, *asked, {})))

    def _change_rows(self, changes: Sequence[Change], at_ms: int | None) -> None:
        batches = [BatchMutation(row, [_mutation(*cell) for cell in cells.items()]) for row, cells in changes]
        if at_ms is None:
            self._answer(lambda client: client.mutateRows(self._table, batches, {}))
        else:
            self._answer(lambda client: client.mutateRowsTs(self._table, batches, at_ms, {}))

    def _scan_rows(self, start: bytes, end: bytes) -> list[Row]:
        def scan(client: Any) -> Any:
            scanner = client.scannerOpenWithStop(self._table, start, end, [FAMILY], {})
            try:
                return client.scannerGetList(scanner, BATCH)
            finally:
                client.scannerClose(scanner)

        return _rows(self._answer(scan))

    def _ask_regions(self) -> list[Region]:
        regions = self._answer(lambda client: client.getTableRegions(self._table))
        return [Region(each.startKey, each.endKey, each.serverName.decode(), each.port) for each in regions]

    @property
    def _table(self) -> bytes:
        return self.name.encode()

    def _answer(self, ask: Callable[[Any], T]) -> T:
        try:
            answer = ask(self._client())
            self._used_at = self._monotonic()
            return answer
        except (*_LOST, TException) as problem:
            self.close()
            if not isinstance(problem, _LOST) and self._is_missing():
                raise self._missing() from problem
            if not isinstance(problem, _LOST) and self._is_foreign():
                raise self._not_an_index() from problem
            raise Unanswered(_words(problem)) from problem

    def _client(self) -> Any:
        if self._monotonic() >= self._used_at + IDLE_S:
            self.close()
        if self._connection is None:
            timeout_ms = round(self.address.timeout_s * 1000)
            self._connection = happybase.Connection(self.address.host, self.address.port, timeout=timeout_ms)
            self._used_at = self._monotonic()
        return self._connection.client

    def _is_missing(self) -> bool:
        """Asked by name: what a call says of it differs."""
        try:
            return not self._client().getTableRegions(self._table)
        except (*_LOST, TException):
            return False

    def _is_foreign(self) -> bool:
        """As well: what HBase says of an error may have anybody's words."""
        try:
            families = {name.rstrip(b":") for name in self._client().getColumnDescriptors(self._table)}
        except (*_LOST, TException):
            return False
        return not families.issuperset(FAMILIES)


def _rows(results: Sequence[Any]) -> list[Row]:
    return [(result.row, {column: cell.value for column, cell in result.columns.items()}) for result in results]


def _mutation(column: bytes, value: bytes | None) -> Any:
    return Mutation(isDelete=True, column=column) if value is None else Mutation(column=column, value=value)


def _words(problem: BaseException) -> str:
    """Of what HBase says what people may be shown. What the network says is its own."""
    message = getattr(problem, "message", None)
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message or problem)
    if isinstance(problem, _LOST):
        return text.partition("\n")[0][:300] or type(problem).__name__
    return in_words([text])
