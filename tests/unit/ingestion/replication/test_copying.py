"""Files are copied whole or not at all, not twice, and no faster than they may be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from ingestion.domain.pace import Pace
from ingestion.domain.replication.plan import ReplicaState
from ingestion.spark.replication.copying import Bandwidth, ChecksumMismatch, Copier
from ingestion.spark.replication.replicating import BUILDING, Replication
from ingestion.spark.replication.state import BUILT_OF, write_state, write_whole
from ingestion.spark.replication.table_folder import FolderNotRenamed, TableFolder, UnfitPath
from ingestion.spark.tables.timeline import open_storage

MIB = 2**20


@pytest.fixture
def folders(tmp_path: Path) -> tuple[TableFolder, TableFolder]:
    (tmp_path / "a" / "p").mkdir(parents=True)
    (tmp_path / "a" / "p" / "f.parquet").write_bytes(bytes(range(256)) * 4096 * 5)
    return TableFolder((tmp_path / "a").as_uri()), TableFolder((tmp_path / "b").as_uri())


def test_it_is_copied_once(folders: tuple[TableFolder, TableFolder]) -> None:
    source, target = folders
    copier = Copier(source, target, Bandwidth())
    copier.copy("p/f.parquet")
    copier.copy("p/f.parquet")
    assert (copier.files, copier.size, copier.reused) == (1, 5 * MIB, 0)
    assert target.read("p/f.parquet") == source.read("p/f.parquet")
    assert [*target.sizes()] == ["p/f.parquet"]


def test_what_lies_near_is_taken_from_there(folders: tuple[TableFolder, TableFolder], tmp_path: Path) -> None:
    source, near = folders
    Copier(source, near, Bandwidth()).copy("p/f.parquet")
    copier = Copier(source, TableFolder((tmp_path / "c").as_uri()), Bandwidth(), near=near)
    copier.copy("p/f.parquet")
    assert (copier.files, copier.size, copier.reused) == (0, 0, 1)


def test_what_the_source_has_not_is_an_error(folders: tuple[TableFolder, TableFolder]) -> None:
    with pytest.raises(FileNotFoundError):
        Copier(*folders, Bandwidth()).copy("p/other.parquet")


@dataclass(frozen=True)
class TornFolder(TableFolder):
    """It loses the end of what it reads."""

    def open(self, path: str) -> Any:
        file = Path(self.uri.removeprefix("file://")) / path
        file.write_bytes(file.read_bytes()[:-1])
        return super().open(path)


def test_a_file_that_is_cut_off_gets_no_name(folders: tuple[TableFolder, TableFolder]) -> None:
    source, target = folders
    with pytest.raises(ChecksumMismatch, match=r"p/f\.parquet"):
        Copier(source, TornFolder(target.uri), Bandwidth()).copy("p/f.parquet")
    assert target.size("p/f.parquet") is None


def test_it_reads_so_many_bytes_in_a_second(folders: tuple[TableFolder, TableFolder]) -> None:
    """Reading back what was written costs no bandwidth."""
    time, asked = [0.0], []

    def sleep(seconds: float) -> None:
        time[0] += seconds

    bandwidth = Bandwidth(lambda: asked.append(1), Pace(0.5 * MIB), clock=lambda: time[0], sleep=sleep)
    Copier(*folders, bandwidth).copy("p/f.parquet")
    assert time[0] == pytest.approx(10.0)
    assert len(asked) >= 10


@pytest.mark.parametrize("path", ["../other/x.parquet", "p/../../other/x.parquet", "/etc/passwd", "p//f.parquet", "./p", "", "p/..", "p\\..\\..\\x"])  # fmt: skip
def test_a_path_that_leads_out_of_the_table_is_refused(folders: tuple[TableFolder, TableFolder], path: str) -> None:
    """Whoever writes the timeline of one data center could write any table of another."""
    source, target = folders
    with pytest.raises(UnfitPath, match="leads out of its folder"):
        Copier(source, target, Bandwidth()).copy(path)
    with pytest.raises(UnfitPath):
        target.delete(path)


def test_what_another_replication_has_left_takes_no_place(folders: tuple[TableFolder, TableFolder]) -> None:
    """A run of long ago was killed before it swapped; the copy was fed since."""
    source, target = folders
    Copier(source, target, Bandwidth()).copy("p/f.parquet")
    left = target.beside(BUILDING)
    write_whole(left, BUILT_OF, b"file:///lake/dc9/other")
    write_state(left, ReplicaState("file:///lake/dc9/other", ""))
    Replication(source, target, Bandwidth(), 0.0)._finish_swap()
    assert [*target.sizes()] == ["p/f.parquet"]
    assert not left.is_there


class FilesAlone:
    """A file system that moves files and, like an object store, no folders."""

    def __init__(self, filesystem: fs.FileSystem) -> None:
        self._filesystem = filesystem

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filesystem, name)

    def move(self, path: str, to: str) -> None:
        if self._filesystem.get_file_info(path).type != fs.FileType.File:
            raise OSError(f"there is no object {path}")
        self._filesystem.move(path, to)


@dataclass(frozen=True)
class ObjectStore(TableFolder):
    @cached_property
    def _storage(self) -> Any:
        filesystem, root = open_storage(self.uri)
        return FilesAlone(filesystem), root


@pytest.mark.parametrize("storage", [TableFolder, ObjectStore])
def test_where_no_folder_is_renamed_nothing_is_copied(
    folders: tuple[TableFolder, TableFolder], tmp_path: Path, storage: type[TableFolder]
) -> None:
    source, target = folders
    write_whole(source, ".hoodie/hoodie.properties", b"hoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=9\n")
    write_whole(source, ".hoodie/timeline/20261116080000000_20261116080001000.commit", b"{}")
    replication = Replication(source, storage(target.uri), Bandwidth(), 0.0)
    if storage is TableFolder:
        assert replication.run().resync == "there is no replica yet"
    else:
        with pytest.raises(FolderNotRenamed, match=r"there is no object .* which object stores cannot do"):
            replication.run()
        assert not target.is_there
    assert not [path for path in (tmp_path / ".lakehub").rglob("*") if path.is_file()]
