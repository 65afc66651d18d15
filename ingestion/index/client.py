"""How the Global Index is asked and told, whatever client of HBase does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from ingestion.index.entries import Entry


class IndexUnavailable(ConnectionError):
    """HBase does not answer, or not in time. Nothing is lost: what was not done is done when it is back."""


class IndexTableMissing(LookupError):
    """There is no table of that name: the index was never built, or HBase has lost it."""


class NotAnIndex(ValueError):
    """There is a table of that name, and it is none that an index has made."""


class Region(NamedTuple):
    """A range of rows, `start` included, `end` not (empty: without end), and the server that has it."""

    start: bytes
    end: bytes
    host: str
    port: int


class IndexClient(Protocol):
    """Of one table of HBase. Times are milliseconds since 1970: of two entries of a key the later one stands, in whatever order they come.

    Each raises IndexUnavailable, IndexTableMissing, NotAnIndex.
    """

    reads: int
    """Keys that were asked for."""
    writes: int
    """Rows that were put or deleted."""
    seconds: float
    """For which it was busy with them, waits for its pace and for HBase among them."""

    def get(self, keys: Sequence[str]) -> dict[str, Entry]:
        """The entries of those keys that have one. Raises DamagedEntry."""

    def put(self, entries: Mapping[str, Entry], *, at_ms: int) -> None: ...

    def delete(self, keys: Iterable[str], *, at_ms: int) -> None:
        """What was put up to that time. Keys without an entry are left as they are."""

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[str, Entry]]:
        """The entries of a range of rows, as of a region. Raises DamagedEntry."""

    def state(self, *names: str) -> dict[str, str]:
        """What was noted beside the entries, by name; of these names only, where some are given."""

    def note(self, values: Mapping[str, str], *, forget: Iterable[str] = ()) -> None:
        """Names are noted, and others forgotten."""

    def regions(self) -> list[Region]:
        """In the order of their rows, as HBase has them now."""

    def close(self) -> None: ...
