"""Jobs in processes of their own that are told when they may write, die where a round wants them to, and are started again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any

from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.secrets import offered_secrets
from ingestion.spark.contract.write_lease import LeaseAnswers
from tests.spark.job_processes import Startable, start

_BETWEEN_ANSWERS_S = 0.1
READ_TOO_OFTEN = "was read 3 times"


class _Turn:
    """The lease, as one job asks for it: granted from its turn on. The table's fence keeps those apart whose turn it is."""

    def __init__(self) -> None:
        self.is_asked = self.has_come = False

    def try_acquire(self) -> bool:
        self.is_asked = True
        return self.has_come

    def release(self) -> None:
        """A job that reads again asks again, and need not wait."""


@contextmanager
def _answering(answers: LeaseAnswers) -> Iterator[None]:
    """Beside whatever this process does: a job that nobody answers for a minute gives up."""
    ended = Event()

    def answer() -> None:
        while not ended.wait(_BETWEEN_ANSWERS_S):
            answers.answer()

    thread = Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        answers.close()


class KilledJob:
    """A run that is started again under the same id, which is `run` or else its kind, until it has succeeded. `failpoints`: where it dies, attempt by attempt."""

    def __init__(
        self, orders: Startable, kind: str, failpoints: tuple[str, ...], *, run: str = "", **fields: Any
    ) -> None:
        self.kind, self._run, self._orders, self._fields = kind, run or kind, orders, fields
        self._failpoints = iter(failpoints)
        self.deaths: list[str] = []
        self.start()

    def start(self) -> None:
        folder, self._turn, self._resources = self._orders.folder / self._run, _Turn(), ExitStack()
        self._resources.enter_context(_answering(LeaseAnswers(folder / "lease", self._turn)))
        self._failpoint = next(self._failpoints, "")
        pipe = self._resources.enter_context(offered_secrets(folder / "secrets", self._orders.secrets))
        more = (str(pipe), str(folder / "lease"))
        self._process = start(self._orders, self.kind, self._run, more=more, failpoint=self._failpoint, **self._fields)

    def grant(self) -> None:
        self._turn.has_come = True

    def has_asked(self) -> bool:
        """Whether it may write, so it has read; or it has ended without."""
        return self.has_ended() or self._turn.is_asked

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def has_succeeded(self) -> bool:
        """Of a job that has ended. Raises AssertionError unless that was a success, its death, or one reading too many."""
        self._resources.close()
        if self._process.returncode == -signal.SIGKILL and self._failpoint:
            self.deaths.append(self._failpoint)
            return False
        log = (self._orders.folder / f"{self._run}.log").read_text()[-3000:]
        report_file = self._orders.folder / f"{self._run}.report.json"
        assert report_file.exists(), f"The {self.kind} ended with {self._process.returncode}: {log}"
        report = JobReport.from_json(report_file.read_text())
        if report.error and READ_TOO_OFTEN in report.error:
            return False
        assert report.error is None, f"The {self.kind} failed: {report.error} {log}"
        return True

    def end(self) -> None:
        """However the round ended."""
        self._resources.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
