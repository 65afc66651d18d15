"""Where the keys of a table lie, kept in memory and brought up to date from the timeline.

An entry may be stale: a key that was deleted, or moved away, is still looked for where it was, and not met there. A key without an
entry would be inserted twice, so what commits have written is read for its keys before the next question is answered: of each file
group the newest version, which has all of its keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import SparkSession

from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups.lookups import newest_base_files, partition_paths
from ingestion.spark.file_groups.stored_rows import KEY
from ingestion.spark.tables.timeline import CommitArchived, CompletedFile, Timeline, open_storage

MAX_KEYS = 2_000_000
"""Of all tables, in the memory of each process that writes them: some 150 bytes a key."""
RETRY_AFTER_COMMITS = 500
"""A table that had too many keys is read once more after so many commits: rows may have been deleted, or another process told to rebuild."""
LET_GO_OFTEN = 3
"""A table that is let go so often is read as a whole again and again; once is a matter of course where tables come and go."""
_ENTRIES_A_FILE = 500_000


class TooManyKeys(ValueError):
    """The table has more keys than are kept in memory."""


class KeyMaps:
    """Of the tables that a process writes, `most` keys together: those of the table that was asked for longest ago are let go."""

    def __init__(self, most: int = MAX_KEYS) -> None:
        self.most = most
        self._lock = Lock()
        self._maps: dict[str, KeyMap] = {}
        """The one that was asked for last comes last."""
        self._times_let_go: Counter[str] = Counter()
        self._commits_since: Counter[str] = Counter()
        """Of those that were let go, since the last time."""

    def of(self, uri: str) -> KeyMap:
        with self._lock:
            self._maps[uri] = self._maps.pop(uri) if uri in self._maps else KeyMap(uri, self._make_room)
            return self._maps[uri]

    def limitation(self, uri: str) -> str | None:
        """Why the keys of the table at `uri` are not, or not for long, in memory, and what to do; empty: they are. None: not known yet.

        To be asked once a commit: a table that was not let go for RETRY_AFTER_COMMITS commits has room."""
        key_map = self.of(uri)
        if key_map.too_many is not None:
            return str(key_map.too_many)
        if not key_map.is_read:
            return None
        self._commits_since[uri] += 1
        if self._commits_since[uri] >= RETRY_AFTER_COMMITS:
            self._forget_times(uri)
        times = self._times_let_go[uri]
        if times < LET_GO_OFTEN:
            return ""
        return (
            f"The keys of the table at {uri} were let go {times} times to make room for those of others, and read anew from the whole table: the tables of "
            f"this process that have the index `memory` have more than {self.most:,} keys together. Choose the index `record_index` for the larger ones."
        )

    def forget(self, uri: str) -> KeyMap:
        """To be read anew, whatever was known of it."""
        self._forget_times(uri)
        key_map = self.of(uri)
        key_map.forget()
        return key_map

    def _forget_times(self, uri: str) -> None:
        self._times_let_go.pop(uri, None)
        self._commits_since.pop(uri, None)

    def _make_room(self, growing: KeyMap) -> None:
        """Raises TooManyKeys where even alone it has too many."""
        with self._lock:
            for uri, key_map in list(self._maps.items()):
                if sum(map(len, self._maps.values())) <= self.most:
                    return
                if key_map is not growing:
                    del self._maps[uri]
                    self._times_let_go[uri] += 1
                    self._commits_since.pop(uri, None)
        if len(growing) > self.most:
            raise TooManyKeys(
                f"The table at {growing.uri} has more than {self.most:,} keys, which are not kept in memory. "
                "Choose the index `record_index` for it."
            )


class KeyMap:
    """The keys of the table at `uri`. `make_room` is told when it has grown, and may raise TooManyKeys.

    A table that has too many keys is taken to have them for RETRY_AFTER_COMMITS commits, or until it is made anew or `forget` is
    called: its keys are not read again for each batch.
    """

    def __init__(self, uri: str, make_room: Callable[[KeyMap], None]) -> None:
        self.uri = uri
        self.too_many: TooManyKeys | None = None
        self._make_room = make_room
        self._group_by_key: dict[str, FileGroup] = {}
        self._completions: dict[str, str] = {}
        """By instant, of the commits whose files were read, or that the table had when it had too many keys."""

    @property
    def is_read(self) -> bool:
        return bool(self._completions) and self.too_many is None

    def __len__(self) -> int:
        return len(self._group_by_key)

    def groups_of(self, spark: SparkSession, keys: Iterable[str]) -> set[FileGroup]:
        """As the table is now: at least the groups that hold the keys. Raises TooManyKeys."""
        self._follow(spark)
        return {self._group_by_key[key] for key in keys if key in self._group_by_key}

    def forget(self) -> None:
        self.too_many = None
        self._completions = {}
        self._group_by_key.clear()

    def write_entries(self, spark: SparkSession, folder: str) -> None:
        """As Parquet files below the URI `folder`: each key with its group, as the table is now. Raises TooManyKeys."""
        self._follow(spark)
        filesystem, path = open_storage(folder)
        entries, number = iter(self._group_by_key.items()), 0
        while (chunk := list(islice(entries, _ENTRIES_A_FILE))) or not number:
            columns = [
                [key for key, _ in chunk],
                [group.partition for _, group in chunk],
                [group.file_id for _, group in chunk],
            ]
            arrays = [pa.array(column, pa.string()) for column in columns]
            rows = pa.table(arrays, names=["key", "partition", "file_id"])
            pq.write_table(rows, f"{path}/{number:06}.parquet", filesystem=filesystem)
            number += 1

    def _follow(self, spark: SparkSession) -> None:
        timeline = Timeline(self.uri)
        commits = timeline.completed()
        completions = {commit.instant: commit.completed for commit in commits}
        if self.too_many is not None and self._has_still_too_many(completions):
            raise self.too_many
        try:
            if not (
                self.is_read
                and goes_on_from(self._completions, completions)
                and self._read_new_commits(timeline, commits)
            ):
                # First of all: where the reading fails, what was known of earlier commits is known no more.
                self.forget()
                self._read(newest_base_files(spark, self.uri, partition_paths(spark, self.uri)))
        except TooManyKeys as problem:
            self.forget()
            self.too_many, self._completions = problem, completions
            raise
        self._completions = completions

    def _has_still_too_many(self, completions: Mapping[str, str]) -> bool:
        """As far as is known without reading it."""
        since = completions.keys() - self._completions.keys()
        return goes_on_from(self._completions, completions) and len(since) < RETRY_AFTER_COMMITS

    def _read_new_commits(self, timeline: Timeline, commits: Iterable[CompletedFile]) -> bool:
        """False: the whole table has to be read. A commit has left the timeline since it was listed, and what it wrote is not known; or
        there are too many entries, of which those of keys that are gone may be most."""
        new_commits = [commit for commit in commits if commit.instant not in self._completions]
        try:
            self._read(_newest_versions(timeline, new_commits))
        except (CommitArchived, TooManyKeys):
            return False
        return True

    def _read(self, files: Iterable[BaseFile]) -> None:
        """One that was cleaned away has a newer version."""
        filesystem, root = open_storage(self.uri)
        for base_file in files:
            path = f"{root}/{base_file.path}"
            if filesystem.get_file_info(path).type == fs.FileType.NotFound:
                continue
            with filesystem.open_input_file(path) as file:
                for batch in pq.ParquetFile(file).iter_batches(columns=[KEY]):
                    self._group_by_key.update(dict.fromkeys(batch.column(0).to_pylist(), base_file.group))
                    self._make_room(self)


def goes_on_from(known: Mapping[str, str], completions: Mapping[str, str]) -> bool:
    """Has the timeline, now `completions`, all that it had when it was `known`? Both: by instant, when it was completed. Commits only leave a timeline at its
    beginning, for the archive. One that left elsewhere was rolled back; and where none of those known is left, others may have come and gone unseen."""
    kept = [instant for instant, completed in known.items() if completions.get(instant) == completed]
    first = min(completions.values(), default="")
    gone = [completed for instant, completed in known.items() if instant not in completions]
    return bool(kept) and all(completed < first for completed in gone)


def _newest_versions(timeline: Timeline, commits: Sequence[CompletedFile]) -> list[BaseFile]:
    """Of the file groups that the `commits`, in the order of completion, have written. Their sizes are not asked for."""
    newest: dict[FileGroup, BaseFile] = {}
    for commit in commits:
        for partition, file_id, path in timeline.written_files(commit):
            group = FileGroup(partition, file_id)
            # To the end: a group that was replaced still has its keys, and is read before the one that they are in now.
            newest.pop(group, None)
            newest[group] = BaseFile(group, path.rpartition("/")[2], 0)
    return [*newest.values()]
