"""The log of questions behind the answers: nothing is lost on an orderly stop, and what is lost is counted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from incidents.gate.question_log import QUESTIONS_DROPPED, QuestionLog
from tests.polling import wait_until

QUESTIONS: Any = [f"question {number}" for number in range(2_500)]


class Table:
    """Where they are written to; down while told so."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.batches: list[int] = []
        self.threads: set[str] = set()
        self.is_down = False

    def write(self, questions: Sequence[Any], counts: Mapping[str, int]) -> None:
        if self.is_down:
            raise OSError("down")
        self.rows += questions
        self.counts.update(counts)
        self.batches.append(len(questions))
        self.threads.add(threading.current_thread().name)


@pytest.fixture
def table() -> Table:
    return Table()


def test_before_it_begins_it_writes_at_once(table: Table) -> None:
    log = QuestionLog(table.write)
    log.put(QUESTIONS[:2])
    assert (table.rows, table.threads) == (QUESTIONS[:2], {threading.current_thread().name})


def test_then_a_thread_writes_in_batches(table: Table) -> None:
    log = QuestionLog(table.write, every_s=0.001)
    log.begin()
    for question in QUESTIONS:
        log.put([question])
    wait_until(lambda: len(table.rows) == len(QUESTIONS), within_s=5, otherwise=lambda: str(len(table.rows)))
    log.stop()
    assert (table.rows, table.threads) == (QUESTIONS, {"gate-log"})
    assert len(table.batches) < len(QUESTIONS)


def test_a_stop_writes_the_rest(table: Table) -> None:
    log = QuestionLog(table.write, every_s=3600)
    log.begin()
    log.put(QUESTIONS)
    assert table.rows == []
    log.stop()
    assert (table.rows, table.batches) == (QUESTIONS, [1_000, 1_000, 500])
    log.put(QUESTIONS[:1])
    assert table.rows[-1] == QUESTIONS[0]


def test_what_could_not_be_written_is_written_later_and_in_order(table: Table) -> None:
    log = QuestionLog(table.write, every_s=3600)
    log.begin()
    log.put(QUESTIONS[:3])
    table.is_down = True
    with pytest.raises(OSError, match="down"):
        log.flush()
    log.put(QUESTIONS[3:5])
    table.is_down = False
    log.stop()
    assert table.rows == QUESTIONS[:5]


def test_a_thread_outlives_what_goes_wrong(table: Table) -> None:
    table.is_down = True
    log = QuestionLog(table.write, every_s=0.001)
    log.begin()
    log.put(QUESTIONS[:1])
    table.is_down = False
    log.put(QUESTIONS[1:2])
    wait_until(lambda: len(table.rows) == 2, within_s=5, otherwise=lambda: str(table.rows))
    log.stop()


def test_what_does_not_fit_is_dropped_and_counted(table: Table) -> None:
    log = QuestionLog(table.write, most=10, every_s=3600)
    log.begin()
    log.put(QUESTIONS[:25])
    log.tally("questions_refused", 2)
    log.stop()
    assert (len(table.rows), table.counts) == (10, Counter({QUESTIONS_DROPPED: 15, "questions_refused": 2}))
