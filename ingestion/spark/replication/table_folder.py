"""The folder of a table in any file system that pyarrow reaches, as replication changes it: each change is one operation, and whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from ingestion.domain.replication.instants import TimelineNames
from ingestion.spark.tables.timeline import Timeline, open_storage

if TYPE_CHECKING:
    from pyarrow import NativeFile, fs

TIMELINE, PROPERTIES = ".hoodie/timeline", ".hoodie/hoodie.properties"
PARTITION_MARK = ".hoodie_partition_metadata"


class UnfitPath(ValueError):
    """A file outside of the table's folder is named."""


class FolderNotRenamed(ValueError):
    """The storage has not renamed a folder."""


@dataclass(frozen=True)
class TableFolder:
    """Paths are within the table."""

    uri: str

    @cached_property
    def _storage(self) -> tuple[fs.FileSystem, str]:
        return open_storage(self.uri)

    @property
    def exists(self) -> bool:
        return Timeline(self.uri).exists

    def timeline(self) -> TimelineNames:
        return TimelineNames.of(Timeline(self.uri).list_names(TIMELINE))

    def size(self, path: str) -> int | None:
        """None: there is no such file."""
        from pyarrow import fs

        filesystem, root = self._storage
        info = filesystem.get_file_info(f"{root}/{_within(path)}")
        size: int | None = info.size
        return size if info.type == fs.FileType.File else None

    def sizes(self) -> dict[str, int]:
        """Of all its files. Raises FileNotFoundError where there is no folder."""
        from pyarrow import fs

        filesystem, root = self._storage
        infos = filesystem.get_file_info(fs.FileSelector(root, recursive=True))
        return {info.path.removeprefix(f"{root}/"): info.size for info in infos if info.type == fs.FileType.File}

    def beside(self, folder: str) -> TableFolder:
        """Of the same name, in a folder beside this one that is no table's."""
        parent, _, name = self.uri.rstrip("/").rpartition("/")
        return replace(self, uri=f"{parent}/.lakehub/{folder}/{name}")

    def read(self, path: str) -> bytes:
        with self.open(path) as file:
            content: bytes = file.read()
            return content

    @contextmanager
    def open(self, path: str) -> Iterator[NativeFile]:
        """Raises FileNotFoundError."""
        filesystem, root = self._storage
        with filesystem.open_input_stream(f"{root}/{_within(path)}", compression=None) as file:
            yield file

    @contextmanager
    def create(self, path: str) -> Iterator[NativeFile]:
        """Its folder is made as well."""
        filesystem, root = self._storage
        filesystem.create_dir(f"{root}/{_within(path)}".rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(f"{root}/{_within(path)}", compression=None) as file:
            yield file

    def move(self, path: str, to: str) -> None:
        """In the place of what is there."""
        filesystem, root = self._storage
        source, target = f"{root}/{_within(path)}", f"{root}/{_within(to)}"
        filesystem.create_dir(target.rpartition("/")[0], recursive=True)
        try:
            filesystem.move(source, target)
        except OSError:
            if self.size(to) is None:
                raise
            # Not every file system replaces a file by moving another.
            filesystem.delete_file(target)
            filesystem.move(source, target)

    def delete(self, path: str) -> None:
        filesystem, root = self._storage
        filesystem.delete_file(f"{root}/{_within(path)}")

    def make_folder(self, path: str) -> None:
        filesystem, root = self._storage
        filesystem.create_dir(f"{root}/{_within(path)}", recursive=True)

    def remove(self) -> None:
        """All of it."""
        from pyarrow import fs

        filesystem, root = self._storage
        if filesystem.get_file_info(root).type != fs.FileType.NotFound:
            filesystem.delete_dir(root)

    def rename(self, to: TableFolder) -> None:
        """The whole folder, where there is none yet. Raises FolderNotRenamed."""
        filesystem, root = self._storage
        target = open_storage(to.uri)[1]
        filesystem.create_dir(target.rpartition("/")[0], recursive=True)
        try:
            filesystem.move(root, target)
        except (OSError, NotImplementedError) as problem:
            raise FolderNotRenamed(
                f"The folder {self.uri} cannot be renamed to {to.uri}: {problem}. A replica is put in its place by renaming its folder, which object stores cannot do. "
                "Put the lake of this data center on a file system, or end the replication: the copy is then loaded from the source of its dataset."
            ) from problem

    def check_renaming(self) -> None:
        """Raises FolderNotRenamed where its storage renames no folder. Tried beside the table, with a folder of one empty file."""
        trial, renamed = self.beside("trial"), self.beside("renamed")
        renamed.remove()  # by a run that was killed here
        try:
            with trial.create("empty"):
                pass
            trial.rename(renamed)
        finally:
            trial.remove()
            renamed.remove()

    @property
    def is_there(self) -> bool:
        """A folder of this name, whatever is in it."""
        from pyarrow import fs

        filesystem, root = self._storage
        return bool(filesystem.get_file_info(root).type != fs.FileType.NotFound)


def _within(path: str) -> str:
    """A timeline of another data center names files: none of them leads out of the table's folder. Raises UnfitPath."""
    if not path or any(part in ("", ".", "..") for part in path.split("/")) or "\\" in path:
        raise UnfitPath(
            f"The path {path!r} is none of a file within a table: it leads out of its folder. Nothing was copied there. Look who has written the commits of the source."
        )
    return path
