"""What region servers say of themselves: how many rows of each table they have read since they began, and how often they have held somebody back."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

FRESH_AFTER_S = 1.5
"""A server of `deploy/services/hbase` answers with the same counters for a second; who waits longer gets those of this moment."""
_READS = re.compile(r"Namespace_default_table_(.+)_region_[0-9a-f]+_metric_readRequestCount")
_THROTTLED = "exceptions.rpcThrottling"


@dataclass(frozen=True)
class Counts:
    """`rows` by server and table; `at`: the seconds of a clock that only grows. `throttled`: how often a server has refused rows for now, by its limit."""

    at: float
    rows: dict[tuple[int, str], int]
    throttled: int = 0

    def since(self, before: Counts) -> Counts:
        """The seconds between the two, and the rows that were read in them. The counters of a region begin anew where it moves: none moves here."""
        rows = {place: rows - before.rows.get(place, 0) for place, rows in self.rows.items()}
        return Counts(self.at - before.at, rows, self.throttled - before.throttled)

    def of_table(self, name: str) -> int:
        return sum(rows for (_, table), rows in self.rows.items() if table == name)

    def of_server(self, server: int) -> int:
        return sum(rows for (number, _), rows in self.rows.items() if number == server)


def read_counts(ports: Iterable[int]) -> Counts:
    """By the ports on which the servers tell their counters; they are numbered from 1."""
    rows: Counter[tuple[int, str]] = Counter()
    at, throttled = time.monotonic(), 0
    for server, port in enumerate(ports, 1):
        for name, value in _bean(port, "Regions").items():
            if matched := _READS.fullmatch(name):
                rows[server, matched[1]] += int(value)
        throttled += int(_bean(port, "IPC")[_THROTTLED])
    return Counts(at, dict(rows), throttled)


def _bean(port: int, name: str) -> dict[str, Any]:
    bean = f"Hadoop:service=HBase,name=RegionServer,sub={name}"
    with urlopen(f"http://127.0.0.1:{port}/jmx?qry={bean}", timeout=30) as answer:
        (values,) = json.load(answer)["beans"]
    return dict(values)
