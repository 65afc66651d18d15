"""One run of a replication: until the replica is what the source was when the run looked last.

The data of all commits that are new comes first, which no reader sees. Then the commits are published in the order of their completion,
each by the one file that completes it. A run that was killed is gone on with by the next: what is there under its own name is whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ingestion.domain.replication.instants import (
    CompletedInstant,
    TimelineNames,
    data_files,
    replica_properties,
    why_not_replicable,
)
from ingestion.domain.replication.plan import (
    ReplicaState,
    Resync,
    Steps,
    expired_files,
    gone_files,
    next_steps,
    open_since,
    prunable,
)
from ingestion.spark.replication.copying import Bandwidth, Copier
from ingestion.spark.replication.state import BUILT_OF, STATE, read_state, write_state, write_whole
from ingestion.spark.replication.table_folder import PARTITION_MARK, PROPERTIES, TIMELINE, TableFolder
from ingestion.spark.tables.timeline import Timeline, read_avro_record, write_stats_of

_SCHEMAS = ".hoodie/.schema/"
"""Of a table whose columns were altered in place."""
_MAX_LOOKS = 5
BUILDING = "replica"
"""The folder beside the lake's tables in which a replica is made anew."""


class SourceMoves(RuntimeError):
    """The source was rolled back or cleaned again and again while it was copied."""


class NotReplicable(ValueError):
    """A table that cannot be replicated."""


class _Vanished(Exception):
    """What was to be copied is gone: the source is looked at again."""


@dataclass
class Replicated:
    """What a run did. `commits`: writes that were published; `resync`: why the replica was made anew, empty where it was not.

    `files`, `bytes`: copied from the source; `reused`: files that a resync found at the replica; `deleted`: files whose time was up.
    `instant`, `completed`: of the newest write of the source, which the replica is equal to.
    """

    commits: int = 0
    taken_back: int = 0
    files: int = 0
    bytes: int = 0
    reused: int = 0
    deleted: int = 0
    resync: str = ""
    instant: str = ""
    completed: str = ""

    def count(self, copier: Copier) -> None:
        self.files += copier.files
        self.bytes += copier.size
        self.reused += copier.reused

    @property
    def has_changed(self) -> bool:
        return bool(self.commits or self.taken_back or self.resync)


@dataclass
class Replication:
    """Of `source` to `target`, which nobody else writes meanwhile.

    `grace_s`: for how long a file stays that the source has no longer, so that whoever reads the replica can end. `now`: seconds of the wall clock.
    `done` is told as it goes on.
    """

    source: TableFolder
    target: TableFolder
    bandwidth: Bandwidth
    grace_s: float
    now: Callable[[], float] = time.time
    done: Replicated = field(default_factory=Replicated)

    def run(self) -> Replicated:
        """Raises SourceMoves, NotReplicable, NotATable, ChecksumMismatch, FolderNotRenamed."""
        properties = Timeline(self.source.uri).require().properties
        if why := why_not_replicable(properties):
            raise NotReplicable(f"The table at {self.source.uri} cannot be replicated: {why}.")
        self._finish_swap()
        for _ in range(_MAX_LOOKS):
            seen = self.source.timeline()
            if not seen.writes:
                return self.done
            try:
                self._follow(seen)
            except _Vanished:
                continue
            self.done.instant, self.done.completed = seen.writes[-1].requested, seen.writes[-1].completed
            return self.done
        raise SourceMoves(
            f"Files of {self.source.uri} were removed while they were copied, {_MAX_LOOKS} times. What was copied is kept: run the job again."
        )

    def _follow(self, seen: TimelineNames) -> None:
        state = read_state(self.target) if self.target.exists else None
        steps = next_steps(seen, self.target.timeline(), state, source_uri=self.source.uri)
        if isinstance(steps, Steps) and not self._copy_data(steps.publish):
            steps = Resync("files were cleaned away in the source before they were replicated")
        if isinstance(steps, Resync):
            self._resync(seen, steps.why)
            return
        assert state is not None  # without it the replica is made anew
        if not steps.is_nothing:
            self._publish(seen, steps)
        self._clean_up(seen, state, is_due=not steps.is_nothing or bool(state.gone))

    def _copy_data(self, instants: Iterable[CompletedInstant]) -> bool:
        """False: files of a commit are gone that is on the timeline still. Raises _Vanished where the commit is gone as well."""
        paths = [(instant, path) for instant in instants if instant.is_write for path in self._files_of(instant)]
        copier = Copier(self.source, self.target, self.bandwidth)
        try:
            for instant, path in paths:
                try:
                    copier.copy(path)
                except FileNotFoundError as problem:
                    if instant in self.source.timeline().completed:
                        return False
                    raise _Vanished from problem
        finally:
            self.done.count(copier)
        return True

    def _files_of(self, instant: CompletedInstant) -> list[str]:
        """Those that the commit has written, the logs of what it changed, and what makes their folders partitions. Raises _Vanished."""
        try:
            record = read_avro_record(self.source.read(f"{TIMELINE}/{instant.name}"))
        except FileNotFoundError as problem:
            raise _Vanished from problem
        files, marks = [], set()
        for partition, stat in write_stats_of(record):
            files += [stat["path"], *(stat.get("cdcStats") or {})]
            marks.add(f"{partition}/{PARTITION_MARK}".lstrip("/"))
        return [*sorted(marks), *(path for path in files if path)]

    def _publish(self, seen: TimelineNames, steps: Steps) -> None:
        self._copy_facts(self.target)
        for instant in steps.take_back:
            self._remove_instants(self.target.timeline(), [instant])
            self.done.taken_back += 1
        copier = Copier(self.source, self.target, self.bandwidth)
        for instant in steps.publish:
            self._copy_instant(copier, seen, instant)
            self.done.commits += instant.is_write

    def _copy_instant(self, copier: Copier, seen: TimelineNames, instant: CompletedInstant) -> None:
        """Raises _Vanished."""
        for name in seen.files_of(instant):
            try:
                copier.copy(f"{TIMELINE}/{name}")
            except FileNotFoundError as problem:
                if name == instant.name:
                    raise _Vanished from problem
                # What was only begun is the first to be archived, and no reader asks for it.

    def _copy_facts(self, to: TableFolder) -> None:
        """What there is of a table beside its commits."""
        content = replica_properties(Timeline(self.source.uri).properties).encode()
        if to.size(PROPERTIES) is None or to.read(PROPERTIES) != content:
            write_whole(to, PROPERTIES, content)
        copier = Copier(self.source, to, self.bandwidth)
        for name in Timeline(self.source.uri).list_names(_SCHEMAS):
            copier.copy(f"{_SCHEMAS}{name}")

    def _remove_instants(self, names: TimelineNames, instants: Iterable[CompletedInstant]) -> None:
        """From the timeline of the replica; the file that completes one goes first."""
        for instant in instants:
            for name in reversed(names.files_of(instant)):
                self.target.delete(f"{TIMELINE}/{name}")

    def _clean_up(self, seen: TimelineNames, state: ReplicaState, *, is_due: bool) -> None:
        """Removes what was begun and is not completed, files that the source no longer has, and then commits that it has archived."""
        gone: dict[str, float] = {}
        if is_due:
            for name in self.target.timeline().pending_files:
                self.target.delete(f"{TIMELINE}/{name}")
            now, files = self.now(), data_files(self.target.sizes())
            gone = gone_files(data_files(self.source.sizes()), files, state.gone, now=now)
            expired = expired_files(gone, now=now, grace_s=self.grace_s)
            for path in expired:
                self.target.delete(path)
                self.done.deleted += 1
                del gone[path]
            left = [file for file in files if file.path not in expired]
            names = self.target.timeline()
            self._remove_instants(names, prunable(seen, names, left, gone))
        write_state(self.target, ReplicaState(self.source.uri, open_since(seen), gone))

    def _resync(self, seen: TimelineNames, why: str) -> None:
        """The whole table is made beside the replica, and takes its place by being renamed: readers see the one, for a moment none, and then the other."""
        building = self._building
        is_replica = self.target.exists and read_state(self.target) is not None
        if not is_replica:  # one that is there was renamed to its place
            self.target.check_renaming()
        if not self._is_of_source(building):
            building.remove()
            write_whole(building, BUILT_OF, self.source.uri.encode())
        copier = Copier(self.source, building, self.bandwidth, near=self.target if is_replica else None)
        paths = self._files_at(seen)
        try:
            for path in paths:
                copier.copy(path)
        except FileNotFoundError as problem:
            raise _Vanished from problem
        finally:
            self.done.count(copier)
        self._copy_facts(building)
        building.make_folder(f"{TIMELINE}/history")
        commits = Copier(self.source, building, self.bandwidth)
        for instant in seen.completed:
            self._copy_instant(commits, seen, instant)
        self._remove_others(
            building, {*paths, *(f"{TIMELINE}/{name}" for each in seen.completed for name in seen.files_of(each))}
        )
        write_state(building, ReplicaState(self.source.uri, open_since(seen)))
        self._finish_swap()
        self.done.resync, self.done.commits = why, len(seen.writes)

    def _files_at(self, seen: TimelineNames) -> list[str]:
        """All files of data that readers of the source may ask for, and what makes their folders partitions."""
        sizes = self.source.sizes()
        files = [file.path for file in data_files(sizes) if seen.is_committed(file.instant)]
        return (
            sorted(path for path in sizes if path.endswith(PARTITION_MARK) and not path.startswith(".hoodie/")) + files
        )

    def _remove_others(self, building: TableFolder, wanted: set[str]) -> None:
        """What an earlier attempt has left, of a source that was another then."""
        for path in building.sizes():
            if path not in wanted and (path.startswith(TIMELINE) or not path.startswith(".hoodie/")):
                building.delete(path)

    @property
    def _building(self) -> TableFolder:
        return self.target.beside(BUILDING)

    def _is_of_source(self, building: TableFolder) -> bool:
        return building.size(BUILT_OF) is not None and building.read(BUILT_OF).decode() == self.source.uri

    def _finish_swap(self) -> None:
        """Puts a table in place that is whole, and removes what it replaced. Also what a run that was killed here had begun."""
        replaced = self.target.beside("dropped")
        if self._building.size(STATE) is not None and not self._is_of_source(self._building):
            self._building.remove()  # left by a replication of another source, or of long ago
        if self._building.size(STATE) is not None:
            if self.target.is_there:
                replaced.remove()
                self.target.rename(replaced)
            self._building.rename(self.target)
        replaced.remove()
