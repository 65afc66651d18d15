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
from ingestion.spark.file_groups.key_map import KeyMap, KeyMaps, TooManyKeys
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
        self.listings = self.looks = 0
        """Of its folders, and of its timeline."""
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
        self.looks += 1
        return [Commit(instant, instant) for instant in sorted(self.written, key=int)]

    def written_files(self, commit: Commit) -> list[tuple[str, str, str]]:
        if commit.instant in self.archived:
            raise CommitArchived(commit.instant)
        file = self.written[commit.instant]
        return [("", file.group.file_id, file.path)]

    def groups(self, *keys: str) -> set[str]:
        return {group.file_id for group in self.maps.of(self.folder.as_uri()).groups_of(SPARK, keys)}

    @property
    def key_map(self) -> KeyMap:
        return self.maps.of(self.folder.as_uri())

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
    assert (table.listings, len(table.key_map), table.key_map.is_read) == (1, 0, False)
    table.maps.most = 3
    table.key_map.forget()
    assert table.groups("a") == {"f"}


def test_keys_that_are_gone_do_not_count_as_too_many(table: Table) -> None:
    """Rows come and go, and the table never has more than three."""
    table.maps.most = 5
    for number in range(4, 40):
        table.commit(str(number), "h", [f"rolling-{number}"])
        assert table.groups(f"rolling-{number}", "a") == {"h", "f"}
    assert table.key_map.too_many is None
    assert table.listings == 1 + 35 // 3, "at first, and for each three keys that are gone"


def test_a_table_with_too_many_keys_is_read_again_when_it_was_made_anew(table: Table) -> None:
    table.maps.most = 2
    with pytest.raises(TooManyKeys):
        table.groups("a")
    table.written.clear()
    table.files.clear()
    table.commit("7", "n", ["b"])
    assert table.groups("b") == {"n"}
    assert table.key_map.too_many is None


def test_a_table_with_too_many_keys_is_read_again_after_many_commits(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_AFTER_COMMITS", 3)
    table.maps.most = 2
    outcomes = []
    for number in range(4, 9):
        with pytest.raises(TooManyKeys):
            table.groups("a")
        table.commit(str(number), "h", ["d"])
        outcomes.append(table.listings)
    assert outcomes == [1, 1, 1, 2, 2]
    table.commit("9", "g", [])
    assert table.groups("a", "d") == {"f", "h"}


def test_a_process_that_lags_reads_of_each_group_the_newest_version_only(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert table.groups("a") == {"f"}
    looks, reads, open_file = table.looks, [], pq.ParquetFile

    def count(file: Any) -> pq.ParquetFile:
        reads.append(file)
        return open_file(file)

    monkeypatch.setattr(pq, "ParquetFile", count)
    for number in range(4, 400):
        table.commit(str(number), "fgh"[number % 3], [f"{number % 3}-{key}" for key in range(3)])
    assert table.groups("0-1", "2-2", "unknown") == {"f", "h"}
    assert (len(reads), table.looks - looks, table.listings) == (3, 1, 1)


def test_keys_of_a_group_that_was_replaced_are_where_they_went(table: Table) -> None:
    assert table.groups("a") == {"f"}
    table.commit("4", "g", ["b"])
    table.commit("5", "f", ["a", "d"])
    table.commit("6", "i", ["a"])  # in place of f, which nobody writes any more
    table.commit("7", "g", ["b", "d"])
    assert (table.groups("a"), table.groups("b", "d")) == ({"i"}, {"g"})


def test_a_key_that_went_and_came_back_is_where_it_is_now(table: Table) -> None:
    assert table.groups("a") == {"f"}
    table.commit("4", "g", ["b", "a"])
    table.commit("5", "f", [])
    table.commit("6", "f", ["a"])
    table.commit("7", "g", ["b"])
    assert table.groups("a", "b") == {"f", "g"}


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


def test_tables_that_push_each_other_out_are_named_until_they_have_room(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_AFTER_COMMITS", 4)
    uri, other = table.folder.as_uri(), f"{table.folder.as_uri()}/."
    table.maps.most = 5  # each table has three keys, of which two tables have one too many
    limitations = []
    for _ in range(4):
        for each in (uri, other):
            table.maps.of(each).groups_of(SPARK, ())
        table.maps.of(uri).groups_of(SPARK, ())
        limitations.append(table.maps.limitation(uri))
    assert limitations[:2] == ["", ""]
    assert "were let go 3 times to make room" in str(limitations[2])
    assert "`record_index`" in str(limitations[3])
    assert [bool(table.maps.limitation(uri)) for _ in range(4)] == [True, True, False, False]
