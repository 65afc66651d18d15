"""What came into a table while a job was reading: which stored rows stand, and when the source has to be read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.accounting import Event, RowFate, fates_of
from ingestion.domain.write_races import TableCommit, WrittenSince, why_read_again, written_since

BEFORE = TableCommit("10", "11", "bootstrap")
INSTANTS = st.integers(10, 99).map(str)


@given(
    st.lists(st.tuples(INSTANTS, INSTANTS).map(lambda pair: TableCommit(min(pair), max(pair))), max_size=8), INSTANTS
)
def test_a_row_was_written_since_where_its_commit_was_completed_since(commits: list[TableCommit], began: str) -> None:
    requested = {each.requested: each for each in commits}  # instants are unique
    since = written_since(began, requested.values())
    for each in requested.values():
        assert since.includes(each.requested) == (each.completed > began)


def test_a_commit_that_was_archived_meanwhile_is_known_by_its_instant() -> None:
    assert WrittenSince("50").includes("51")
    assert not WrittenSince("50").includes("49")


@pytest.mark.parametrize(
    ("commit", "partitions", "why"),
    [
        (TableCommit("20", "21", "delete", "delete", frozenset({"a"})), {"a"}, "the commit 20 has deleted rows since"),
        (TableCommit("20", "21", "delete", "delete", frozenset({"a"})), {"b"}, ""),
        (TableCommit("20", "21", "delete", "delete", frozenset({"a"})), None, "the commit 20 has deleted rows since"),
        (TableCommit("20", "21", "", "upsert", frozenset({"a"})), {"a"}, "the commit 20 has deleted rows since"),
        (TableCommit("20", "21", "incremental", "upsert", frozenset({"a"})), {"a"}, ""),
        (TableCommit("20", "21", "incremental"), {"a"}, ""),
        (TableCommit("20", "21", "bootstrap", "bulk_insert"), {"a"}, "the commit 20 has replaced rows since"),
        (TableCommit("20", "21", "", "INSERT_OVERWRITE"), {"a"}, "the commit 20 has replaced rows since"),
        (TableCommit("12", "15", "delete", "delete", frozenset({"a"})), {"a"}, ""),
    ],
)
def test_the_source_is_read_again_where_a_row_may_be_gone(
    commit: TableCommit, partitions: set[str] | None, why: str
) -> None:
    assert why_read_again("15", (commit,), partitions, oldest=BEFORE.completed) == why


def test_the_source_is_read_again_where_the_archive_has_taken_what_came_since() -> None:
    commits = (TableCommit("20", "21", "incremental"), TableCommit("22", "23", "incremental"))
    assert "archived" in why_read_again("15", commits, {"a"}, oldest="21")
    assert "archived" in why_read_again("15", (), {"a"}, oldest="")
    assert why_read_again("15", commits, {"a"}, oldest="15") == ""


@given(reference=st.none() | st.integers(0, 2), stored=st.integers(0, 2), content=st.sampled_from("xy"))
def test_a_row_committed_since_the_reading_loses_only_to_a_greater_reference_key(
    reference: int | None, stored: int, content: str
) -> None:
    event = Event("k", reference, content)
    held = Event("k", None if reference is None else stored, "x")
    (since,), (before,) = fates_of([event], {"k": held}, {"k"}), fates_of([event], {"k": held})
    if reference is not None and reference > stored:
        assert since == before == RowFate.APPLIED
    else:
        assert since == (RowFate.REDELIVERED if event == held else RowFate.SUPERSEDED)
        assert before != RowFate.APPLIED or content == "y"


def test_a_key_that_is_not_in_the_table_is_applied_whatever_came_since() -> None:
    assert fates_of([Event("k", None, "x")], {}, {"k"}) == (RowFate.APPLIED,)
