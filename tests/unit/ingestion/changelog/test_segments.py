"""The folder of a log of segments: what a writer that died has left behind, what is removed, and what was damaged."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import fastavro
import pytest

from ingestion.changelog import ChangelogConfig, ChangelogError, OffsetGone, Outgoing
from ingestion.changelog.segments import segment
from ingestion.changelog.segments.log import SegmentsLog
from ingestion.changelog.segments.marks import Marks

DAY_S = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> SegmentsLog:
    """Each commit begins a segment."""
    return SegmentsLog(ChangelogConfig(tmp_path.as_uri(), DAY_S, clock), segment_bytes=1)


def commit(log: SegmentsLog, *texts: str, topics: tuple[str, ...] = ("trips",)) -> None:
    log.writer("tap").commit(
        [Outgoing(topic, b"k", text.encode()) for text in texts for topic in topics], {"at": texts}
    )


def texts(log: SegmentsLog, start: int = 0, topic: str = "trips") -> list[str]:
    return [(message.value or b"").decode() for message in log.reader().read(topic, {"0": start})]


def segments(log: SegmentsLog) -> list[str]:
    return sorted(path.name for path in (log.root / "topic-trips").iterdir())


class Machine:
    """Stops at a call of a step, for the commit in which it is asked to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        owner = os if step == "fsync" else Path
        self._real = getattr(owner, step)
        self.stops_at, self._calls = sys.maxsize, 0
        monkeypatch.setattr(owner, step, lambda *arguments: self._step(*arguments))

    def _step(self, *arguments: object) -> object:
        self._calls += 1
        if self._calls == self.stops_at:
            raise OSError("the machine stops here")
        return self._real(*arguments)

    def stops(self, at: int) -> None:
        self.stops_at, self._calls = at, 0


@pytest.mark.parametrize("segment_bytes", [1, 2**20])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_commit_that_ended_at_any_step_is_whole_or_never_was(
    log: SegmentsLog, segment_bytes: int, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, machine, both = SegmentsLog(log.config, segment_bytes), Machine(monkeypatch, step), ("trips", "riders")
    commit(log, "a", topics=both)
    for steps in count(1):
        writer = log.writer("tap")
        machine.stops(steps)
        with suppress(ChangelogError):
            writer.commit([Outgoing(topic, b"k", b"b") for topic in both], {"at": "b"})
        machine.stops(sys.maxsize)
        is_there = writer.position() == {"at": "b"}
        assert texts(log) == texts(log, topic="riders") == (["a", "b"] if is_there else ["a"])
        if is_there:
            break
    assert steps > 1
    commit(log, "c", topics=both)
    assert texts(log) == texts(log, topic="riders") == ["a", "b", "c"]


def test_what_is_old_is_removed_and_the_rest_keeps_its_offsets(log: SegmentsLog, clock: Clock) -> None:
    for text in "abc":
        commit(log, text)
    clock.now += timedelta(days=2)
    commit(log, "d")
    assert log.reader().bounds("trips") == {"0": (2, 4)}
    assert texts(log, 2) == ["c", "d"]
    assert segments(log) == [f"{number:020d}.avro" for number in (2, 3)]
    with pytest.raises(OffsetGone):
        texts(log, 1)


def test_what_is_removed_before_the_first_message_is_read_is_told(log: SegmentsLog, clock: Clock) -> None:
    for text in "abc":
        commit(log, text)
    messages = log.reader().read("trips", {})
    clock.now += timedelta(days=2)
    commit(log, "d")
    with pytest.raises(OffsetGone, match="read too slowly"):
        list(messages)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_segment_that_is_missing_is_no_gap_in_silence(log: SegmentsLog, number: int) -> None:
    for text in "abc":
        commit(log, text)
    (log.root / "topic-trips" / f"{number:020d}.avro").unlink()
    with pytest.raises(ChangelogError, match=f"no message {number} of the topic 'trips'"):
        texts(log)


def test_marks_that_are_gone_are_no_empty_log(log: SegmentsLog) -> None:
    """The next commit would have cut off all that there was."""
    commit(log, "a")
    (log.root / "marks.json").unlink()
    for use in (lambda: texts(log), lambda: commit(log, "b")):
        with pytest.raises(ChangelogError, match=r"marks\.json, are gone, and its topics are there"):
            use()
    assert segments(log) == [f"{0:020d}.avro"]


def test_the_log_is_its_owners_alone(log: SegmentsLog, tmp_path: Path) -> None:
    other = SegmentsLog(replace(log.config, url=(tmp_path / "other").as_uri()))
    commit(other, "a")
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o700


def test_a_disk_that_is_full_is_told_as_what_it_is(log: SegmentsLog, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, "fsync")
    writer = log.writer("tap")
    machine.stops(1)
    with pytest.raises(ChangelogError, match=r"could not be written .*open the producer again"):
        writer.commit([Outgoing("trips", b"k", b"a")], {})


def test_what_is_removed_while_it_is_read_is_told(log: SegmentsLog, clock: Clock) -> None:
    for text in "abc":
        commit(log, text)
    messages = log.reader().read("trips", {})
    next(messages)
    clock.now += timedelta(days=2)
    commit(log, "d")
    with pytest.raises(OffsetGone, match="read too slowly"):
        list(messages)


def test_a_segment_is_a_file_that_any_reader_of_avro_reads(log: SegmentsLog) -> None:
    commit(log, "a", "b")
    with (log.root / "topic-trips" / f"{0:020d}.avro").open("rb") as file:
        assert [record["value"] for record in fastavro.reader(file)] == [b"a", b"b"]


def test_a_segment_that_lost_its_end_stops_the_writer(log: SegmentsLog) -> None:
    log = SegmentsLog(log.config)
    commit(log, "a")
    file = log.root / "topic-trips" / f"{0:020d}.avro"
    os.truncate(file, 40)
    with pytest.raises(ChangelogError, match=r"has 40 bytes, and .* were committed"):
        commit(log, "b")
    assert file.stat().st_size == 40


def test_marks_that_cannot_be_read_are_no_empty_log(log: SegmentsLog) -> None:
    commit(log, "a")
    (log.root / "marks.json").write_text("{")
    with pytest.raises(ChangelogError, match=r"marks\.json, cannot be read .*Restore the file"):
        texts(log)


def test_a_reader_opens_the_segments_that_it_needs_only(log: SegmentsLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in "abcdef":
        commit(log, text)
    opened: list[str] = []
    monkeypatch.setattr(
        segment, "read", lambda path, *rest, read=segment.read: (opened.append(path.name), read(path, *rest))[1]
    )
    assert texts(log, 4) == ["e", "f"]
    assert opened == [f"{number:020d}.avro" for number in (4, 5)]


def test_a_log_in_which_nothing_changes_is_read_once_for_all_who_look(
    log: SegmentsLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And again as soon as it has changed, however soon: what was written a moment ago is not kept."""
    reads: list[Path] = []
    read = Marks.read
    monkeypatch.setattr(Marks, "read", lambda root: reads.append(root) or read(root))
    writer = log.writer("tap")
    for number in range(20):
        writer.commit([Outgoing("trips", b"k", b"v")], {"at": number})
        assert log.reader().bounds("trips")["0"].next == number + 1
    os.utime(tmp_path / "marks.json", (1_000_000_000, 1_000_000_000))
    reads.clear()
    for _ in range(100):
        assert log.reader().bounds("trips")["0"].next == 20
    assert len(reads) == 1
    writer.commit([Outgoing("trips", b"k", b"v")], {})
    assert log.reader().bounds("trips")["0"].next == 21
