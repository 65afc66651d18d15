"""Which errors of HBase's own client say that the cluster is away or busy, so that what is asked again later may succeed."""

from __future__ import annotations

from collections.abc import Iterable

from ingestion.index.error_words import class_of

_OUTAGES = frozenset(
    {
        # The network.
        "ConnectException",
        "NoRouteToHostException",
        "SocketException",
        "SocketTimeoutException",
        "UnknownHostException",
        "ClosedChannelException",
        # Time is up.
        "TimeoutException",
        "TimeoutIOException",
        "CallTimeoutException",
        "RetriesExhaustedException",
        "RetriesExhaustedWithDetailsException",
        "OperationTimeoutExceededException",
        # HBase's connections.
        "ConnectTimeoutException",
        "ConnectionClosedException",
        "ConnectionClosingException",
        "FailedServerException",
        "StoppedRpcClientException",
        # ZooKeeper.
        "ZooKeeperConnectionException",
        "KeeperException$ConnectionLossException",
        "KeeperException$OperationTimeoutException",
        "KeeperException$RequestTimeoutException",
        "KeeperException$SessionExpiredException",
        # It is not there: HBase has not started.
        "KeeperException$NoNodeException",
        # Servers that start, stop, are too busy, or move a region.
        "MasterNotRunningException",
        "MasterStoppedException",
        "PleaseHoldException",
        "ServerNotRunningYetException",
        "RegionServerStoppedException",
        "RegionServerAbortedException",
        "PleaseRestartMasterException",
        "NotAllMetaRegionsOnlineException",
        "MasterRegistryFetchException",
        "NoServerForRegionException",
        "NotServingRegionException",
        "RegionMovedException",
        "RegionOfflineException",
        "RegionOpeningException",
        "RegionTooBusyException",
        "CallDroppedException",
        "ServerTooBusyException",
        "CallQueueTooBigException",
        "RpcThrottlingException",
        # Another job makes the table anew.
        "TableNotEnabledException",
    }
)
"""Without their packages."""
_SILENT_ZOOKEEPER = "DoNotRetryIOException: Zookeeper "
"""What ZooKeeper did not do in time has no class of its own, and so begins what is said of it."""


def is_outage(errors: Iterable[str]) -> bool:
    """`errors`: `class: message`, of an error and of what it came of."""
    return any(class_of(error) in _OUTAGES or _SILENT_ZOOKEEPER in error.partition("\n")[0] for error in errors)
