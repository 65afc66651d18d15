"""A process that follows copies: it looks at their sources when they are due, and runs an incremental job where there is something new.

What a copy has seen is kept in memory and written down once a minute at most (five seconds after a batch), on the one row of its run. An empty look reads the
source; the database only where others have written to it since, once for all copies that are due. It writes nothing, asks no gate
and starts no Spark. A batch adds its commit. Sources are asked at once in some threads, so that those that are silent hold nobody up (`LookPlaces`);
batches come one after the other, in the order in which their looks were due.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from django.db import Error as DatabaseProblem
from structlog.contextvars import bound_contextvars

from ingestion.captures.beginning import is_captured_feed
from ingestion.captures.reach import captured_upto
from ingestion.captures.records import topic_of
from ingestion.domain.following import TELL_EVERY, FollowSums, is_telling_due, next_look_at
from ingestion.following import follow_runs, handovers
from ingestion.following.batches import NotRun, run_batch
from ingestion.following.handovers import HandedOver
from ingestion.following.new_versions import NewVersions
from ingestion.following.running_looks import Interrupted, RunningLook, RunningLooks
from ingestion.following.source_looks import SourceLook
from ingestion.models import JobRun, JobState
from ingestion.runs import job_runs, leases
from ingestion.runs.index_use.waits import for_answer
from ingestion.runs.job_specs import job_spec_of
from ingestion.runs.run_worker import LEASE_RETRY_AFTER, Worker
from ingestion.runs.source_use import source_limits
from ingestion.runs.source_use.source_limits import Crowded
from ingestion.sources import SourceError
from ingestion.spark.contract.report import FAILED, INDEX_AWAY, SUCCEEDED, JobReport
from lakehub.catalog.datasets.feed_options import effective_options
from lakehub.catalog.models import RebuildState

logger = logging.getLogger(__name__)

MAX_FOLLOWED = 1_000
"""Copies of one process."""
CLAIMED_AT_ONCE = 20
"""Then others have their turn: processes that start together share the copies out."""
LONGEST_WAIT = timedelta(seconds=1)
"""Others ask for runs, and the clock may be set."""


@dataclass
class Followed:
    """A copy as this process follows it. `has_looked`: a look has succeeded since the run was claimed."""

    run: JobRun
    sums: FollowSums
    due_at: datetime
    told_at: datetime
    has_looked: bool = False
    has_caught_up: bool = False
    """A look has taken everything in since then."""
    is_current: bool = True
    """Nobody has written to the database since `run` was read."""
    began_at: datetime | None = None
    running: RunningLook | None = None
    has_place: bool = True
    """False: the look is due, and has to wait for others."""
    asks_since: float | None = None
    """By the monotonic clock: since when the look asks for its turn at a connection with a limit. None: it does not."""
    away_since: float | None = None
    """By the monotonic clock: since when the index does not answer its batches."""
    handed_over: HandedOver | None = None
    """A run of another lane reads what is new: until it has ended there is nothing to look for."""
    look: SourceLook = field(default_factory=SourceLook)

    def is_telling_due(self, now: datetime) -> bool:
        return is_telling_due(self.told_at, now=now, committed_at=self.sums.committed_at)


class Follower:
    """`worker.clock` says what is due. `has_news`: have others written to the database since it was asked last? `wake` is called,
    from any thread, when a look has an answer. `monotonic`: seconds of a clock that only grows, for how long looks take."""

    def __init__(
        self,
        worker: Worker,
        looks: Executor,
        *,
        has_news: Callable[[], bool],
        wake: Callable[[], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._worker, self._has_news = worker, has_news
        self._looks = RunningLooks(looks, wake=wake, monotonic=monotonic)
        self._monotonic, self._renewed_at = monotonic, monotonic()
        self._followed: dict[int, Followed] = {}
        self._new_versions = NewVersions(monotonic)
        self._claim_at: datetime | None = None
        """When a run is due that this process has put back: nobody writes to the database then."""
        self._stepped_at: datetime | None = None
        self._tells_at: datetime | None = None
        """When it looks next whose sums are to be written down."""

    def step(self) -> timedelta:
        """Does what is to be done now; for how long there is nothing more. Raises DatabaseError; the next step tries again."""
        now = self._worker.clock()
        self._go_back_with_clock(now)
        has_news = self._has_news()
        if has_news or (self._claim_at is not None and self._claim_at <= now):
            for followed in self._followed.values():
                followed.is_current = False
            self._claim(now)
        if self._new_versions.is_due(has_news=has_news):
            self._look_at_new_versions(now)
        self._tell_due(now)
        self._looks.end_slow()
        self._renew_places()
        self._begin_looks(now)
        self._looks.free_places()
        answered = [each for each in self._followed.values() if each.running and self._looks.is_over(each.running)]
        for followed in sorted(answered, key=lambda each: each.due_at):
            with bound_contextvars(run=followed.run.pk, copy=str(followed.run.copy)):
                self._take_answer(followed)
        return self._time_left()

    def _look_at_new_versions(self, now: datetime) -> None:
        """A column that was accepted is in the lake before the next look that is due by itself."""
        datasets = ((each, each.run.copy.dataset) for each in self._followed.values())
        captured = [(each, topic_of(data)) for each, data in datasets if is_captured_feed(data.feed_or_none)]
        subjects = self._new_versions.subjects(now=now) if captured else set()
        for followed, topic in captured:
            if topic in subjects:
                followed.due_at = min(followed.due_at, now)

    def _go_back_with_clock(self, now: datetime) -> None:
        """What was due in some seconds is due in as many still, although the clock was ahead and has been set back since."""
        set_back = self._stepped_at - now if self._stepped_at is not None else timedelta()
        self._stepped_at = now
        if set_back > timedelta():
            self._claim_at = None if self._claim_at is None else self._claim_at - set_back
            for followed in self._followed.values():
                followed.due_at -= set_back

    def _renew_places(self) -> None:
        """Of looks at connections with a limit, as long as they are under way."""
        if self._monotonic() < self._renewed_at + leases.LEASE_DURATION.total_seconds() / 4:
            return
        self._renewed_at = self._monotonic()
        if any(source_limits.needs_place(each.run) for each in self._followed.values() if each.running):
            source_limits.renew_places(self._worker.name)

    def give_back(self) -> None:
        """The process ends: others go on at once."""
        now = self._worker.clock()
        for pk, followed in self._followed.items():
            follow_runs.give_back(pk, self._worker.name, followed.sums, now=now)
        if any(source_limits.needs_place(followed.run) for followed in self._followed.values()):
            source_limits.release_all_places(self._worker.name)
        self._followed.clear()

    def _claim(self, now: datetime) -> None:
        self._claim_at = None
        room = min(CLAIMED_AT_ONCE, MAX_FOLLOWED - len(self._followed))
        claimed = follow_runs.claim(self._worker.name, now=now, most=room)
        if claimed and len(claimed) == CLAIMED_AT_ONCE:
            self._claim_at = now
        runs = follow_runs.held(self._worker.name, claimed) if claimed else {}
        for pk in filter(runs.__contains__, claimed):
            run = runs[pk]
            # One that was paused and resumed in the meantime is known better here than in the database.
            sums = self._followed[pk].sums if pk in self._followed else FollowSums.from_json(run.progress)
            due_at = next_look_at(sums.looked_at, run.copy.dataset.feed.every, now=now)
            # Of a captured one the columns that were accepted meanwhile are in no row that would be due.
            waits = run.attempt == 1 and not is_captured_feed(run.copy.dataset.feed_or_none)
            self._followed[pk] = Followed(run, sums, due_at if waits else now, told_at=now)

    def _tell_due(self, now: datetime) -> None:
        """Once a second, and not after each look of which there may be hundreds then."""
        if self._tells_at is not None and self._tells_at - LONGEST_WAIT < now < self._tells_at:
            return
        self._tells_at = now + LONGEST_WAIT
        for followed in [each for each in self._followed.values() if each.is_telling_due(now)]:
            self._tell(followed, now)

    def _tell(self, followed: Followed, now: datetime) -> None:
        followed.told_at = now
        worker, sums = self._worker.name, _sums_to_tell(followed)
        if not follow_runs.tell(followed.run.pk, worker, sums, is_well=followed.has_looked, now=now):
            self._let_go(followed, now)  # it was ended or paused, or another process has taken it over
        elif followed.has_looked:
            followed.run.attempt = 1

    def _begin_looks(self, now: datetime) -> None:
        due = [each for each in self._followed.values() if each.running is None and each.due_at <= now]
        if any(not each.is_current for each in due):
            self._read_anew(now)
        for followed in sorted(due, key=lambda each: each.due_at):
            if followed.is_current and not self._is_handed_over(followed, now):
                self._begin_look(followed, now)

    def _is_handed_over(self, followed: Followed, now: datetime) -> bool:
        """A run that was given up is asked for again after the feed's interval, as if it were this one."""
        if followed.handed_over is None:
            return False
        state = handovers.state_of(followed.handed_over)
        if state in job_runs.ACTIVE:
            followed.due_at = now + LEASE_RETRY_AFTER
            return True
        followed.handed_over = None
        if state == JobState.FAILED:
            followed.due_at = now + followed.run.copy.dataset.feed.every
        return state == JobState.FAILED

    def _read_anew(self, now: datetime) -> None:
        """Runs and feeds may have been changed by others; one that is not this process's any more is forgotten. One query for all that
        are looked at before there may be news again."""
        idle = (each for each in self._followed.values() if each.running is None and not each.is_current)
        outdated = [each for each in idle if each.due_at <= now + LONGEST_WAIT]
        runs = follow_runs.held(self._worker.name, [each.run.pk for each in outdated])
        for followed in outdated:
            if followed.run.pk in runs:
                followed.run, followed.is_current = runs[followed.run.pk], True
            else:
                self._let_go(followed, now)

    def _begin_look(self, followed: Followed, now: datetime) -> None:
        worker, connection = self._worker, followed.run.copy.dataset.feed.connection_id
        followed.began_at, followed.has_place = now, self._looks.has_place(connection)
        if not followed.has_place:
            return
        try:
            spec, secrets = job_spec_of(followed.run, staging=worker.staging, ahead=worker.clock_offset(), now=now)
        except ValueError as problem:
            self._fail(followed, str(problem))
            return
        except DatabaseProblem:
            raise  # ours: the next step tries again
        except Exception as problem:
            # Of this run only: the process follows others.
            logger.exception("The look of run %s could not be prepared", followed.run.pk)
            self._fail(followed, f"The look could not be prepared: {type(problem).__name__}: {problem}")
            return
        crowded = self._take_turn(followed)
        if crowded is not None:
            self._wait_for_place(followed, crowded, now)
            return
        end = partial(self._end_look, followed.look, followed.run)
        followed.running = self._looks.begin(followed.look, connection, spec, secrets, now=now, on_end=end)

    def _take_turn(self, followed: Followed) -> Crowded | None:
        asks_since = self._monotonic() if followed.asks_since is None else followed.asks_since
        waits = timedelta(seconds=self._monotonic() - asks_since)
        crowded = source_limits.take_turn(followed.run, self._worker.name, waits=waits)
        followed.asks_since = None if crowded is None else asks_since
        return crowded

    def _wait_for_place(self, followed: Followed, crowded: Crowded, now: datetime) -> None:
        options = effective_options(followed.run.copy.dataset.feed.options)
        error = crowded.error_after(timedelta(seconds=float(options["deadline_s"])))
        if error is not None:
            source_limits.release_place(followed.run, self._worker.name)
            self._fail(followed, error)
            return
        followed.due_at = now + crowded.retry_after
        if crowded.waits >= TELL_EVERY and followed.run.error != crowded.why:
            followed.has_looked = False  # the next that succeeds clears it
            follow_runs.note_problem(followed.run, self._worker.name, crowded.why)

    def _end_look(self, look: SourceLook, run: JobRun) -> None:
        source_limits.end_turn(run, self._worker.name, look.rows_read)

    def _take_answer(self, followed: Followed) -> None:
        running, began_at = followed.running, followed.began_at
        assert running is not None
        assert began_at is not None
        followed.running = None
        if running.interrupted is not None and running.has_failed:
            self._take_interruption(followed, running.interrupted)
            return
        try:
            if running.answer.result():
                self._run_batch(followed, began_at)
            else:
                self._note_look(followed, began_at)
        except DatabaseProblem:
            raise  # ours: the look is made again
        except Exception as problem:
            if not isinstance(problem, SourceError | ValueError | LookupError):
                logger.exception("A look of run %s has failed", followed.run.pk)
            self._fail(followed, f"{type(problem).__name__}: {problem}")

    def _take_interruption(self, followed: Followed, reason: Interrupted) -> None:
        followed.look = SourceLook()  # the other may be at work still
        if reason is Interrupted.SLOW:
            logger.info("The look at %s was ended: %s", followed.run.copy, reason.value)
            followed.due_at = self._worker.clock()
        else:
            self._fail(followed, f"{followed.run.copy.dataset.feed.address} did not answer: {reason.value}")

    def _run_batch(self, followed: Followed, began_at: datetime) -> None:
        worker = self._worker
        followed.look.forget()
        report = run_batch(followed.run, worker, keep_held=self._renew)
        if report is NotRun.LEASED:
            followed.due_at = worker.clock() + LEASE_RETRY_AFTER
        elif isinstance(report, Crowded):
            self._wait_for_place(followed, report, worker.clock())
        elif isinstance(report, HandedOver):
            self._wait_for_run(followed, report)
        elif isinstance(report, NotRun):
            self._let_go(followed, worker.clock())
            self._note_claim(follow_runs.due_at(followed.run.pk))
        elif report.status == INDEX_AWAY:
            self._wait_for_index(followed, report)
        elif report.status == FAILED:
            self._fail(followed, report.error or "", report)
        else:
            if report.status == SUCCEEDED:
                followed.sums = followed.sums.after_batch(report.counts, committed_at=worker.clock())
            self._note_look(followed, began_at, has_more=report.has_more)

    def _wait_for_index(self, followed: Followed, report: JobReport) -> None:
        followed.away_since = self._monotonic() if followed.away_since is None else followed.away_since
        waits, jitter = timedelta(seconds=self._monotonic() - followed.away_since), self._worker.draw_jitter()
        self._wait_for_place(followed, for_answer(report, waits=waits, jitter=jitter), self._worker.clock())

    def _wait_for_run(self, followed: Followed, handed_over: HandedOver) -> None:
        """It stays this process's, which tells its sums as before."""
        followed.handed_over, followed.due_at = handed_over, self._worker.clock() + LEASE_RETRY_AFTER
        followed.has_looked = False  # the next look that succeeds clears what is noted here
        follow_runs.note_problem(followed.run, self._worker.name, handed_over.why)

    def _renew(self) -> None:
        """All that the process holds, while a batch keeps it from its next step."""
        follow_runs.renew(self._worker.name)
        source_limits.renew_places(self._worker.name)

    def _note_look(self, followed: Followed, began_at: datetime, *, has_more: bool = False) -> None:
        """It has succeeded. Where a batch has left something to read, it goes on at once, and not all is read that was there."""
        now, copy, followed.away_since = self._worker.clock(), followed.run.copy, None
        if has_more:
            followed.due_at = now
        else:
            followed.sums = followed.sums.after_look(began_at)
            followed.due_at = next_look_at(began_at, copy.dataset.feed.every, now=now)
        # A table that is being built is switched to when it is known to have read what the present one has.
        is_built = copy.rebuild is not None and copy.rebuild.state == RebuildState.BUILDING
        is_first, followed.has_looked = not followed.has_looked, True
        is_caught_up_now = not has_more and not followed.has_caught_up
        followed.has_caught_up = followed.has_caught_up or not has_more
        if is_first:
            follow_runs.clear_failing(followed.run, now=now)
        if is_first or is_caught_up_now or is_built or followed.is_telling_due(now):
            self._tell(followed, now)

    def _fail(self, followed: Followed, error: str, report: JobReport | None = None) -> None:
        """It is looked at again after a while, by whichever process, or given up with a finding."""
        now, run = self._worker.clock(), followed.run
        logger.warning("Following %s has failed: %s", run.copy, error)
        self._tell(followed, now)
        if followed.run.pk in self._followed:
            self._forget(followed)
            failed = report or JobReport(run_id=str(run.key), status=FAILED, error=error)
            job_runs.finish_run(run, failed, self._worker.name, now=now, jitter=self._worker.draw_jitter())
            self._note_claim(run.due_at if run.state == JobState.QUEUED else None)

    def _note_claim(self, due_at: datetime | None) -> None:
        """A run that this process has put back is claimed in time, although nobody writes to the database when it is due."""
        if due_at is not None:
            self._claim_at = due_at if self._claim_at is None else min(self._claim_at, due_at)

    def _let_go(self, followed: Followed, now: datetime) -> None:
        """It is nobody's now, or another's. The first has to know what was seen."""
        self._forget(followed)
        follow_runs.keep_sums(followed.run.pk, _sums_to_tell(followed), now=now)

    def _forget(self, followed: Followed) -> None:
        self._followed.pop(followed.run.pk, None)

    def _time_left(self) -> timedelta:
        """Those that wait for a place are told by a look that ends."""
        waiting = [each.due_at for each in self._followed.values() if each.running is None and each.has_place]
        left = min([*waiting, *([self._claim_at] if self._claim_at else [])], default=None)
        return LONGEST_WAIT if left is None else min(LONGEST_WAIT, max(left - self._worker.clock(), timedelta()))


def _sums_to_tell(followed: Followed) -> FollowSums:
    """A look at a changelog has seen what the tap had taken by then, and not what the source had."""
    sums, copy = followed.sums, followed.run.copy
    if sums.looked_at is None or not is_captured_feed(copy.dataset.feed_or_none):
        return sums
    return replace(sums, looked_at=captured_upto(copy, sums.looked_at))
