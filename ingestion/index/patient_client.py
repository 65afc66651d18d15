"""What each client of the Global Index does alike: batches, the pace, whole answers, and a call that is tried again while HBase is away or busy."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

from ingestion.index.client import IndexTableMissing, IndexUnavailable, NotAnIndex, Region
from ingestion.index.entries import (
    COLUMNS,
    MARK,
    STATE_FAMILY,
    STATE_ROW,
    Entry,
    cells_of,
    entry_of,
    row_of,
    spread,
)

T = TypeVar("T")
Row = tuple[bytes, Mapping[bytes, bytes]]
"""A row with its cells by column (`family:qualifier`)."""
Change = tuple[bytes, Mapping[bytes, bytes | None]]
"""A row with what is put into its columns; None: what was there is removed."""
logger = logging.getLogger(__name__)
BATCH = 1000
"""Rows of a call."""
SCANNED_FOR_A_REQUEST = 10
"""Rows of a scan that are asked for at the price of one that is asked for by its key: they lie side by side."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


class Pace(Protocol):
    """As ingestion.domain.index_cluster.request_pace has it."""

    def take(self, wanted: int) -> int:
        """Waits until some may be sent, and says how many."""

    def back_off(self) -> None: ...


class Unanswered(Exception):
    """HBase is away or busy, in the words of the client."""


class PatientIndexClient(ABC):
    """Of the table `name`. A kind of client says how one call is sent, and raises Unanswered, IndexTableMissing, NotAnIndex."""

    def __init__(
        self,
        name: str,
        reached: str,
        patience_s: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        pace: Pace | None = None,
    ) -> None:
        """`reached`: how, for people. `patience_s`: for how long a call is tried again. `pace`: how fast rows may be asked for and written; None: as fast as HBase
        answers."""
        self.name = name
        self._reached, self._patience_s = reached, patience_s
        self._monotonic, self._pause, self._pace = monotonic, pause, pace
        self.reads, self.writes, self.seconds = 0, 0, 0.0
        """Keys asked for, those scanned by SCANNED_FOR_A_REQUEST; entries written or removed; how long both waited and took."""

    @abstractmethod
    def _ask_rows(self, rows: Sequence[bytes], columns: Sequence[bytes]) -> list[Row]:
        """Those that are there, in the order in which they are asked for. A column without a qualifier is a whole family."""

    @abstractmethod
    def _change_rows(self, changes: Sequence[Change], at_ms: int | None) -> None:
        """`at_ms`: None: now, as the region server has it."""

    @abstractmethod
    def _scan_rows(self, start: bytes, end: bytes) -> list[Row]:
        """The first BATCH."""

    @abstractmethod
    def _ask_regions(self) -> list[Region]:
        """None of them where there is no such table, or that is raised."""

    @abstractmethod
    def close(self) -> None: ...

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        found_entries: dict[str, Entry] = {}
        for some in self._batches([row_of(key) for key in spread(keys)]):
            found_entries |= self._get(some)
            self.reads += len(some)
        return found_entries

    def _get(self, rows: Sequence[bytes]) -> dict[str, Entry]:
        self._pay(1)  # the state's row
        # The server sorts nothing: what is asked for last is answered last.
        answer = self._call(partial(self._ask_rows, [*rows, STATE_ROW], [*COLUMNS.values(), MARK]), len(rows) + 1)
        if not answer or answer[-1][0] != STATE_ROW:
            raise IndexUnavailable(
                f"HBase has answered {len(answer):,} rows of a batch of {len(rows):,}, and not the last, which is always there: the answer is not whole, "
                f"or the table `{self.name}` is none of the index. Rebuild the index if this goes on."
            )
        return dict(map(_entry_of, answer[:-1]))

    def put(self, entries: Mapping[str, Entry], *, at_ms: int) -> None:
        for some in self._batches(spread(entries)):
            self._change([(row_of(key), _columns_of(cells_of(key, entries[key]))) for key in some], at_ms)

    def delete(self, keys: Iterable[str], *, at_ms: int) -> None:
        for some in self._batches(spread(keys)):
            self._change([(row_of(key), dict.fromkeys(COLUMNS.values())) for key in some], at_ms)

    def _change(self, changes: Sequence[Change], at_ms: int) -> None:
        self._call(partial(self._change_rows, changes, at_ms), len(changes))
        self.writes += len(changes)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[str, Entry]]:
        """In calls of BATCH rows, each of which begins behind the last row that came: a scanner does not outlive its connection."""
        end = min(end or STATE_ROW, STATE_ROW)
        while rows := self._scan_batch(start, end):
            yield from map(_entry_of, rows)
            start = rows[-1][0] + b"\0"

    def _scan_batch(self, start: bytes, end: bytes) -> list[Row]:
        requests = BATCH // SCANNED_FOR_A_REQUEST
        with self._timed():
            self._pay(requests)
            rows = self._call(partial(self._scan_rows, start, end), requests)
        self.reads += -(-len(rows) // SCANNED_FOR_A_REQUEST)
        return rows

    def state(self, *names: str) -> dict[str, str]:
        columns = [_noted(name) for name in names] or [STATE_FAMILY]
        rows = self._call(partial(self._ask_rows, [STATE_ROW], columns))
        return {
            column.partition(b":")[2].decode(errors="replace"): value.decode(errors="replace")
            for _, cells in rows
            for column, value in cells.items()
            if column != MARK
        }

    def note(self, values: Mapping[str, str], *, forget: Iterable[str] = ()) -> None:
        cells: dict[bytes, bytes | None] = {_noted(name): None for name in forget}
        cells |= {_noted(name): value.encode() for name, value in values.items()}
        self._call(partial(self._change_rows, [(STATE_ROW, {**cells, MARK: b""})], None))

    def regions(self) -> list[Region]:
        regions = self._call(self._ask_regions)
        if not regions:
            raise self._missing()
        return sorted(regions)

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

    def _call(self, ask: Callable[[], T], requests: int = 0) -> T:
        """Again and again where HBase is away, says that it is busy, or moves a region. Raises as the class says.

        `requests`: that it costs. The caller has paid for the first time; each other is paid for here, or a busy server would be asked for more than before."""
        began, pause_s = self._monotonic(), _FIRST_PAUSE_S
        while True:
            try:
                return ask()
            except Unanswered as problem:
                if self._monotonic() + pause_s >= began + self._patience_s:
                    raise IndexUnavailable(
                        f"HBase does not answer {self._reached}: {problem}. What waits goes on when it is back."
                    ) from problem
                if self._pace is not None:
                    self._pace.back_off()
                logger.info("The table `%s` of HBase is asked again: %s", self.name, problem)
            self._pause(pause_s)
            self._pay(requests)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _missing(self) -> IndexTableMissing:
        return IndexTableMissing(f"HBase has no table `{self.name}`. Rebuild the index.")

    def _not_an_index(self) -> NotAnIndex:
        return NotAnIndex(
            f"HBase has a table `{self.name}` without the columns of an index: somebody else has made it, and it is left as it is. "
            "Remove or rename that table, then rebuild the index."
        )


def _entry_of(row: Row) -> tuple[str, Entry]:
    name, cells = row
    return entry_of(name, {column.partition(b":")[2]: value for column, value in cells.items()})


def _columns_of(cells: Mapping[bytes, bytes]) -> dict[bytes, bytes | None]:
    return {COLUMNS[qualifier]: value for qualifier, value in cells.items()}


def _noted(name: str) -> bytes:
    return STATE_FAMILY + b":" + name.encode()
