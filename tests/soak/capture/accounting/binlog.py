"""What the server's binlog says was changed, as MariaDB's own `mariadb-binlog` reads it: nothing of Lakehub takes part."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

Key = tuple[str, ...]
_COMMANDS = ("mariadb-binlog", "mysqlbinlog")
_GTID = re.compile(r"#\d{6} .*\tGTID \d+-\d+-(\d+)")
_ROW = re.compile(r"### (INSERT INTO|UPDATE|DELETE FROM) `[^`]+`\.`([^`]+)`")
_VALUE = re.compile(r"###   @(\d+)=(.*) /\* [A-Z].* \*/")
_UNSIGNED = re.compile(r"-\d+ \((\d+)\)")
_NO_TEXT = "='\xff' /* "
"""The value of tests.soak.capture.misfits, as a byte of the file."""


class Change(NamedTuple):
    """`sequence`: of the transaction. A row whose key changes is two, as in the changelog: the old key is deleted, and the new one is there.
    `is_put_aside`: the new row has a value that cannot be read."""

    sequence: int
    key: Key
    is_deleted: bool
    is_put_aside: bool = False


Changes = Counter[Change]


def sequence_of(gtid: str) -> int:
    return int(gtid.rpartition("-")[2] or 0)


@dataclass
class Gap:
    """Of a table whose capture has stopped: changes up to the transaction `upto` were captured, from after `began` on. `is_open`: it was not loaded yet."""

    began: int
    upto: int
    is_open: bool = True


@dataclass
class Accounts:
    """What is known of the binlog and of the changelog up to the last round, so that each round reads only what came since."""

    folder: Path
    """With the files of the binlog."""
    key_widths: Mapping[str, int]
    newest: str = ""
    """The GTID up to which it was read."""
    unchecked: dict[str, Changes] = field(default_factory=lambda: defaultdict(Counter))
    """By table, changes that were not compared with the changelog yet."""
    read_upto: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    """By topic and partition, the offset of the next message."""
    gaps: dict[str, Gap] = field(default_factory=dict)
    """By table, of this round."""
    cells: set[tuple[str, str, int]] = field(default_factory=set)
    """That were there when the changelog was compared with them first."""
    repeated: dict[str, Counter[bytes]] = field(default_factory=lambda: defaultdict(Counter))
    """By topic, messages that the rounds have written there once more, and no tap."""

    def read_binlog(self, newest: str) -> dict[str, Changes]:
        """What came up to this GTID, while nobody writes."""
        if newest == self.newest:
            return {}
        changes = read_binlog(self.folder, self.newest, self.key_widths)
        for table, counted in changes.items():
            self.unchecked[table] += counted
        self.newest = newest
        return changes


def read_binlog(folder: Path, after: str, key_widths: Mapping[str, int]) -> dict[str, Changes]:
    """By table, what was committed after the GTID. `key_widths`: of the tables, how many columns their keys have, which are the first ones."""
    command = next(filter(None, map(shutil.which, _COMMANDS)), None)
    if command is None:
        raise RuntimeError("mariadb-binlog is not installed: apt-get install mariadb-server")
    start = [f"--start-position={after}"] if after else []
    options = ["--no-defaults", "--base64-output=decode-rows", "-vv", "--skip-annotate-row-events", *start]
    files = sorted(str(path) for path in folder.glob("binlog.[0-9]*"))
    with subprocess.Popen([command, *options, *files], stdout=subprocess.PIPE, encoding="latin-1") as reading:
        assert reading.stdout is not None
        changes = parse(reading.stdout, key_widths)
    if reading.returncode:
        raise RuntimeError(f"{command} has ended with {reading.returncode} in {folder}")
    return changes


def parse(lines: Iterable[str], key_widths: Mapping[str, int]) -> dict[str, Changes]:
    """A transaction without its end was never made: the server died while it wrote it."""
    changes, opened = defaultdict[str, Changes](Counter), list[tuple[str, Change]]()
    sequence, row = 0, _Row("", "", 0)
    for line in lines:
        if line.startswith("###   @"):
            row.take_value(line)
            continue
        if line.startswith(("### SET", "### WHERE")):
            row.images.append([])
            continue
        opened += ((row.table, change) for change in row.changes(sequence))
        row = _Row("", "", 0)
        if begun := _ROW.match(line):
            row = _Row(begun[1], begun[2], key_widths.get(begun[2], 0))
        elif gtid := _GTID.match(line):
            sequence, opened = int(gtid[1]), []
        elif line.startswith("ROLLBACK TO"):
            raise ValueError(f"{line.strip()} in transaction {sequence}: tables of such an engine are not compared")
        elif line.startswith("ROLLBACK"):
            opened = []
        elif line.startswith("COMMIT"):
            for table, change in opened:
                changes[table][change] += 1
            opened = []
    return dict(changes)


class _Row:
    """`width`: columns of its key; 0: nobody asks for the table."""

    def __init__(self, statement: str, table: str, width: int) -> None:
        self._statement, self.table, self._width = statement, table, width
        self.images: list[list[str]] = []
        self._unreadable = 0
        """The image that has such a value, counted from 1."""

    def take_value(self, line: str) -> None:
        """Only those of the key, which come first, are kept."""
        if _NO_TEXT in line:
            self._unreadable = len(self.images)
        if len(self.images[-1]) < self._width:
            value = _VALUE.match(line)
            if value is None or int(value[1]) != len(self.images[-1]) + 1:
                raise ValueError(f"`{self.table}`: the key is not in {line.strip()}")
            self.images[-1].append(_plain(value[2]))

    def changes(self, sequence: int) -> Iterator[Change]:
        if not self._width:
            return
        before, after = tuple(self.images[0]), tuple(self.images[-1])
        is_deleted, is_inserted = self._statement.startswith("DELETE"), self._statement.startswith("INSERT")
        is_put_aside = not is_deleted and self._unreadable == len(self.images)
        if is_deleted or (not is_inserted and before != after):
            yield Change(sequence, before, True, is_put_aside)
        if not is_deleted:
            yield Change(sequence, after, False, is_put_aside)


def _plain(value: str) -> str:
    """Numbers below zero have beside them what they are without a sign: no key of ours has one."""
    if unsigned := _UNSIGNED.fullmatch(value):
        return unsigned[1]
    return value[1:-1] if value.startswith("'") else value
