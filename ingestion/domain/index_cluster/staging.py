"""Where HFiles may be staged: on the file system that HBase has its own files on, so that region servers move them and copy none."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

_PORTS = {"hdfs": 8020}
"""Of a scheme whose addresses may leave it out."""


def staging_problem(staging_uri: str, root_uri: str, distant_servers: Sequence[str]) -> str:
    """Why region servers cannot take files from `staging_uri`, with the remedy; empty: nothing is known against it.

    `root_uri`: HBase's `hbase.rootdir`, empty where it is not known; `distant_servers`: the region servers that are not on the machine that stages.
    """
    scheme = urlsplit(staging_uri).scheme
    if scheme == "file" and distant_servers:
        return (
            f"HFiles would be staged in {staging_uri}, on this machine, and the region server {distant_servers[0]} is on another one and does not read it. "
            "`file` is for an HBase whose servers are all on this machine: set `staging` of the index cluster to a folder that they read, on HBase's own file system."
        )
    staged_on, own = _file_system(staging_uri), _file_system(root_uri)
    # Without a host it is whatever the configuration of Hadoop says here.
    if not root_uri or staged_on == own or (scheme == own[0] and not (staged_on[1] and own[1])):
        return ""
    return (
        f"HFiles would be staged in {staging_uri}, and HBase has its files in {root_uri}: its servers take files over from their own file system. "
        f"Set `staging` of the index cluster to a folder of {own[0]}://{urlsplit(root_uri).netloc}."
    )


def _file_system(uri: str) -> tuple[str, str]:
    """Its scheme, and the rest that tells it from others of that scheme."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return "file", ""
    port = f":{_PORTS[parts.scheme]}" if parts.scheme in _PORTS else ""
    return parts.scheme, parts.netloc.lower().removesuffix(port)
