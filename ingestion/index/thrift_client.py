"""The Global Index through a Thrift server of HBase (version 1 of its interface), from any Python process."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import happybase
from happybase.batch import BatchMutation, Mutation
from thriftpy2.thrift import TException
from thriftpy2.transport import TTransportException

from ingestion.index.client import IndexTableMissing, IndexUnavailable, NotAnIndex, Region
from ingestion.index.entries import FAMILY, QUALIFIERS, STATE_ROW, Entry, cells_of, entry_of, row_of, spread

T = TypeVar("T")
logger = logging.getLogger(__name__)
BATCH = 1000
"""Rows of a call."""
SCANNED_FOR_A_REQUEST = 10
"""Rows of a scan that are asked for at the price of one that is asked for by its key: they lie side by side."""
_COLUMNS = {qualifier: FAMILY + b":" + qualifier for qualifier in QUALIFIERS}
_STATE_FAMILY = b"s"
FAMILIES = (FAMILY, _STATE_FAMILY)
_MARK = b"s:mark"
"""Of the state's row, in each batch that is asked for: an answer without it is not whole."""
_LOST = (TTransportException, socket.error, EOFError)
_NO_FAMILY = "NoSuchColumnFamilyException"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
IDLE_S = 30.0
"""A Thrift server closes what was not used for 60 s: before that, the connection is opened anew, and not taken for one that was lost."""


class Pace(Protocol):
    """As ingestion.domain.index_cluster.request_pace has it."""

    def take(self, wanted: int) -> int:
        """Waits until some may be sent, and says how many."""

    def back_off(self) -> None: ...


@dataclass(frozen=True)
class ThriftAddress:
    """`timeout_s`: of a call. A killed region server keeps a call waiting for up to half a minute, and then it succeeds. `patience_s`: for how long a call is
    tried again."""

    host: str
    port: int
    timeout_s: float = 60.0
    patience_s: float = 120.0


class ThriftIndexClient:
    """Of the table `name`. Opens its connection when it is needed, and again where it was lost."""

    def __init__(
        self,
        address: ThriftAddress,
        name: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        pace: Pace | None = None,
    ) -> None:
        """`pace`: how fast rows may be asked for and written; None: as fast as HBase answers."""
        self._address, self._name = address, name.encode()
        self._monotonic, self._pause, self._pace = monotonic, pause, pace
        self._connection: happybase.Connection | None = None
        self._used_at = 0.0
        self.reads, self.writes, self.seconds = 0, 0, 0.0
        """Keys asked for, those scanned by SCANNED_FOR_A_REQUEST; entries written or removed; how long both waited and took."""

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        found_entries: dict[str, Entry] = {}
        for some in self._batches([row_of(key) for key in spread(keys)]):
            found_entries |= self._get(some)
            self.reads += len(some)
        return found_entries

    def _get(self, rows: Sequence[bytes]) -> dict[str, Entry]:
        columns = [*_COLUMNS.values(), _MARK]
        self._pay(1)  # the state's row
        # The server sorts nothing: what is asked for last is answered last.
        answer = self._call(
            lambda client: client.getRowsWithColumns(self._name, [*rows, STATE_ROW], columns, {}), len(rows) + 1
        )
        if not answer or answer[-1].row != STATE_ROW:
            raise IndexUnavailable(
                f"HBase has answered {len(answer)} rows of a batch of {len(rows)}, and not the last, which is always there: the answer is not whole, "
                f"or the table {self._text} is none of the index. Rebuild the index if this goes on."
            )
        return dict(_entry_of(result) for result in answer[:-1])

    def put(self, entries: Mapping[str, Entry], *, at_ms: int) -> None:
        for some in self._batches(spread(entries)):
            self._mutate([_put(row_of(key), cells_of(key, entries[key])) for key in some], at_ms)

    def delete(self, keys: Iterable[str], *, at_ms: int) -> None:
        for some in self._batches(spread(keys)):
            self._mutate([_delete(row_of(key)) for key in some], at_ms)

    def _mutate(self, mutations: list[Any], at_ms: int) -> None:
        self._call(lambda client: client.mutateRowsTs(self._name, mutations, at_ms, {}), len(mutations))
        self.writes += len(mutations)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[str, Entry]]:
        """In calls of BATCH rows, each of which begins behind the last row that came: a scanner does not outlive its connection."""
        end = min(end or STATE_ROW, STATE_ROW)
        while rows := self._scan_batch(start, end):
            yield from map(_entry_of, rows)
            start = rows[-1].row + b"\0"

    def _scan_batch(self, start: bytes, end: bytes) -> list[Any]:
        requests = BATCH // SCANNED_FOR_A_REQUEST
        with self._timed():
            self._pay(requests)
            rows = self._call(partial(self._scan_some, start=start, end=end), requests)
        self.reads += -(-len(rows) // SCANNED_FOR_A_REQUEST)
        return rows

    def _scan_some(self, client: Any, *, start: bytes, end: bytes) -> list[Any]:
        scanner = client.scannerOpenWithStop(self._name, start, end, [FAMILY], {})
        try:
            rows: list[Any] = client.scannerGetList(scanner, BATCH)
            return rows
        finally:
            client.scannerClose(scanner)

    def state(self) -> dict[str, str]:
        rows = self._call(lambda client: client.getRowWithColumns(self._name, STATE_ROW, [_STATE_FAMILY], {}))
        return {
            column.partition(b":")[2].decode(): cell.value.decode()
            for result in rows
            for column, cell in result.columns.items()
            if column != _MARK
        }

    def note(self, values: Mapping[str, str], *, forget: Iterable[str] = ()) -> None:
        mutations = [Mutation(column=_noted(name), value=value.encode()) for name, value in values.items()]
        mutations += [Mutation(isDelete=True, column=_noted(name)) for name in forget]
        mutations.append(Mutation(column=_MARK, value=b""))
        self._call(lambda client: client.mutateRow(self._name, STATE_ROW, mutations, {}))

    def regions(self) -> list[Region]:
        regions = self._call(lambda client: client.getTableRegions(self._name))
        if not regions:
            raise self._missing()
        return sorted(Region(each.startKey, each.endKey, each.serverName.decode(), each.port) for each in regions)

    def close(self) -> None:
        if self._connection is not None:
            with suppress(*_LOST):
                self._connection.close()
        self._connection = None

    def _batches(self, items: Sequence[T]) -> Iterator[Sequence[T]]:
        """Each as large as the pace allows at once."""
        begin = 0
        with self._timed():
            while begin < len(items):
                granted = self._allowed(min(BATCH, len(items) - begin))
                yield items[begin : begin + granted]
                begin += granted

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = self._monotonic()
        try:
            yield
        finally:
            self.seconds += self._monotonic() - began

    def _pay(self, requests: int) -> None:
        """Waits until they are all allowed."""
        while requests > 0:
            requests -= self._allowed(requests)

    def _allowed(self, wanted: int) -> int:
        return wanted if self._pace is None else self._pace.take(wanted)

    def _call(self, ask: Callable[[Any], T], requests: int = 0) -> T:
        """Again and again where the connection is lost, or HBase says that it is busy or moves a region. Raises as the class says.

        `requests`: that it costs. The caller has paid for the first time; each other is paid for here, or a busy server would be asked for more than before."""
        began, pause_s = self._monotonic(), _FIRST_PAUSE_S
        while True:
            try:
                answer = ask(self._client())
                self._used_at = self._monotonic()
                return answer
            except (*_LOST, TException) as problem:
                self.close()
                if not isinstance(problem, _LOST) and self._is_missing():
                    raise self._missing() from problem
                if _NO_FAMILY in _words(problem):
                    raise NotAnIndex(
                        f"HBase has a table {self._text} without the columns of an index: somebody else has made it, and it is left as it is. "
                        "Remove or rename that table, then rebuild the index."
                    ) from problem
                if self._monotonic() + pause_s >= began + self._address.patience_s:
                    raise IndexUnavailable(
                        f"HBase does not answer through its Thrift server {self._address.host}:{self._address.port}: {_words(problem)}. "
                        "What waits goes on when it is back."
                    ) from problem
                if self._pace is not None:
                    self._pace.back_off()
                logger.info("The table %s of HBase is asked again: %s", self._text, _words(problem))
            self._pause(pause_s)
            self._pay(requests)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _client(self) -> Any:
        if self._monotonic() >= self._used_at + IDLE_S:
            self.close()
        if self._connection is None:
            timeout_ms = round(self._address.timeout_s * 1000)
            self._connection = happybase.Connection(self._address.host, self._address.port, timeout=timeout_ms)
            self._used_at = self._monotonic()
        return self._connection.client

    def _is_missing(self) -> bool:
        """Asked by name: what a call says of it differs."""
        try:
            return not self._client().getTableRegions(self._name)
        except (*_LOST, TException):
            return False

    def _missing(self) -> IndexTableMissing:
        return IndexTableMissing(f"HBase has no table {self._text}. Rebuild the index.")

    @property
    def _text(self) -> str:
        return f"`{self._name.decode()}`"


def _entry_of(result: Any) -> tuple[str, Entry]:
    return entry_of(result.row, {name: cell.value for name, cell in _cells(result)})


def _cells(result: Any) -> Iterator[tuple[bytes, Any]]:
    return ((column.partition(b":")[2], cell) for column, cell in result.columns.items())


def _noted(name: str) -> bytes:
    return _STATE_FAMILY + b":" + name.encode()


def _put(row: bytes, cells: Mapping[bytes, bytes]) -> Any:
    return BatchMutation(row, [Mutation(column=_COLUMNS[name], value=value) for name, value in cells.items()])


def _delete(row: bytes) -> Any:
    return BatchMutation(row, [Mutation(isDelete=True, column=column) for column in _COLUMNS.values()])


def _words(problem: BaseException) -> str:
    """The first line of what HBase says; the rest is where in its program it was."""
    message = getattr(problem, "message", None)
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message or problem)
    return text.partition("\n")[0][:300] or type(problem).__name__
