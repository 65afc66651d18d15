"""What region servers say of themselves: how many rows of each table they have read since they began, and how often they have held somebody back."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

FRESH_AFTER_S = 1.5
"""A server of `deploy/services/hbase` answers with the same counters for a second; who waits longer gets those of this moment."""
_READS = re.compile(r"Namespace_default_table_(.+)_region_[0-9a-f]+_metric_readRequestCount")
_THROTTLED = "exceptions.rpcThrottling"
_TOLD_WITHIN_S = 10.0


class NoCounters(RuntimeError):
    """A region server lives and has no counters."""


@dataclass(frozen=True)
class Counts:
    """`rows` by server and table; `at`: of each server when it told them, in seconds of a clock that only grows. `throttled`: how often a server has refused rows
    for now, by its limit."""

    at: tuple[float, ...]
    rows: dict[tuple[int, str], int]
    throttled: int = 0

    def since(self, before: Counts) -> Counts:
        """The seconds between the two, and the rows that were read in them. The counters of a region begin anew where it moves: none moves here."""
        rows = {place: rows - before.rows.get(place, 0) for place, rows in self.rows.items()}
        at = tuple(now - then for now, then in zip(self.at, before.at, strict=True))
        return Counts(at, rows, self.throttled - before.throttled)

    def of_table(self, name: str) -> int:
        return sum(rows for (_, table), rows in self.rows.items() if table == name)

    def rate_of_server(self, server: int) -> float:
        """Rows a second."""
        return sum(rows for (number, _), rows in self.rows.items() if number == server) / self.at[server - 1]


def read_counts(ports: Sequence[int]) -> Counts:
    """By the ports on which the servers tell their counters; they are numbered from 1. A server that makes its counters anew, as it does a while after a region was
    opened or closed, tells none for a moment: all are asked again then. Raises NoCounters."""
    began = time.monotonic()
    while time.monotonic() < began + _TOLD_WITHIN_S:
        at, beans = [], []
        for port in ports:
            asked = time.monotonic()
            regions = _bean(port, "Regions")
            at.append((asked + time.monotonic()) / 2)
            beans.append((regions, _bean(port, "IPC")))
        if all(regions and calls for regions, calls in beans):
            return _counts(tuple(at), beans)
        time.sleep(0.1)
    raise NoCounters(
        f"Region servers told no counters for {_TOLD_WITHIN_S:.0f} s, on ports {', '.join(map(str, ports))}."
    )


def _counts(at: tuple[float, ...], beans: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Counts:
    rows: Counter[tuple[int, str]] = Counter()
    throttled = 0
    for server, (regions, calls) in enumerate(beans, 1):
        for name, value in regions.items():
            if matched := _READS.fullmatch(name):
                rows[server, matched[1]] += int(value)
        throttled += int(calls[_THROTTLED])
    return Counts(at, dict(rows), throttled)


def _bean(port: int, name: str) -> dict[str, Any]:
    """Empty where there is none now."""
    bean = f"Hadoop:service=HBase,name=RegionServer,sub={name}"
    with urlopen(f"http://127.0.0.1:{port}/jmx?qry={bean}", timeout=30) as answer:
        return {key: value for values in json.load(answer)["beans"] for key, value in values.items()}
