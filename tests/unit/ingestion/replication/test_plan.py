"""Which commits a replica takes, takes back, and when only a resync will do."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.replication.instants import (
    CompletedInstant,
    DataFile,
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

URI = "file:///lake/dc1/t"


def commit(requested: int, completed: int = 0, action: str = "commit") -> CompletedInstant:
    return CompletedInstant(f"{completed or requested + 1:03}", f"{requested:03}", action)


def timeline(instants: Iterable[CompletedInstant], *others: str) -> TimelineNames:
    return TimelineNames.of([*(instant.name for instant in instants), *others])


def steps(source: TimelineNames, target: TimelineNames, since: str) -> Steps | Resync:
    return next_steps(source, target, ReplicaState(URI, since), source_uri=URI)


def test_it_publishes_what_is_new_in_the_order_of_completion() -> None:
    first, slow, quick = commit(10), commit(20, 40), commit(30, 35)
    assert steps(timeline([first, slow, quick]), timeline([first]), "010") == Steps(publish=(quick, slow))


def test_it_takes_back_what_the_source_took_back_the_newest_first() -> None:
    kept, older, newer, then = commit(10), commit(20), commit(30), commit(40)
    wanted = Steps(take_back=(newer, older), publish=(then,))
    assert steps(timeline([kept, then]), timeline([kept, older, newer]), "030") == wanted


def test_what_the_source_has_archived_is_not_taken_back() -> None:
    archived, kept, cleaning = commit(10), commit(20), commit(5, action="clean")
    assert steps(timeline([kept, cleaning]), timeline([archived, kept, cleaning]), "020").is_nothing  # type: ignore[union-attr]  # no resync


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (None, "there is no replica yet"),
        (ReplicaState("file:///other", "010"), "it was a replica of file:///other"),
        (ReplicaState(URI, "009"), "commits were archived"),
    ],
)
def test_only_a_resync_will_do(state: ReplicaState | None, why: str) -> None:
    resync = next_steps(timeline([commit(10)]), timeline([commit(10)]), state, source_uri=URI)
    assert isinstance(resync, Resync)
    assert resync.why.startswith(why)


def test_a_write_that_was_under_way_and_is_archived_since_is_seen() -> None:
    """All that the replica knows is on the timeline of the source, and yet a commit was missed."""
    seen = timeline([commit(10), commit(30)], "020.commit.requested", "020.inflight")
    assert (seen.pending, open_since(seen)) == ({"020"}, "020")
    assert isinstance(steps(timeline([commit(30), commit(40)]), timeline([commit(10), commit(30)]), "020"), Resync)


def test_a_source_that_was_set_back_beyond_what_was_replicated_is_made_anew() -> None:
    assert isinstance(steps(timeline([commit(10)]), timeline([commit(20)]), "020"), Resync)


@given(st.data())
def test_no_commit_is_missed_whenever_the_replica_looks(data: st.DataObject) -> None:
    """Writes begin, end, are taken back and are archived; after each look the replica has what the source has, or it was made anew."""
    begun: list[int] = []
    done: list[CompletedInstant] = []
    target: set[CompletedInstant] = set()
    state: ReplicaState | None = None
    ever: set[CompletedInstant] = set()
    for time in range(1, data.draw(st.integers(1, 40))):
        match data.draw(st.sampled_from(["begin", "complete", "archive", "take back", "look"])):
            case "begin":
                begun.append(time)
            case "complete" if begun:
                done.append(commit(begun.pop(data.draw(st.integers(0, len(begun) - 1))), time))
                ever.add(done[-1])
            case "archive" if len(done) > 1:
                oldest = min(done, key=lambda instant: instant.requested)
                if not begun or int(oldest.requested) < min(begun):  # it stops at what is not completed
                    done.remove(oldest)
            case "take back" if done:
                newest = max(done, key=lambda instant: instant.requested)
                done.remove(newest)
                ever.discard(newest)
            case "look" if done:
                source = timeline(done, *(f"{each:03}.commit.requested" for each in begun))
                plan = next_steps(source, timeline(target), state, source_uri=URI)
                target = set(ever) if isinstance(plan, Resync) else target - set(plan.take_back) | set(plan.publish)
                assert {each for each in target if each.requested >= source.start} == set(done)
                assert {each for each in ever if each.requested < source.start} <= target
                state = ReplicaState(URI, open_since(source))


def test_the_file_that_completes_comes_last() -> None:
    names = timeline([commit(10)], "010.inflight", "010.commit.requested", "020.clean.requested", "history")
    assert names.files_of(commit(10)) == ["010.commit.requested", "010.inflight", "010_011.commit"]
    assert names.pending_files == ["020.clean.requested"]


def test_data_files_are_told_from_others() -> None:
    base = "day=1/ab-0_1-2-3_20261129192015267.parquet"
    log = "day=1/.ab-0_20261129192015267.log.1_0-1-1.cdc"
    others = ["day=1/.hoodie_partition_metadata", ".hoodie/metadata/files/x_1_001.hfile", "day=1/.ab-0_1_2.parquet.crc"]
    files = data_files([base, log, *others])
    assert files == [DataFile(path, "day=1/ab-0", "20261129192015267") for path in (base, log)]


def test_files_are_committed_by_the_timeline_or_before_it() -> None:
    names = timeline([commit(20), commit(30)], "025.commit.requested", "010.commit.requested")
    assert [instant for instant in ("005", "010", "020", "025", "028") if names.is_committed(instant)] == ["005", "020"]
    assert not timeline([]).is_committed("005")


def test_files_go_after_their_time_since_they_were_seen_to_be_gone() -> None:
    old, kept, new = (DataFile(path, "g", "010") for path in ("a", "b", "c"))
    gone = gone_files([kept], [old, kept, new], {"a": 100.0, "c": 999.0}, now=200.0)
    assert gone == {"a": 100.0, "c": 200.0}
    assert expired_files(gone, now=200.0, grace_s=100.0) == ["a"]


@pytest.mark.parametrize(
    ("files", "goes"),
    [
        ([DataFile("new", "g", "030")], ["010", "020"]),
        ([DataFile("old", "g", "005"), DataFile("new", "g", "030")], ["010", "020"]),
        ([DataFile("old", "replaced", "015"), DataFile("new", "g", "030")], ["010"]),
        ([DataFile("new", "g", "015"), DataFile("old", "g", "018")], ["010"]),
    ],
)
def test_archived_commits_go_as_far_as_no_file_that_must_not_be_read_is_left(
    files: list[DataFile], goes: list[str]
) -> None:
    """A version that a newer one follows does no harm; one that was replaced, or taken back, would be read."""
    source, target = timeline([commit(30)]), timeline([commit(20), commit(10), commit(30)])
    assert [instant.requested for instant in prunable(source, target, files, {"old": 1.0})] == goes


def test_properties_name_no_metadata_table() -> None:
    given = {"hoodie.table.name": "t", "hoodie.table.metadata.partitions": "files", "hoodie.table.index.defs.path": "x"}
    assert replica_properties(given) == "hoodie.table.name=t\n"


def test_other_tables_are_refused() -> None:
    fit = {"hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "9"}
    assert why_not_replicable(fit) == ""
    assert "MERGE_ON_READ" in why_not_replicable(fit | {"hoodie.table.type": "MERGE_ON_READ"})
    assert "version is 6" in why_not_replicable(fit | {"hoodie.table.version": "6"})
