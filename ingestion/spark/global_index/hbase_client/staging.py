"""Where files are staged for HBase: whether it takes them from there, asked before any is written, and what dead jobs have left."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from http.client import HTTPException
from urllib.request import ProxyHandler, build_opener
from uuid import uuid4

from pyarrow import fs

from ingestion.domain.index_cluster.staging import staging_problem
from ingestion.spark.global_index.hbase_client.administration import Administration, RegionServer
from ingestion.spark.tables.timeline import open_storage

_TIMEOUT_S = 5.0
_OPENER = build_opener(ProxyHandler({}))
_ROOT, _DEFAULT = "hbase.rootdir", "fs.defaultFS"
LEFT_AFTER = timedelta(days=2)
"""No job that makes an index takes so long."""
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


def staged_name(index_table: str, suffix: str = "") -> str:
    """A new one, of a folder or a file where files of the index are staged."""
    return f"{index_table}-{uuid4().hex}{suffix}"


def sweep_staging(staging_uri: str, index_table: str, *, upto: datetime) -> None:
    """Removes what jobs of the index that died have left there: whatever has such a name and was written before `upto`."""
    filesystem, path = open_storage(staging_uri)
    is_ours = re.compile(rf"{re.escape(index_table)}-[0-9a-f]{{32}}(\.\w+)?").fullmatch
    for info in filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True)):
        if is_ours(info.base_name) and _written_before(filesystem, info, upto):
            with suppress(FileNotFoundError):  # another job sweeps as well
                remove_staged(filesystem, info)


def _written_before(filesystem: fs.FileSystem, info: fs.FileInfo, upto: datetime) -> bool:
    """An object store says of a folder not when, so its files are asked."""
    if info.mtime is not None:
        return bool(info.mtime < upto)
    files = filesystem.get_file_info(fs.FileSelector(info.path, recursive=True))
    written = [file.mtime for file in files if file.mtime is not None]
    return bool(written) and max(written) < upto


def remove_staged(filesystem: fs.FileSystem, info: fs.FileInfo) -> None:
    if info.type == fs.FileType.Directory:
        filesystem.delete_dir(info.path)
    elif info.type == fs.FileType.File:
        filesystem.delete_file(info.path)


def let_go(uri: str) -> None:
    """A file or a folder whose work is done, which stands whether it can be removed or not. It may be gone."""
    filesystem, path = open_storage(uri)
    try:
        remove_staged(filesystem, filesystem.get_file_info(path))
    except OSError:
        logger.warning("%s is left: nobody reads it any more", uri, exc_info=True)


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
