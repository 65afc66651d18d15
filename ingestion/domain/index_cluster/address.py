"""The address of a cluster: `hbase://thrift:9090?quorum=zk1:2181,zk2:2181&staging=hdfs://nn/hfiles`. It needs no client library.

Without a host (`hbase://?quorum=...`) HBase's own client is used in place of its Thrift server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlsplit

from lakehub.kernel.suggest import did_you_mean

EXAMPLE = "Write hbase://host:9090?quorum=zk1:2181,zk2:2181&staging=hdfs://namenode/hfiles."
THRIFT_PORT, QUORUM_PORT = 9090, 2181
_USUAL_ZNODE = "/hbase"
_OPTIONS = ("quorum", "staging", "znode")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::([0-9]{1,5}))?")
_ZNODE = re.compile(r"(/[A-Za-z0-9_.-]+)+")
_STAGING_SCHEMES = ("file", "hdfs", "s3a", "abfs", "abfss", "gs")


class UnusableAddress(ValueError):
    """The message holds nothing of the address that may be a password."""


@dataclass(frozen=True)
class HostPort:
    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@dataclass(frozen=True)
class ClusterAddress:
    """`thrift`: where gets and puts go; None: to the region servers, by HBase's own client. `quorum`: the servers of ZooKeeper, which it asks for them. `staging`: the URI of a folder that region servers read HFiles from."""

    thrift: HostPort | None
    quorum: tuple[HostPort, ...]
    staging: str
    znode: str = _USUAL_ZNODE

    @property
    def hosts(self) -> Sequence[str]:
        """All that are connected to, once each."""
        staging = urlsplit(self.staging).hostname
        thrift = [self.thrift.host] if self.thrift else []
        names = [*thrift, *(each.host for each in self.quorum), *([staging] if staging else [])]
        return tuple(dict.fromkeys(names))

    def is_same_hbase(self, other: ClusterAddress) -> bool:
        """ZooKeeper and the place there say which it is. It may have several Thrift servers, and its files be staged anywhere."""
        return (frozenset(self.quorum), self.znode) == (frozenset(other.quorum), other.znode)

    def __str__(self) -> str:
        """For people: without what may be left out."""
        znode = "" if self.znode == _USUAL_ZNODE else f"&znode={self.znode}"
        return f"hbase://{self.thrift or ''}?quorum={','.join(map(str, self.quorum))}&staging={self.staging}{znode}"


def read_address(url: str) -> ClusterAddress:
    """Raises UnusableAddress."""
    parts = _parse(url)
    thrift = _host_port(parts.netloc, THRIFT_PORT, "The host") if parts.netloc else None
    options = _options(parts)
    return ClusterAddress(
        thrift,
        _quorum(options["quorum"]),
        _staging(options["staging"]),
        _znode(options.get("znode", _USUAL_ZNODE)),
    )


def _parse(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise UnusableAddress(f"The address does not parse. {EXAMPLE}") from None
    if parts.scheme != "hbase":
        raise UnusableAddress(f"The address does not begin with hbase://. {EXAMPLE}")
    if "@" in url.partition("staging=")[0]:
        raise UnusableAddress(
            "The address has a user or a password, and HBase's Thrift server asks for none. Leave them out, and let the network keep others away from "
            f"the server. {EXAMPLE}"
        )
    if parts.fragment or parts.path.strip("/"):
        raise UnusableAddress(f"The address has a path or a # behind the host. {EXAMPLE}")
    return parts


def _options(parts: SplitResult) -> dict[str, str]:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(pairs)
    if len(options) != len(pairs):
        raise UnusableAddress(f"The address names an option twice. {EXAMPLE}")
    for name in options.keys() - set(_OPTIONS):  # it is not shown: it may be of the password
        raise UnusableAddress(
            f"The address has an unknown option: it takes {', '.join(_OPTIONS)}.{did_you_mean(name, _OPTIONS)}"
        )
    missing = [name for name in ("quorum", "staging") if not options.get(name)]
    if missing:
        raise UnusableAddress(f"The address lacks {' and '.join(missing)}. {EXAMPLE}")
    return options


def _quorum(text: str) -> tuple[HostPort, ...]:
    return tuple(
        _host_port(part, QUORUM_PORT, f"ZooKeeper {number} of `quorum`")
        for number, part in enumerate(text.split(","), 1)
    )


def _host_port(text: str, port: int, name: str) -> HostPort:
    matched = _HOST.fullmatch(text)
    if matched is None or not 0 < int(matched[2] or port) < 2**16:  # it is not shown: it may be the password
        raise UnusableAddress(f"{name} is not a host with a port. {EXAMPLE}")
    return HostPort(matched[1].strip("[]").lower(), int(matched[2] or port))


def _staging(uri: str) -> str:
    try:
        parts = urlsplit(uri)
        is_usable = (
            parts.scheme in _STAGING_SCHEMES and parts.path.startswith("/") and not (parts.query or parts.fragment)
        )
        has_place = bool(parts.netloc) or parts.scheme in ("file", "hdfs")
        has_secret = "@" in parts.netloc and not parts.scheme.startswith("abfs")  # there it is the container
        # Of these HBase, Spark and Arrow make different paths.
        is_plain = re.search(r"[%\s{}\[\]*?\\]", uri) is None
        is_usable = is_usable and has_place and is_plain and not has_secret
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UnusableAddress(
            f"`staging` is not the URI of a folder that the region servers read. Write one that begins with {', '.join(_STAGING_SCHEMES[:-1])} or "
            f"{_STAGING_SCHEMES[-1]}, such as hdfs://namenode/hfiles, without spaces, wildcards and escapes."
        )
    return uri.rstrip("/")


def _znode(text: str) -> str:
    if not _ZNODE.fullmatch(text):
        raise UnusableAddress("`znode` is not a path of ZooKeeper: write one such as /hbase, or leave it out for that.")
    return text
