"""What is known of a table's keys in memory, while commits come, are rolled back and are archived."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups import key_map as module
from ingestion.spark.file_groups.key_map import KeyMaps, TooManyKeys
from ingestion.spark.file_groups.stored_rows import KEY
from ingestion.spark.tables.timeline import CommitArchived

SPARK: Any = None
"""Only Hudi's answers are faked, and they need none."""


class Commit(NamedTuple):
    instant: str
    completed: str


class Table:
    """Of commits by instant, each with the keys that it wrote to a file group. As the timeline, too, that the map asks."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written, self.files = dict[str, BaseFile](), dict[str, BaseFile]()
        """By commit, and by file group."""
        self.listings = 0
        self.archived: set[str] = set()
        """Listed just now, and gone when it is asked for."""
        monkeypatch.setattr(module, "Timeline", lambda _: self)
        monkeypatch.setattr(module, "partition_paths", lambda *_: [""])
        monkeypatch.setattr(module, "newest_base_files", lambda *_: self._list())
        self.folder, self.maps = folder, KeyMaps()

    def commit(self, instant: str, group: str, keys: Iterable[str]) -> None:
        name = f"{group}-{instant}.parquet"
        pq.write_table(pa.table({KEY: pa.array([*keys], pa.string())}), self.folder / name)
        self.written[instant] = self.files[group] = BaseFile(FileGroup("", group), name, 0)

    def completed(self) -> list[Commit]:
        return [Commit(instant, instant) for instant in sorted(self.written)]

    def written_files(self, commit: Commit) -> list[tuple[str, str, str]]:
        if commit.instant in self.archived:
            raise CommitArchived(commit.instant)
        file = self.written[commit.instant]
        return [("", file.group.file_id, file.path)]

    def groups(self, *keys: str) -> set[str]:
        return {group.file_id for group in self.maps.of(self.folder.as_uri()).groups_of(SPARK, keys)}

    def _list(self) -> list[BaseFile]:
        self.listings += 1
        return [*self.files.values()]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    table = Table(tmp_path, monkeypatch)
    table.commit("1", "f", ["a"])
    table.commit("2", "g", ["b"])
    table.commit("3", "h", ["c"])
    return table


def test_later_commits_are_read_and_the_table_is_listed_once(table: Table) -> None:
    assert table.groups("a", "c", "d") == {"f", "h"}
    table.commit("4", "i", ["a", "d"])
    assert table.groups("a", "d") == {"i"}
    del table.written["1"]  # archived
    table.commit("5", "j", ["e"])
    assert table.groups("a", "b", "e") == {"i", "g", "j"}
    assert table.listings == 1


def test_a_commit_that_is_archived_before_its_files_are_read_is_not_missed(table: Table) -> None:
    assert table.groups("a") == {"f"}
    table.commit("4", "i", ["d"])
    table.archived = {"4"}
    assert table.groups("a", "d") == {"f", "i"}
    assert table.listings == 2


def test_a_commit_that_was_rolled_back_is_forgotten(table: Table) -> None:
    assert table.groups("c") == {"h"}
    del table.written["3"], table.files["h"]
    table.commit("4", "i", ["c"])
    assert table.groups("c") == {"i"}
    assert table.listings == 2


def test_a_table_that_was_made_anew_is_read_anew(table: Table) -> None:
    assert table.groups("a") == {"f"}
    table.written.clear()
    table.files.clear()
    table.commit("7", "n", ["b"])
    assert table.groups("a", "b") == {"n"}


def test_a_reading_that_failed_leaves_nothing_that_is_believed(table: Table) -> None:
    assert table.groups("a", "b") == {"f", "g"}
    del table.written["2"]  # rolled back; its file is read by the listing all the same
    broken = table.folder / table.files["h"].name
    content = broken.read_bytes()
    broken.write_bytes(b"cut off")
    with pytest.raises(pa.ArrowInvalid):
        table.groups("a")
    broken.write_bytes(content)
    del table.written["1"]  # archived: seen from here the timeline goes on
    assert table.groups("a", "b", "c") == {"f", "g", "h"}


def test_a_table_with_too_many_keys_is_not_read_again_until_it_is_forgotten(table: Table) -> None:
    table.maps.most = 2
    for _ in range(2):
        with pytest.raises(TooManyKeys, match="record_index"):
            table.groups("a")
    key_map = table.maps.of(table.folder.as_uri())
    assert (table.listings, len(key_map)) == (1, 0)
    table.maps.most = 3
    key_map.forget()
    assert table.groups("a") == {"f"}


def test_of_several_tables_the_one_asked_for_longest_ago_is_let_go(table: Table) -> None:
    """Each has three keys."""
    table.maps.most = 7
    uris = [f"{table.folder.as_uri()}{place * '/.'}" for place in range(3)]
    tables = [table.maps.of(uri) for uri in uris]
    for key_map in tables[:2]:
        key_map.groups_of(SPARK, ["a"])
    table.maps.of(tables[0].uri)
    tables[2].groups_of(SPARK, ["a"])
    assert [table.maps.of(key_map.uri) is key_map for key_map in tables] == [True, False, True]
