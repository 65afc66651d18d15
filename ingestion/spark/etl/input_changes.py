"""What was written to an input since it was read last, as files: of each file group that a commit touched the file as it was then, and as it is now, and as it was whenever else it was read.

Every change is seen so, deletes too, whoever made it: no change log is needed, but the files that were replaced have to be there still.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ingestion.spark.etl.checks.partition_types import problem_of_partitions
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.tables.timeline import (
    TABLE_SERVICES,
    CommitArchived,
    CompletedFile,
    Timeline,
    open_storage,
    write_stats_of,
)

_NO_FILE = "null"
"""What Hudi says of the commit before the first of a file group."""


class HistoryGone(LookupError):
    """What was written since the input was read last is not known, or not there, any more. Says why."""


_READABLE_VERSIONS = ("8", "9")
"""Of tables, by Hudi's count: earlier ones have another timeline."""
MERGE_ON_READ = "MERGE_ON_READ"


def keeps_logs(timeline: Timeline) -> bool:
    """Its files alone do not say which rows it has."""
    return timeline.properties.get("hoodie.table.type") == MERGE_ON_READ


def problem_of_input(uri: str) -> str:
    """Why changes of the table cannot be followed, as the end of a sentence about it; empty: they can. Raises NotATable."""
    timeline = Timeline(uri).require()
    properties = timeline.properties
    version = properties.get("hoodie.table.version", "")
    if version not in _READABLE_VERSIONS:
        return f"has the table version {version or '(none)'}, and a pipeline reads the versions {' and '.join(_READABLE_VERSIONS)}: let its writer upgrade it"
    if properties.get("hoodie.datasource.write.drop.partition.columns", "false").lower() == "true":
        return "keeps its partition columns in the names of folders alone (`hoodie.datasource.write.drop.partition.columns` is true), and a pipeline reads changed rows from files: let its writer write them"
    if properties.get("hoodie.populate.meta.fields", "true").lower() == "false":
        return "keeps no `_hoodie_` columns in its rows (`hoodie.populate.meta.fields` is false), by which a pipeline sees what has changed"
    return problem_of_partitions(timeline, properties)


@dataclass(frozen=True)
class ChangedFiles:
    """Paths within the table: `before` of all files that a reader had at `after` or later, and that are not those of `now`. `after` and `upto`: completions, the first exclusive.
    `commits`: in between, which began with `first_instant` at the earliest: a row that was written before it has not changed."""

    after: str
    upto: str
    commits: int = 0
    before: tuple[str, ...] = ()
    now: tuple[str, ...] = ()
    first_instant: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.before, *self.now)

    @property
    def is_empty(self) -> bool:
        return not self.paths


def changed_files(
    uri: str, after: str, upto: str, *, also_read_at: Collection[str] = (), is_followed: bool = True
) -> ChangedFiles:
    """From the completion `after` to `upto`; without files where not `is_followed`: nobody compares them. `also_read_at`: others, at which the input was read without being followed
    further. Raises HistoryGone, also where changes lie in logs beside the files, and, followed or not, where the table has no commit."""
    timeline = Timeline(uri)
    completed = [file for file in timeline.completed() if file.completed <= upto]
    since = [file for file in completed if file.completed > after]
    if not is_followed and completed:  # also of a table that was built anew or set back, and has lost `after`
        return ChangedFiles(after, completed[-1].completed, len(since))
    read_at = {completion for completion in also_read_at if completion > after}
    if unknown := {after, *read_at} - {file.completed for file in completed}:
        raise HistoryGone(_why_unknown(uri, min(unknown), completed))
    if not since:
        return ChangedFiles(after, after)
    if keeps_logs(timeline):
        if any(_record(timeline, file).get("operationType") not in TABLE_SERVICES for file in since):
            raise HistoryGone(
                f"the table at {uri} keeps its changes in logs ({MERGE_ON_READ}), so it is read as a whole when it has any"
            )
        return ChangedFiles(after, since[-1].completed, len(since))
    groups = _touched_groups(timeline, since, read_at)
    before = {*_files_before(timeline, groups, _Committed.of(completed, since))}
    before |= {path for history in groups.values() for path in history.also_read}
    now = {history.path for history in groups.values() if history.path and not history.is_replaced}
    return ChangedFiles(
        after,
        since[-1].completed,
        len(since),
        tuple(sorted(before - now)),
        tuple(sorted(now)),
        min(file.instant for file in since),
    )


def bytes_of(uri: str, paths: Iterable[str]) -> int:
    """Of files that are there still."""
    filesystem, root = open_storage(uri)
    return sum(info.size or 0 for info in filesystem.get_file_info([f"{root}/{path}" for path in paths]))


@dataclass(frozen=True)
class _Committed:
    """Which files were there before: of commits that are older than the active timeline, or on it, and not of the window."""

    oldest: str
    instants: frozenset[str]

    @classmethod
    def of(cls, completed: Iterable[CompletedFile], since: Iterable[CompletedFile]) -> _Committed:
        active, window = ({file.instant for file in files} for files in (completed, since))
        return cls(min(active), frozenset(active - window))

    def includes(self, instant: str) -> bool:
        """A writer that was killed has left files of an instant that was never completed."""
        return instant < self.oldest or instant in self.instants


def _why_unknown(uri: str, after: str, completed: Iterable[CompletedFile]) -> str:
    if not after:
        return f"the table at {uri} was not read before"
    oldest = min((file.completed for file in completed), default="")
    if not oldest:
        return f"the table at {uri} has no commit: it was dropped, or is being built anew"
    if after < oldest:
        return f"the commits of {uri} since {after} are archived, or the table was built anew"
    return f"the commit of {uri} that was completed at {after} was taken back, or the table was built anew"


@dataclass
class _GroupHistory:
    """`first`: the commit whose file was there before the first write of the window; empty: it was replaced by it as a whole. `path`: of the newest file. `also_read`: paths of those of
    the window that were the newest when the table was read."""

    first: str
    path: str = ""
    is_replaced: bool = False
    also_read: set[str] = field(default_factory=set)


def _touched_groups(
    timeline: Timeline, since: Iterable[CompletedFile], read_at: Collection[str]
) -> dict[FileGroup, _GroupHistory]:
    """In the partitions in which rows changed: where only files were put together, there is nothing to read."""
    groups, partitions = dict[FileGroup, _GroupHistory](), set[str]()
    for file in since:
        record = _record(timeline, file)
        replaced = dict(_replaced_groups(record))
        for partition, stat in write_stats_of(record):
            history = groups.setdefault(
                FileGroup(partition, stat["fileId"]), _GroupHistory(stat.get("prevCommit") or _NO_FILE)
            )
            history.path = stat["path"]
        for group in replaced:
            groups.setdefault(group, _GroupHistory("")).is_replaced = True
        if record.get("operationType") not in TABLE_SERVICES:
            partitions |= {partition for partition, _ in write_stats_of(record)} | {
                group.partition for group in replaced
            }
        if file.completed in read_at:
            for history in groups.values():
                if history.path and not history.is_replaced:
                    history.also_read.add(history.path)
    return {group: history for group, history in groups.items() if group.partition in partitions}


def _record(timeline: Timeline, file: CompletedFile) -> Mapping[str, Any]:
    try:
        return timeline.record(file)
    except CommitArchived as problem:
        raise HistoryGone(str(problem)) from problem


def _replaced_groups(record: Mapping[str, Any]) -> Iterator[tuple[FileGroup, None]]:
    for partition, file_ids in (record.get("partitionToReplaceFileIds") or {}).items():
        for file_id in file_ids:
            yield FileGroup(partition, file_id), None


def _files_before(
    timeline: Timeline, groups: Mapping[FileGroup, _GroupHistory], committed: _Committed
) -> Iterator[str]:
    """Raises HistoryGone where one was cleaned away."""
    wanted = {group: history for group, history in groups.items() if history.first != _NO_FILE}
    names = {partition: timeline.list_names(partition) for partition in {group.partition for group in wanted}}
    for group, history in wanted.items():
        versions = [
            name
            for name in names[group.partition]
            if name.startswith(f"{group.file_id}_") and name.endswith(".parquet")
        ]
        instant_of = {name: name.rpartition("_")[2].removesuffix(".parquet") for name in versions}
        if history.first:
            fitting = [name for name in versions if instant_of[name] == history.first]
        else:
            earlier = [name for name in versions if committed.includes(instant_of[name])]
            fitting = sorted(earlier, key=instant_of.__getitem__)[-1:]
        if not fitting:
            raise HistoryGone(
                f"files of {timeline.uri} that were replaced in `{group.partition or 'the table'}` are cleaned away"
            )
        yield "/".join(filter(None, (group.partition, fitting[0])))
