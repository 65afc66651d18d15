"""A client of the table's index, which asks no faster than it may."""

from __future__ import annotations

import time
from collections.abc import Callable

from ingestion.domain.index_cluster.guided_pace import GuidedPace
from ingestion.index.client import IndexClient
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
) -> IndexClient:
    """`rate`: requests a second now; None: those of the spec. `patience_s`: for how long a call is tried again, `timeout_s`: how long one may take.
    Where the spec names no Thrift server it is HBase's own client, which only the driver has."""
    pace = GuidedPace(rate or (lambda: spec.requests_per_s), time.monotonic, time.sleep)
    if not spec.thrift:
        # Its class is loaded by those who have no Thrift server.
        from ingestion.spark.global_index.hbase_client.java_client import JavaIndexClient

        return JavaIndexClient(spec, timeout_s=timeout_s, patience_s=patience_s, pace=pace)
    host, _, port = spec.thrift.rpartition(":")
    return ThriftIndexClient(ThriftAddress(host, int(port), timeout_s, patience_s), spec.table, pace=pace)
