"""The Global Index goes after the timeline of its table: whatever was committed, by whom and how ever, is in the index before a key is looked up.

So a job that dies between its commit and the index loses nothing. Each entry has the time at which its commit was completed, and of two entries of a key
the later one stands: what is followed once more changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pyspark.sql import SparkSession

from ingestion.index.client import IndexClient, NotAnIndex
from ingestion.index.entries import Entry
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.key_map import goes_on_from
from ingestion.spark.file_groups.lookups import newest_files_of
from ingestion.spark.global_index.job_use import at_work
from ingestion.spark.global_index.taken_back import taken_back
from ingestion.spark.global_index.written_keys import FileVersionGone, WrittenKeys, keys_in, rows_in
from ingestion.spark.tables.timeline import CommitArchived, CompletedFile, Timeline, instant_to_datetime
from lakehub.kernel import failpoint

BUILT = "built"
"""In the state of the index: which building of it this is. What is noted of another one, in which these entries are not, counts for nothing."""
_OF = "of"
"""In the state of the index: the URI of its table. A copy of the lake, as in another installation, has the same commits."""
_FOLLOWED, _BEGUN = "followed", "begun"
"""In the state of the index, before the building and the instant of a commit: all of its entries are there; or some may be, as it was not followed to its end."""
_ENTRIES = "entries"
"""In the state of the index, before the building: how many it has. Those that were removed since count too."""
FOLLOWS_WITHIN_S = 600.0
"""A sixth of what a job has: it looks its keys up, and writes, after it has followed."""
FOLLOWS_AT_LEAST_S = 60.0
"""What takes no longer is followed, whatever building takes, which reads the whole table."""
BUILDS_ENTRIES_PER_S = 20_000
"""By HFiles, on two cores, without haste: a third of what was measured."""


class NotFollowed(LookupError):
    """The index cannot go on from where it is: it has to be built anew from the table."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why} The next job that looks keys up builds the index anew, and so does `rebuild_index`.")


def follow(spark: SparkSession, table: TableSpec, client: IndexClient) -> None:
    """Raises NotFollowed, NotAnIndex, IndexUnavailable, IndexTableMissing, DamagedEntry."""
    timeline = Timeline(table.uri)
    # Before the timeline: what another follower has noted by then is on it, or was rolled back.
    state = client.state()
    commits = timeline.completed()
    completions = {commit.instant: commit.completed for commit in commits}
    if state.get(_OF, table.uri) != table.uri:
        raise NotAnIndex(
            f"The index of `{table.name}` is that of {state[_OF]} in HBase, and the table is {table.uri}: it is left as it is. "
            "Let this installation have an index cluster of its own; where the table was moved, remove the one of HBase, and rebuild the index."
        )
    known, begun = _noted(state, _FOLLOWED), _noted(state, _BEGUN)
    if known == completions and not begun:
        return
    entries = _counted_in(state)
    within_s = _follows_within_s(entries)
    if not goes_on_from(begun | known, completions):
        _take_back(spark, table, timeline, client, begun | known, within_s)
    new = [commit for commit in commits if commit.instant not in known]
    written = [_written_by(timeline, commit, completions) for commit in new]
    _check_requests(table, (keys.requests for keys in written), within_s)
    gone = [_name(state, _FOLLOWED, instant) for instant in known.keys() - completions.keys()]
    gone += [_name(state, _BEGUN, instant) for instant in begun.keys() - {commit.instant for commit in new}]
    # One that is rolled back before it is followed to its end has to be taken back as well.
    client.note({_name(state, _BEGUN, commit.instant): commit.completed for commit in new}, forget=gone)
    for commit, keys in zip(new, written, strict=True):
        _take(spark, table, client, commit, keys, newest=commits[-1], within_s=within_s)
        failpoint.reach("index.after_entries")
        # At once: a job that ends at its deadline leaves the rest to the next one, and not all.
        entries = None if entries is None else entries + keys.new_rows
        followed = {_name(state, _FOLLOWED, commit.instant): commit.completed} | _count(state, entries)
        client.note(followed, forget=[_name(state, _BEGUN, commit.instant)])
    # What was noted meanwhile has the name of the former building, so it counts for nothing in the new one.
    if client.state(BUILT).get(BUILT) != state.get(BUILT):
        raise NotFollowed(f"The index of `{table.name}` was built anew while it followed.")


def note_built(client: IndexClient, building: str, uri: str, completions: Mapping[str, str], entries: int) -> None:
    """`completions`: of the commits that were there before the table was read for it."""
    state = {BUILT: building, _OF: uri}
    client.note(
        state | _count(state, entries) | {_name(state, _FOLLOWED, instant): at for instant, at in completions.items()}
    )


def _noted(state: Mapping[str, str], what: str) -> dict[str, str]:
    """By the instant of a commit, when it was completed."""
    before = _name(state, what, "")
    return {name.removeprefix(before): at for name, at in state.items() if name.startswith(before)}


def _name(state: Mapping[str, str], what: str, instant: str) -> str:
    return f"{what}:{state.get(BUILT, '')}:{instant}"


def milliseconds_of(instant: str) -> int:
    """Since 1970."""
    return round(instant_to_datetime(instant).timestamp() * 1000)


def _take_back(
    spark: SparkSession,
    table: TableSpec,
    timeline: Timeline,
    client: IndexClient,
    known: Mapping[str, str],
    within_s: float,
) -> None:
    """Of commits that were rolled back: keys that they had moved or removed are where they were. Those that they had inserted keep an entry that leads to no row:
    it is removed when it is asked for. Raises NotFollowed."""
    commits = timeline.completed()
    completions = {commit.instant: commit.completed for commit in commits}
    first = min(completions.values(), default="")
    gone = {instant for instant, at in known.items() if completions.get(instant) != at and at >= first}
    kept = {instant: at for instant, at in known.items() if instant not in gone}
    undone = taken_back(timeline, gone) if goes_on_from(kept, completions) else None
    if undone is None:
        raise NotFollowed(
            f"The index of `{table.name}` has followed commits that are no longer on its timeline, or none that is."
        )
    _put_newest(spark, table, client, undone.groups, commits[-1], since=undone.completed, within_s=within_s)


def _written_by(timeline: Timeline, commit: CompletedFile, instants: Collection[str]) -> WrittenKeys:
    """Raises NotFollowed."""
    try:
        return WrittenKeys.of(timeline, commit, instants)
    except CommitArchived as problem:
        raise NotFollowed(str(problem)) from problem


def _count(state: Mapping[str, str], entries: int | None) -> dict[str, str]:
    return {} if entries is None else {_name(state, _ENTRIES, ""): str(entries)}


def _counted_in(state: Mapping[str, str]) -> int | None:
    """None: it was built before entries were counted, or somebody else has written there."""
    entries = state.get(_name(state, _ENTRIES, ""), "")
    return int(entries) if entries.isdecimal() else None


def _follows_within_s(entries: int | None) -> float:
    """What takes longer than to build the index anew is not followed: HFiles go through no region server's memory, and wait for no rate."""
    if entries is None:
        return FOLLOWS_WITHIN_S
    return min(FOLLOWS_WITHIN_S, max(FOLLOWS_AT_LEAST_S, entries / BUILDS_ENTRIES_PER_S))


def _check_requests(table: TableSpec, counts: Iterable[int], within_s: float) -> None:
    """Beyond FOLLOWS_WITHIN_S a job might also come to its end before one commit is followed, and the next job again. Raises NotFollowed."""
    if table.global_index is None:
        return
    # Of a job that may send nothing at the moment, what it was to send when it began.
    rate = at_work().requests_per_s(table.global_index) or table.global_index.requests_per_s
    if rate and (requests := sum(counts)) > rate * within_s:
        raise NotFollowed(
            f"To follow what was committed to `{table.name}` takes {requests:,} requests, at {rate:,.1f} a second more than {within_s:,.0f} s."
        )


def _take(
    spark: SparkSession,
    table: TableSpec,
    client: IndexClient,
    commit: CompletedFile,
    written: WrittenKeys,
    *,
    newest: CompletedFile,
    within_s: float,
) -> None:
    at_ms = milliseconds_of(commit.completed)
    try:
        for group, keys in written.added():
            client.put(_entries(keys, group, commit.instant), at_ms=at_ms)
        for group, removed in written.removed():
            _remove(client, group, removed, at_ms=at_ms)
    except FileVersionGone:
        _put_newest(spark, table, client, {write.group for write in written.writes}, newest, within_s=within_s)
    for group, keys in written.keys_replaced():
        _remove(client, group, keys, at_ms=at_ms)


def _remove(client: IndexClient, group: FileGroup, keys: Collection[str], *, at_ms: int) -> None:
    """Those that are not in the group any more; but for those that are elsewhere: their entry says by now where."""
    gone = sorted(keys)
    entries = client.get(gone)
    client.delete([key for key in gone if _is_in(entries.get(key), group)], at_ms=at_ms)


def _is_in(entry: Entry | None, group: FileGroup) -> bool:
    return entry is not None and (entry.partition, entry.file_id) == group


def _put_newest(
    spark: SparkSession,
    table: TableSpec,
    client: IndexClient,
    groups: Collection[FileGroup],
    newest: CompletedFile,
    *,
    within_s: float,
    since: str = "",
) -> None:
    """Of groups whose version is not there any more all keys of the newest one, which are those of now. Those that are gone keep their entry, which does no harm.
    `since`: when the versions went, if not with a commit. Raises NotFollowed."""
    at_ms = milliseconds_of(max(newest.completed, since))
    files = newest_files_of(spark, table.uri, groups)
    _check_requests(table, (rows_in(table.uri, file.group, file.path) for file in files), within_s)
    for file in files:
        for keys in keys_in(table.uri, file.group, file.path):
            client.put(_entries(keys, file.group, newest.instant), at_ms=at_ms)


def _entries(keys: Iterable[str], group: FileGroup, instant: str) -> dict[str, Entry]:
    entry = Entry(group.partition, group.file_id, instant)
    return dict.fromkeys(keys, entry)
