"""A message of the foreign topic that is lost, doubled or invented is found by the fault rounds, whether or not its key has later ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.capture.accounting.binlog import Change, Changes
from tests.soak.capture.accounting.differences import topic_problems

WRITTEN, LATER, DELETED = Change(0, ("k1",), False), Change(1, ("k1",), False), Change(2, ("k2",), True)
MADE = Changes([WRITTEN, LATER, DELETED])


@pytest.mark.parametrize(
    ("logged", "repeated", "problem"),
    [
        ([WRITTEN, LATER, DELETED], [], ""),
        ([WRITTEN, WRITTEN, LATER, DELETED], [WRITTEN], ""),
        ([WRITTEN, LATER, DELETED], [WRITTEN, DELETED], ""),
        ([LATER, DELETED], [], "lacks 1 changes: write of k1 in transaction 0"),
        ([LATER, LATER, LATER, DELETED], [LATER], "lacks 1 changes: write of k1 in transaction 0"),
        (
            [WRITTEN, WRITTEN, LATER, DELETED],
            [],
            "has too often, or has invented, 1 changes: write of k1 in transaction 0",
        ),
        (
            [WRITTEN, LATER, DELETED, DELETED, DELETED],
            [DELETED],
            "has invented, 1 changes: delete of k2 in transaction 2",
        ),
    ],
    ids=["all", "repeated", "repeated before a new load", "lost", "lost and another one twice", "doubled", "thrice"],
)
def test_each_message_is_there_once(logged: list[Change], repeated: list[Change], problem: str, tmp_path: Path) -> None:
    problems = " ".join(topic_problems(MADE, Changes(logged), Changes(repeated), tmp_path))
    assert problem in problems
    assert bool(problem) == bool(problems)
