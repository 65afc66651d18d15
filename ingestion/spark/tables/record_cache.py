"""Records of files that never change, kept in memory up to a number of bytes: those that were asked for last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecordCache(Generic[K, V]):
    """`read` gives the record of a key, `size` its bytes, which the key knows. Safe to be asked by several threads; two that ask
    for the same at once may both read it.

    It holds `max_bytes` at most, and no record of more than `max_record_bytes`, which would drive many others out.
    """

    def __init__(
        self, read: Callable[[K], V], size: Callable[[K], int], *, max_bytes: int, max_record_bytes: int
    ) -> None:
        self._read, self._size = read, size
        self.max_bytes, self.max_record_bytes = max_bytes, max_record_bytes
        self.bytes_kept = 0
        self._records: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V:
        with self._lock:
            if key in self._records:
                self._records.move_to_end(key)
                return self._records[key]
        record = self._read(key)
        if self._size(key) <= self.max_record_bytes:
            with self._lock:
                self._keep(key, record)
        return record

    def _keep(self, key: K, record: V) -> None:
        if key in self._records:
            return
        self._records[key] = record
        self.bytes_kept += self._size(key)
        while self.bytes_kept > self.max_bytes:
            oldest, _ = self._records.popitem(last=False)
            self.bytes_kept -= self._size(oldest)
