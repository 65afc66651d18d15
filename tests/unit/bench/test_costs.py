"""What benches count of processes that come and go."""

from __future__ import annotations

from bench.writing.costs import moved_between


def test_what_a_worker_had_moved_before_it_ended_is_not_taken_off() -> None:
    jvm, idle_worker, new_worker = 1, 2, 3
    before = {jvm: (10, 5), idle_worker: (100, 50)}
    assert moved_between(before, {jvm: (15, 6), new_worker: (2, 1)}) == (5 + 2, 1 + 1)
