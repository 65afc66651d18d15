"""The weekly report in words: what a mail to the owners says. Plain text, the same facts as the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from urllib.parse import urlencode

from django.conf import settings

from quality.reports import Gone, Skipped, WeeklyReport

MOST = 20
"""Lines of one kind; the page has them all."""


def subject(report: WeeklyReport) -> str:
    share = report.coverage.share
    covered = "" if share is None else f"{share:.0%} of {report.datasets} datasets covered"
    counts = ((len(report.silent), "silent"), (len(report.look_at), "to look at"), (len(report.gone), "gone"))
    asks = [f"{count} {what}" for count, what in counts if count]
    return f"[weekly report] {report.team}: {', '.join(filter(None, [covered, *asks]))}"


def body(report: WeeklyReport) -> str:
    parts = [
        [f"Datasets of team {report.team}, {report.start:%Y-%m-%d} to {report.end:%Y-%m-%d}.", _covered(report)],
        _part(
            "Not covered",
            [f"{one.dataset} (tier {one.tier}): {'; '.join(one.why)}" for one in report.coverage.uncovered],
        ),
        _part(
            "Tests that could not be made, and what is missing",
            list(_skipped(report.skipped)),
        ),
        _part(
            "Tests in error or without data for the whole week",
            [
                f"{one.dataset}: {one.title} in {one.data_center}: {_outcome(one.outcome)}, {_last(one.last_seen_at)}"
                f"{f': {one.cause}' if one.cause else ''}"
                for one in report.silent
            ],
        ),
        _part("Tests to look at", [f"{one.dataset}: {one.title}: {one.why}" for one in report.look_at]),
        _part("Datasets whose table is gone", [_gone(one) for one in report.gone]),
        _part("Datasets whose owners nobody can write to", report.without_contact),
        ["All of it:", link(report)],
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def link(report: WeeklyReport) -> str:
    return f"{settings.LAKEHUB_BASE_URL}/coverage?{urlencode({'team': report.team})}"


def _covered(report: WeeklyReport) -> str:
    found = report.coverage
    return f"{found.covered} of {found.datasets} are tested as their metadata allows."


def _part(title: str, lines: Sequence[str]) -> list[str]:
    return [f"{title} ({len(lines)}):", *_bounded(lines)] if lines else []


def _bounded(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"- {' '.join(line.split())}" for line in lines[:MOST])
    if len(lines) > MOST:
        yield f"- and {len(lines) - MOST} more"


def _skipped(skipped: Sequence[Skipped]) -> Iterator[str]:
    """One line for what many datasets lack; the ones of the highest tier first."""
    lacking: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in skipped:
        lacking[one.check, one.missing].append(one.dataset)
    for (check, missing), datasets in lacking.items():
        more = f" and {len(datasets) - MOST} more" if len(datasets) > MOST else ""
        yield f"no {check} test: {missing}: {', '.join(datasets[:MOST])}{more}"


def _outcome(outcome: str) -> str:
    return {"error": "in error", "no_data": "no data"}.get(outcome, outcome)


def _last(seen_at: datetime | None) -> str:
    return f"said something last on {seen_at:%Y-%m-%d}" if seen_at else "never said anything"


def _gone(one: Gone) -> str:
    since = f"{one.dataset}: since {one.missing_since:%Y-%m-%d %H:%M} UTC"
    if one.offboarded_at:
        return f"{since}; off-boarded on {one.offboarded_at:%Y-%m-%d}"
    return f"{since}; off-boarded on {one.offboards_at:%Y-%m-%d} unless it comes back" if one.offboards_at else since
