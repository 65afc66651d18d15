"""What a timeline says of a backfill: the partitions of the incident that were recomputed while it failed, and no others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from incidents.domain.incident.backfilled import PAUSE, Affected, MadeAnew, Noted, backfilled_text, made_anew_of
from lakehub.kernel.interval import EVERYTHING, Interval

NOW = datetime(2026, 11, 17, 19, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def day(number: int) -> Interval:
    start = datetime(2013, 1, 1, tzinfo=UTC) + number * DAY
    return Interval(start - DAY, start)


def made(*days: int, chunk: int = 1, rows: int = 7, ended_at: datetime = NOW) -> MadeAnew:
    partitions = tuple((f"2013-01-{number:02}", day(number)) for number in days)
    return MadeAnew(partitions, ended_at - HOUR, ended_at, 12, rows, chunk)


def failing(data: Interval, began_at: datetime = NOW - DAY, ended_at: datetime | None = None) -> Affected:
    return Affected(data, began_at, ended_at)


def names(parts: list[MadeAnew]) -> list[str]:
    return [name for part in parts for name, _ in part.partitions]


def test_it_is_about_the_partitions_of_the_incident_alone() -> None:
    assert names(made_anew_of([made(1, 2, 3)], [failing(day(2))])) == ["2013-01-02"]
    assert made_anew_of([made(1, 2, 3)], [failing(day(4))]) == []
    assert names(made_anew_of([made(1), made(2, chunk=2)], [failing(EVERYTHING)])) == ["2013-01-01", "2013-01-02"]


def test_what_failed_later_or_had_passed_before_was_not_mended() -> None:
    assert made_anew_of([made(1)], [failing(day(1), began_at=NOW + HOUR)]) == []
    assert made_anew_of([made(1)], [failing(day(1), ended_at=NOW - 2 * HOUR)]) == []
    assert names(made_anew_of([made(1)], [failing(day(1), ended_at=NOW + HOUR)])) == ["2013-01-01"]


def test_partitions_are_compared_with_what_failed_in_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each minute, for as many chunks as a backfill may have and as many partitions as may fail."""
    compared, fails_during = list[Affected](), Affected.fails_during

    def compare(each: Affected, part: MadeAnew) -> bool:
        compared.append(each)
        return fails_during(each, part)

    monkeypatch.setattr(Affected, "fails_during", compare)
    chunks = [made(number, chunk=number) for number in range(1, 301)]
    assert len(made_anew_of(chunks, [failing(day(number)) for number in range(201, 501)])) == 100
    assert len(compared) == 100


def test_it_says_what_was_made_anew_by_what_and_who_asked() -> None:
    ten = [made(*range(1, 11))]
    assert backfilled_text(ten, "backfill 7", "ines", chunks=37) == "Partitions 2013-01-01 to 2013-01-10 were recomputed by backfill 7 (chunk 1 of 37), asked for by ines."  # fmt: skip
    assert backfilled_text([made(1)], "run 12", "") == "Partition 2013-01-01 was recomputed by run 12."
    whole = MadeAnew((("", EVERYTHING),), NOW, NOW, 12, 7)
    assert backfilled_text([whole], "run 12", "ines") == "The whole table was recomputed by run 12, asked for by ines."


def test_partitions_with_others_between_are_named_one_by_one() -> None:
    apart = [made(1, 3), made(5, 7, 9, 11, chunk=4)]
    text = backfilled_text(apart, "backfill 7", "ines", chunks=9)
    assert text.startswith("Partitions 2013-01-01, 2013-01-03, 2013-01-05, 2013-01-07, 2013-01-09 and 1 more were recomputed by backfill 7 (chunks 1, 4 of 9)")  # fmt: skip
    assert "(chunks 1 to 2 of 9)" in backfilled_text([made(1), made(2, chunk=2)], "backfill 7", "ines", chunks=9)


def test_it_says_where_no_row_was_different_and_how_it_has_ended() -> None:
    text = backfilled_text([made(1, rows=0)], "backfill 7", "ines", chunks=1, ending="The backfill has succeeded.")
    assert text.endswith(", asked for by ines. No row was different. The backfill has succeeded.")


def noted(ended: int, after: timedelta = timedelta(), rest: str = "running") -> Noted:
    return Noted(NOW + after, ended, rest)


def test_entries_are_made_anew_for_whatever_has_changed() -> None:
    assert not noted(7).is_outdated(noted(7, DAY))
    assert noted(7).is_outdated(noted(8))
    assert noted(7).is_outdated(noted(6)), "one is tried again"
    assert noted(7).is_outdated(noted(7, rest="paused"))


def test_entries_of_many_chunks_grow_by_a_hundredth_or_after_a_pause() -> None:
    assert not noted(20_000).is_outdated(noted(20_199))
    assert noted(20_000).is_outdated(noted(20_200))
    assert noted(20_000).is_outdated(noted(20_001, PAUSE))
    assert noted(20_000).is_outdated(noted(20_001, -HOUR)), "the clock was set back"


def test_what_is_read_of_a_backfill_goes_with_its_length() -> None:
    """Each of its chunks is looked for, and they end within minutes."""
    entries, rows = noted(0), 0
    for ended in range(1, 20_001):
        if entries.is_outdated(noted(ended)):
            entries, rows = noted(ended), rows + ended
    assert rows < 200 * 20_000
