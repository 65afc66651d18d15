"""A client of the table's index, which asks no faster than it may."""

from __future__ import annotations

import time
from collections.abc import Callable

from ingestion.domain.index_cluster.guided_pace import GuidedPace
from ingestion.index.thrift_client import ThriftAddress, ThriftIndexClient
from ingestion.spark.contract.spec import GlobalIndexSpec

PATIENCE_S = 120.0
"""Of a job that holds the permit: a region server that died is replaced within a minute."""


def open_client(
    spec: GlobalIndexSpec,
    *,
    rate: Callable[[], float | None] | None = None,
    patience_s: float = PATIENCE_S,
    timeout_s: float = 60.0,
) -> ThriftIndexClient:
    """`rate`: requests a second now; None: those of the spec. `patience_s`: for how long a call is tried again, `timeout_s`: how long one may take."""
    host, _, port = spec.thrift.rpartition(":")
    pace = GuidedPace(rate or (lambda: spec.requests_per_s), time.monotonic, time.sleep)
    return ThriftIndexClient(ThriftAddress(host, int(port), timeout_s, patience_s), spec.table, pace=pace)
