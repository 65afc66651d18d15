"""The weekly report in words: what a mail to the owners says. Plain text, the same facts as the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from urllib.parse import urlencode

from django.conf import settings

from quality.generation.weekly_report import MissingDataset, SkippedTest, WeeklyReport

MAX_LINES = 20
"""Lines of one kind; the page has them all."""


def weekly_subject(report: WeeklyReport) -> str:
    share = report.coverage.share
    covered = "" if share is None else f"{share:.0%} of {report.datasets} datasets covered"
    counts = ((len(report.silent), "silent"), (len(report.look_at), "to look at"), (len(report.gone), "gone"))
    asks = [f"{count} {label}" for count, label in counts if count]
    return f"[weekly report] {report.team}: {', '.join(filter(None, [covered, *asks]))}"


def weekly_body(report: WeeklyReport) -> str:
    parts = [
        [f"Datasets of team {report.team}, {report.start:%Y-%m-%d} to {report.end:%Y-%m-%d}.", _coverage_line(report)],
        _section(
            "Not covered",
            [
                f"{uncovered.dataset} (tier {uncovered.tier}): {'; '.join(uncovered.reasons)}"
                for uncovered in report.coverage.uncovered
            ],
        ),
        _section(
            "Tests that could not be made, and what is missing",
            list(_skipped_lines(report.skipped)),
        ),
        _section(
            "Tests in error or without data for the whole week",
            [
                f"{test.dataset}: {test.title} in {test.data_center}: {_outcome_text(test.outcome)}, {_last_seen_text(test.last_seen_at)}"
                f"{f': {test.cause}' if test.cause else ''}"
                for test in report.silent
            ],
        ),
        _section("Tests to look at", [f"{test.dataset}: {test.title}: {test.why}" for test in report.look_at]),
        _section("Datasets whose table is gone", [_gone_text(missing) for missing in report.gone]),
        _section("Datasets whose owners nobody can write to", report.without_contact),
        ["All of it:", coverage_url(report)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def coverage_url(report: WeeklyReport) -> str:
    return f"{settings.LAKEHUB_BASE_URL}/coverage?{urlencode({'team': report.team})}"


def _coverage_line(report: WeeklyReport) -> str:
    coverage = report.coverage
    return f"{coverage.covered} of {coverage.datasets} are tested as their metadata allows."


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title} ({len(lines)}):", *_bounded(lines)] if lines else []


def _bounded(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"- {' '.join(line.split())}" for line in lines[:MAX_LINES])
    if len(lines) > MAX_LINES:
        yield f"- and {len(lines) - MAX_LINES} more"


def _skipped_lines(skipped: Sequence[SkippedTest]) -> Iterator[str]:
    """One line for what many datasets lack; the ones of the highest tier first."""
    lacking: dict[tuple[str, str], list[str]] = defaultdict(list)
    for skipped_test in skipped:
        lacking[skipped_test.check, skipped_test.missing].append(skipped_test.dataset)
    for (check, missing), datasets in lacking.items():
        more = f" and {len(datasets) - MAX_LINES} more" if len(datasets) > MAX_LINES else ""
        yield f"no {check} test: {missing}: {', '.join(datasets[:MAX_LINES])}{more}"


def _outcome_text(outcome: str) -> str:
    return {"error": "in error", "no_data": "no data"}.get(outcome, outcome)


def _last_seen_text(seen_at: datetime | None) -> str:
    return f"said something last on {seen_at:%Y-%m-%d}" if seen_at else "never said anything"


def _gone_text(missing: MissingDataset) -> str:
    since = f"{missing.dataset}: since {missing.missing_since:%Y-%m-%d %H:%M} UTC"
    if missing.offboarded_at:
        return f"{since}; off-boarded on {missing.offboarded_at:%Y-%m-%d}"
    return (
        f"{since}; off-boarded on {missing.offboards_at:%Y-%m-%d} unless it comes back"
        if missing.offboards_at
        else since
    )
