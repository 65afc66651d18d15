"""What runs of an HBase that `deploy/services/hbase` started, and one of a test's own: to be killed in parts."""

from __future__ import annotations

import ipaddress
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import happybase

from lakehub.setup.machine import scaled
from tests.architecture.imports import ROOT

ANSWERS_WITHIN_S = 90
"""A killed region server blocks calls for as long as its session lasts, and its regions open elsewhere after that."""
_LISTENS = "0A"
_NAMED = b"-Dlakehub.hbase="


def connect(port: int) -> happybase.Connection:
    """To the Thrift server that listens there."""
    return happybase.Connection("127.0.0.1", port, timeout=int(scaled(ANSWERS_WITHIN_S) * 1000))


@dataclass(frozen=True)
class OwnHBase:
    folder: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=dict)

    def do(self, *what: str, stdout: int | None = None) -> None:
        """`start 2`, `kill region-server 1`. Raises where the script did not succeed."""
        environment = os.environ | {
            "LAKEHUB_TEST_SERVICES": str(self.folder),
            "LAKEHUB_TEST_HBASE_PORT": str(self.port),
            "LAKEHUB_TEST_HBASE_SETTINGS": "\n".join(f"{name} {value}" for name, value in self.settings.items()),
        }
        script = [str(ROOT / "deploy/services/hbase"), *what]
        subprocess.run(script, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=stdout)


@contextmanager
def own_hbase(folder: Path, port: int, servers: int, settings: Mapping[str, str] | None = None) -> Iterator[OwnHBase]:
    """Its first port is `port`. `settings`: of HBase itself, beside those that the script sets."""
    own = OwnHBase(folder, port, settings or {})
    own.do("start", str(servers))
    try:
        yield own
    finally:
        own.do("stop")


def listeners_of_hbase(port: int) -> set[tuple[str, int]]:
    """(address, port) of all on which processes listen that were started with the Thrift server at this port."""
    listening = dict(_listening())
    at = {process: {listening[inode] for inode in _sockets(process) if inode in listening} for process in _processes()}
    (folder,) = {_folder(process) for process, listeners in at.items() if port in {port for _, port in listeners}}
    return {each for process, listeners in at.items() if _folder(process) == folder for each in listeners}


def _processes() -> list[Path]:
    return [file.parent for file in Path("/proc").glob("[0-9]*/cmdline") if _NAMED in _content(file)]


def _folder(process: Path) -> bytes:
    named = next((part for part in _content(process / "cmdline").split(b"\0") if part.startswith(_NAMED)), b"")
    return named.rpartition(b"/")[0]


def _content(file: Path) -> bytes:
    with suppress(OSError):  # it has ended
        return file.read_bytes()
    return b""


def _sockets(process: Path) -> Iterator[str]:
    for file in (process / "fd").iterdir():
        with suppress(FileNotFoundError):
            kind, _, inode = os.readlink(file).partition(":")
            if kind == "socket":
                yield inode.strip("[]")


def _listening() -> Iterator[tuple[str, tuple[str, int]]]:
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == _LISTENS:
                address, _, port = local.partition(":")
                yield inode, (_address(address), int(port, 16))


def _address(hexadecimal: str) -> str:
    """The kernel writes words of four bytes, each as a number of this machine: the last byte first."""
    words = bytes.fromhex(hexadecimal)
    packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    return str(ipaddress.ip_address(packed))
