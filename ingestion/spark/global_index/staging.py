"""Whether HBase takes files from where they are to be staged, asked before any is written."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from http.client import HTTPException
from urllib.request import ProxyHandler, build_opener

from ingestion.domain.index_cluster.staging import staging_problem
from ingestion.spark.global_index.administration import Administration, RegionServer

_TIMEOUT_S = 5.0
_OPENER = build_opener(ProxyHandler({}))
_ROOT, _DEFAULT = "hbase.rootdir", "fs.defaultFS"
logger = logging.getLogger(__name__)


class UnfitStaging(ValueError):
    """Region servers do not take files from the folder where they would be staged."""


def check_staging(staging_uri: str, hbase: Administration) -> None:
    """Raises UnfitStaging, IndexUnavailable."""
    servers = hbase.servers()
    distant_servers = [str(server) for server in servers if not server.is_here]
    problem = staging_problem(staging_uri, root_uri_of(servers), distant_servers)
    if problem:
        raise UnfitStaging(problem)


def root_uri_of(servers: Sequence[RegionServer]) -> str:
    """HBase's `hbase.rootdir`, as its first server with pages of its own shows it; empty where none does."""
    for server in servers:
        if server.info_port <= 0:
            continue
        try:
            with _OPENER.open(
                f"http://{server.host}:{server.info_port}/conf?format=json", timeout=_TIMEOUT_S
            ) as answer:
                properties = {each["key"]: each["value"] for each in json.load(answer)["properties"]}
        except (OSError, HTTPException, ValueError, KeyError, TypeError) as problem:
            logger.info("%s does not show where HBase has its files: %s", server, problem)
            continue
        root = str(properties.get(_ROOT, ""))
        return root if ":" in root else f"{str(properties.get(_DEFAULT, '')).rstrip('/')}{root}"
    return ""
