"""What is asked again later, and what somebody has to put right."""

from __future__ import annotations

import pytest

from ingestion.index.outages import is_outage

HBASE = "org.apache.hadoop.hbase"
KEEPER = f"{HBASE}.shaded.org.apache.zookeeper.KeeperException"
AWAY = [
    [f"{HBASE}.client.RetriesExhaustedException: Failed after attempts=9", "java.net.ConnectException: refused"],
    ["java.io.IOException: ", f"{KEEPER}$ConnectionLossException: KeeperErrorCode = ConnectionLoss for /hbase"],
    [f"{HBASE}.MasterNotRunningException: "],
    [f"{HBASE}.exceptions.TimeoutIOException: ", "java.util.concurrent.TimeoutException: "],
    [f"{HBASE}.TableNotEnabledException: orders"],
    [f"{HBASE}.DoNotRetryIOException: Zookeeper LIST could not be completed in 10000 ms"],
]
REFUSED = [
    [f"{HBASE}.security.AccessDeniedException: Insufficient permissions: no ConnectException\n\tat java.lang.Thread"],
    [f"{HBASE}.TableExistsException: orders"],
    [f"{HBASE}.DoNotRetryIOException: Table should have at least one column family"],
    ["java.io.IOException: BulkLoad", f"{HBASE}.io.hfile.CorruptHFileException: Problem reading HFile Trailer"],
    ["java.io.FileNotFoundException: /staging/e: TimeoutException"],
    [],
]


@pytest.mark.parametrize("errors", AWAY)
def test_a_cluster_that_is_away_is_an_outage(errors: list[str]) -> None:
    assert is_outage(errors)


@pytest.mark.parametrize("errors", REFUSED)
def test_what_hbase_refuses_is_none(errors: list[str]) -> None:
    assert not is_outage(errors)
