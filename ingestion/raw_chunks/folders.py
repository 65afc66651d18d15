"""Where raw chunks lie: a folder for each table, and in it one for each load."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from ingestion.raw_chunks.chunk_file import DamagedChunk, RawChunk, read_chunk_file

if TYPE_CHECKING:
    from pyarrow import fs

_BEGINNING, _END = "beginning.json", "end.json"
_CHUNK_SUFFIX, _UNFINISHED = ".avro", ".new"
_WHOLE_WHEN_CLOSED = ("s3", "gcs", "abfs")
"""Storages of objects: what is written there is to be seen when it is whole, and a rename would copy it."""


@dataclass(frozen=True)
class RawLoad:
    """The chunks that one load has read, by number. `path`: of the folder."""

    filesystem: fs.FileSystem
    path: str

    @property
    def name(self) -> str:
        return unquote(self.path.rpartition("/")[2])

    def beginning(self) -> dict[str, Any] | None:
        """Where the source stood when the load began; None: it has not begun."""
        return self._facts(_BEGINNING)

    def begin(self, facts: Mapping[str, Any]) -> None:
        """What a process that died here has left of another beginning is removed."""
        self.remove()
        self._write(_BEGINNING, json.dumps(facts).encode())

    def end_facts(self) -> dict[str, Any] | None:
        """None: not all chunks are there."""
        return self._facts(_END)

    def end(self, chunks: int, facts: Mapping[str, Any]) -> None:
        """All `chunks` were read. Where some of them, or the beginning, were removed meanwhile, nobody can read the load again, and it stays without an end."""
        names = {self._chunk_name(number) for number in range(chunks)} | {_BEGINNING}
        if names <= {info.base_name for info in self._files()}:
            self._write(_END, json.dumps({**facts, "chunks": chunks}).encode())

    def land(self, number: int, content: bytes) -> None:
        """On disk when it returns."""
        self._write(self._chunk_name(number), content)

    def chunk(self, number: int) -> RawChunk | None:
        """None: it is not there. Raises DamagedChunk."""
        content = self._read(self._chunk_name(number))
        try:
            return None if content is None else read_chunk_file(content)
        except DamagedChunk as problem:
            raise DamagedChunk(
                f"The raw chunk {self.path}/{self._chunk_name(number)} is damaged: {problem}"
            ) from problem

    def written_at(self) -> datetime | None:
        """The newest of its files; None: it has none."""
        return max((info.mtime.astimezone(UTC) for info in self._files() if info.mtime), default=None)

    def remove(self) -> None:
        _remove(self.filesystem, self.path)

    def _chunk_name(self, number: int) -> str:
        return f"{number:08}{_CHUNK_SUFFIX}"

    def _files(self) -> list[fs.FileInfo]:
        from pyarrow import fs

        return list(self.filesystem.get_file_info(fs.FileSelector(self.path, allow_not_found=True)))

    def _facts(self, name: str) -> dict[str, Any] | None:
        content = self._read(name)
        facts: dict[str, Any] | None = None if content is None else json.loads(content)
        return facts

    def _read(self, name: str) -> bytes | None:
        try:
            with self.filesystem.open_input_stream(f"{self.path}/{name}") as file:
                content: bytes = file.read()
                return content
        except FileNotFoundError:
            return None

    def _write(self, name: str, content: bytes) -> None:
        from pyarrow import fs

        target = f"{self.path}/{name}"
        self.filesystem.create_dir(self.path)
        if isinstance(self.filesystem, fs.LocalFileSystem):
            _write_on_disk(Path(target), content)
            return
        written = target if self.filesystem.type_name in _WHOLE_WHEN_CLOSED else target + _UNFINISHED
        with self.filesystem.open_output_stream(written) as file:
            file.write(content)
        if written != target:
            self.filesystem.move(written, target)


@dataclass(frozen=True)
class RawFolder:
    """Of a table."""

    filesystem: fs.FileSystem
    path: str

    def load(self, load: str) -> RawLoad:
        return RawLoad(self.filesystem, f"{self.path}/{quote(load, safe='')}")

    def loads(self) -> list[RawLoad]:
        from pyarrow import fs

        infos = self.filesystem.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return [
            RawLoad(self.filesystem, f"{self.path}/{info.base_name}")
            for info in infos
            if info.type == fs.FileType.Directory
        ]

    def newest_whole_load(self) -> RawLoad | None:
        """The one that ended last."""
        whole = [load for load in self.loads() if load.end_facts() is not None]
        return max(whole, key=lambda load: load.written_at() or datetime.min.replace(tzinfo=UTC), default=None)

    def keep_newest(self) -> None:
        """A load has ended: what others have read takes room only."""
        newest = self.newest_whole_load()
        for load in self.loads():
            if load != newest:
                load.remove()

    def remove(self) -> None:
        _remove(self.filesystem, self.path)


def _remove(filesystem: fs.FileSystem, path: str) -> None:
    """Also where it is not there, or another process removes it."""
    try:
        filesystem.delete_dir(path)
    except FileNotFoundError:
        return


def _write_on_disk(target: Path, content: bytes) -> None:
    new = target.with_name(target.name + _UNFINISHED)
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(target)
    handle = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
