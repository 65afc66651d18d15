"""A job in a process of its own asks its launcher for the lease by files; whoever dies, the lease ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestion.spark.contract.write_lease import LeaseAnswers, LeaseByFiles, LeaseTaken, LeaseUnanswered, hold_lease


class CountedLease:
    """Free from the given try on."""

    def __init__(self, free_from: int = 1) -> None:
        self.tries, self.held, self._free_from = 0, 0, free_from

    def try_acquire(self) -> bool:
        self.tries += 1
        self.held += self.tries >= self._free_from
        return self.tries >= self._free_from

    def release(self) -> None:
        self.held -= 1


def test_a_lease_is_granted_when_it_is_free_and_given_back(tmp_path: Path) -> None:
    lease = CountedLease(free_from=2)
    answers, asked = LeaseAnswers(tmp_path, lease), LeaseByFiles(tmp_path)
    assert not asked.try_acquire()
    answers.answer()
    assert not asked.try_acquire()  # somebody else has it
    answers.answer()
    assert asked.try_acquire()
    answers.answer()
    assert (lease.tries, lease.held) == (2, 1)
    asked.release()
    answers.answer()
    assert lease.held == 0
    assert not asked.try_acquire()  # each time it is asked for anew
    answers.answer()
    assert asked.try_acquire()


def test_a_lease_that_is_asked_for_anew_between_two_answers_is_granted_by_the_new_name(tmp_path: Path) -> None:
    lease = CountedLease()
    answers, asked = LeaseAnswers(tmp_path, lease), LeaseByFiles(tmp_path)
    asked.try_acquire()
    answers.answer()
    asked.release()
    assert not asked.try_acquire()
    assert not asked.try_acquire()  # the old grant is not the new one
    answers.answer()
    assert asked.try_acquire()
    assert lease.held == 1


def test_the_lease_of_a_job_that_died_ends_with_its_process(tmp_path: Path) -> None:
    lease = CountedLease()
    answers = LeaseAnswers(tmp_path, lease)
    LeaseByFiles(tmp_path).try_acquire()
    answers.answer()
    assert lease.held == 1
    answers.close()
    answers.close()
    assert lease.held == 0


def test_what_an_earlier_attempt_has_left_grants_nothing(tmp_path: Path) -> None:
    LeaseByFiles(tmp_path).try_acquire()
    lease = CountedLease()
    LeaseAnswers(tmp_path, lease).answer()
    assert lease.tries == 0


def test_a_job_whose_launcher_died_gives_up(tmp_path: Path) -> None:
    LeaseAnswers(tmp_path, CountedLease(free_from=99)).answer()
    asked = LeaseByFiles(tmp_path, silence_s=0.0)
    with pytest.raises(LeaseUnanswered, match="so it has ended"):
        _try_for_ever(asked)
    assert not (tmp_path / "request").exists()


def _try_for_ever(asked: LeaseByFiles) -> None:
    with hold_lease(asked, check_deadline=lambda: None):
        raise AssertionError("nobody has granted it")


def test_a_job_waits_until_its_deadline_and_takes_its_request_back() -> None:
    lease = CountedLease(free_from=99)

    def too_late() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError), hold_lease(lease, check_deadline=too_late):
        raise AssertionError("it was never free")
    assert (lease.tries, lease.held) == (1, -1)


def test_a_job_that_has_others_to_see_to_waits_a_short_time() -> None:
    lease = CountedLease(free_from=99)
    with pytest.raises(LeaseTaken), hold_lease(lease, check_deadline=lambda: None, wait_s=0.0):
        raise AssertionError("it was never free")
    assert (lease.tries, lease.held) == (1, -1)
