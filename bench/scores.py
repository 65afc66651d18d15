"""What the scores of a window cost at 100,000 incidents on 2,000 datasets: the rows read, the arithmetic, the whole page."""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.harness import Report, run, timed

WITHIN_S = 2.0
NOW = datetime(2026, 11, 17, 19, 32, tzinfo=UTC)
DAYS = 90


def main() -> int:
    return run("scores", bench, __doc__)


def bench(report: Report) -> None:
    datasets, incidents, questions = (200, 5_000, 20_000) if report.quick else (2_000, 100_000, 400_000)
    home = Path(tempfile.mkdtemp(prefix="lakehub-bench-scores-"))
    os.environ |= {"LAKEHUB_HOME": str(home), "DJANGO_SETTINGS_MODULE": "lakehub.settings"}
    try:
        _prepare(datasets, incidents, questions)
        _measure(report)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _prepare(datasets: int, incidents: int, questions: int) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    _fill(datasets, incidents, questions)


def _fill(datasets: int, incidents: int, questions: int) -> None:
    """Lives of some hours all over the window; one incident in 15 a false positive, one in 50 open, one report in 100."""
    from django.db import transaction

    from lakehub.accounts.models import Team, User
    from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy
    from quality.models import Category, Test, TestVersion

    luck = random.Random(5)
    begun = NOW - 2 * DAYS * timedelta(days=1)
    with transaction.atomic():
        teams = Team.objects.bulk_create([Team(name=f"team-{at:02}") for at in range(20)])
        center = DataCenter.objects.create(name="dc1", lake_uri="file:///lake/dc1")
        User.objects.create_user("bench")
        made = Dataset.objects.bulk_create(
            [
                Dataset(name=f"set{at:04}", team=teams[at % 20], tier=at % 6, kind="append-only", onboarded_at=begun)
                for at in range(datasets)
            ]
        )
        copies = DatasetCopy.objects.bulk_create(
            [DatasetCopy(dataset=one, data_center=center, uri=one.name, monitored_from=begun) for one in made]
        )
        tests = Test.objects.bulk_create(
            [
                Test(dataset=one, key=name, title=name, category=name, check_name=name)
                for one in made
                for name in Category.values
            ]
        )
        day = timedelta(days=1)
        TestVersion.objects.bulk_create(
            [
                TestVersion(
                    test=one, number=1, sustain=day, due_after=day, rerun_base=day, rerun_cap=day, created_at=begun
                )
                for one in tests
            ]
        )
        _lives(incidents, copies, tests, luck)
        _questions(questions, copies, luck)


def _lives(incidents: int, copies: list, tests: list, luck: random.Random) -> None:  # type: ignore[type-arg]
    from incidents.models import Incident, Span, State, UserReport
    from quality.models import Category, Unit

    copy_of = {one.dataset_id: one for one in copies}
    rows, spans, units, reports = [], [], [], []
    for at in range(incidents):
        test = luck.choice(tests)
        opened = NOW - timedelta(days=DAYS) * luck.random()
        lasted = timedelta(minutes=luck.randint(5, 1_000))
        over = None if at % 50 == 0 else min(opened + lasted, NOW)
        how = "" if over is None else "false_positive" if at % 15 == 0 else "auto"
        row = Incident(
            dataset_id=test.dataset_id,
            category=test.category,
            title="bench",
            opened_at=opened,
            resolved_at=over,
            resolution=how,
            false_positive="wrong_test" if how == "false_positive" else "",
            state=State.OPEN if over is None else State.RESOLVED,
            acknowledged_at=opened + lasted / 10 if at % 3 else None,
            reported=at % 100 == 1,
        )
        rows.append(row)
        start = (opened - timedelta(days=luck.randint(0, 5))).replace(minute=0, second=0, microsecond=0)
        data = (start, start + timedelta(days=1))
        if row.reported:
            row.acknowledged_at = opened
            reports.append(
                UserReport(incident=row, start=data[0], end=data[1], text="", occurred_at=opened, fixed_at=over)
            )
            continue
        for part in range(1 + (at % 3 == 0)):
            unit = Unit(
                test=test,
                copy=copy_of[test.dataset_id],
                start=data[0] + timedelta(seconds=at),
                end=data[1] + timedelta(days=part, seconds=at),
            )
            units.append(unit)
            spans.append(
                Span(
                    incident=row,
                    unit=unit,
                    copy=unit.copy,
                    start=unit.start,
                    end=unit.end,
                    began_at=opened - timedelta(minutes=30),
                    ended_at=over,
                )
            )
    del Category
    Incident.objects.bulk_create(rows, batch_size=2_000)
    Unit.objects.bulk_create(units, batch_size=2_000)
    Span.objects.bulk_create(spans, batch_size=2_000)
    UserReport.objects.bulk_create(reports, batch_size=2_000)


def _questions(questions: int, copies: list, luck: random.Random) -> None:  # type: ignore[type-arg]
    from incidents.models import GateQuestion

    for begin in range(0, questions, 20_000):
        rows = []
        for at in range(begin, min(begin + 20_000, questions)):
            asked = NOW - timedelta(days=DAYS) * luck.random()
            end = asked.replace(minute=0, second=0, microsecond=0)
            rows.append(
                GateQuestion(
                    at=asked, consumer="bench", request_id=str(at), copy=luck.choice(copies),
                    start=end - timedelta(days=1), end=end, verdict="pass", allowed=True,
                )
            )  # fmt: skip
        GateQuestion.objects.bulk_create(rows, batch_size=2_000)


def _measure(report: Report) -> None:
    from incidents.scoring import scores_of
    from lakehub.kernel.interval import Interval

    whole = Interval(NOW - timedelta(days=DAYS), NOW)
    month = Interval(NOW - timedelta(days=30), NOW)
    rows = []
    for name, window, by in (
        ("90 days, all of them", whole, ""),
        ("90 days, by test", whole, "test"),
        ("90 days, by team", whole, "team"),
        ("30 days, a third", month, ""),
    ):

        def work(window: Interval = window, by: str = by) -> None:
            found = scores_of(window, now=NOW)
            _ = found.whole
            if by:
                found.by(by)

        taken = timed(work, repeats=3, warm_up=1)
        rows.append([name, f"{taken.median:.2f}"])
        report.at_most(name, taken.median, WITHIN_S, unit=" s")
    report.table("Seconds", ["window", "s"], rows)


if __name__ == "__main__":
    sys.exit(main())
