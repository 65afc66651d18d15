"""HBase's own command-line tools, run by the jars of `deploy/services/hbase`."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lakehub.setup.artifacts import fetch_artifacts
from lakehub.setup.jar_list import read_jar_list
from lakehub.setup.java import java_home
from lakehub.setup.machine import scaled
from tests.architecture.imports import ROOT

_HBASE = "org.apache.hadoop.hbase"
_CELL = re.compile(r"K: (.*)/([^/:]*):([^/]*)/(\d+)/Put/vlen=(\d+)/seqid=0 V: (.*)")
_ESCAPED = re.compile(rb"\\x([0-9A-F]{2})")


@dataclass(frozen=True)
class PrintedHFile:
    """`cells`: (row, family, qualifier, timestamp, value) in the order of the file. `complaints`: of the checks on the order of rows and on the family."""

    cells: list[tuple[bytes, bytes, bytes, int, bytes]]
    properties: dict[str, str]
    complaints: list[str]


def printed_hfile(file: Path) -> PrintedHFile:
    """What HBase's printer of HFiles says of one that lies in a folder named like its family: `-v -m -p -k -a`."""
    done = _run(f"{_HBASE}.io.hfile.HFilePrettyPrinter", "-v", "-m", "-p", "-k", "-a", "-f", file.as_uri())
    lines = done.stdout.splitlines()
    cells = [_cell(line) for line in lines if line.startswith("K: ")]
    assert f"Scanned kv count -> {len(cells)}" in lines, done.stderr
    described = (line.strip().rstrip(",").partition("=") for line in lines if line.startswith("    "))
    properties = {name.strip(): value.strip() for name, _, value in described}
    return PrintedHFile(cells, properties, re.findall("^WARNING.*", done.stdout + done.stderr, re.MULTILINE))


def bulk_load(folder: Path, table: str, zookeeper_port: int) -> None:
    """`folder` has a folder of HFiles for each family. On a local file system they are copied, and stay."""
    address = ("-Dhbase.zookeeper.quorum=127.0.0.1", f"-Dhbase.zookeeper.property.clientPort={zookeeper_port}")
    _run(f"{_HBASE}.tool.BulkLoadHFilesTool", *address, folder.as_uri(), table)


def _run(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    jars = fetch_artifacts(read_jar_list(ROOT / "deploy/services/hbase.jars"))
    java = [str(java_home() / "bin" / "java"), "-Xmx256m", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true"]
    command = [*java, "-cp", os.pathsep.join(map(str, jars)), tool, *arguments]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=scaled(180), check=False
    )
    assert done.returncode == 0, f"{tool} ended with {done.returncode}:\n{done.stderr[-4000:]}"
    return done


def _cell(line: str) -> tuple[bytes, bytes, bytes, int, bytes]:
    printed = _CELL.fullmatch(line)
    assert printed, line
    row, family, qualifier, timestamp, length, value = printed.groups()
    cell = (_bytes(row), _bytes(family), _bytes(qualifier), int(timestamp), _bytes(value))
    assert len(cell[-1]) == int(length)
    return cell


def _bytes(printed: str) -> bytes:
    """HBase writes bytes that are no visible ASCII, and backslashes, as `\\x1F`."""
    return _ESCAPED.sub(lambda escape: bytes.fromhex(escape[1].decode()), printed.encode())
