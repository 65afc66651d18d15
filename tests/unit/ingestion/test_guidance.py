"""A job in a process of its own is told by files what one in the launcher's process is told by a call."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ingestion.spark.contract.guidance import GuidanceAnswers, GuidanceByFiles


@dataclass
class Guide:
    paused: bool = False
    allowed: int = 0
    rate: float | None = None
    asked: list[int] = field(default_factory=list)

    def is_paused(self) -> bool:
        return self.paused

    def may_read_on(self, rows: int) -> bool:
        self.asked.append(rows)
        return rows <= self.allowed

    def index_requests_per_s(self) -> float | None:
        return self.rate


def test_a_job_reads_on_when_its_launcher_says_so(tmp_path: Path) -> None:
    guide = Guide()
    answers, job = GuidanceAnswers(tmp_path / "lease", guide), GuidanceByFiles(tmp_path / "lease")
    assert not job.may_read_on(100)
    answers.answer()
    assert not job.may_read_on(100)
    guide.allowed = 150
    answers.answer()
    assert (job.may_read_on(100), job.may_read_on(200)) == (True, False)
    answers.answer()
    assert (job.may_read_on(200), guide.asked) == (False, [100, 100, 200])


def test_a_pause_is_told_within_two_seconds_and_taken_back(tmp_path: Path) -> None:
    guide = Guide(paused=True)
    answers, job = GuidanceAnswers(tmp_path, guide), GuidanceByFiles(tmp_path)
    answers.answer()
    assert job.is_paused()
    guide.paused = False
    for _ in range(20):
        answers.answer()
    assert not job.is_paused()


def test_a_changed_rate_is_told_within_two_seconds_and_one_that_is_old_is_none(tmp_path: Path) -> None:
    """Where the launcher answers no more, it may hold nothing by now, or have ended."""
    at = [1_000.0]
    guide = Guide(rate=900.0)
    answers, job = GuidanceAnswers(tmp_path, guide), GuidanceByFiles(tmp_path, lambda: at[0])
    assert job.index_requests_per_s() == 900.0, "before the first answer"
    for rate in (450.0, 0.0, 90.5):
        guide.rate = rate
        for _ in range(20):
            answers.answer()
        at[0] += 2
        assert job.index_requests_per_s() == rate
    rates = []
    for _ in range(11):
        rates.append(job.index_requests_per_s())
        at[0] += 1
    assert rates == [90.5] * 10 + [0.0]
    at[0] += 1
    for _ in range(20):
        answers.answer()
    assert job.index_requests_per_s() == 90.5, "the launcher is back"


def test_a_job_that_is_told_no_rate_goes_by_its_spec(tmp_path: Path) -> None:
    answers, job = GuidanceAnswers(tmp_path, Guide()), GuidanceByFiles(tmp_path)
    answers.answer()
    assert job.index_requests_per_s() is None


def test_what_an_earlier_attempt_was_told_counts_no_more(tmp_path: Path) -> None:
    for name, text in {"paused": "", "rows_read": "900", "rows_allowed": "900"}.items():
        (tmp_path / name).write_text(text)
    answers, job = GuidanceAnswers(tmp_path, Guide()), GuidanceByFiles(tmp_path)
    answers.answer()
    assert (job.is_paused(), job.may_read_on(100)) == (False, False)
