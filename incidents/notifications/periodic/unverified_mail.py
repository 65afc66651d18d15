"""What nobody can vouch for is told: the owners of datasets of tiers 0 to 2 at once, once; the others by the weekly report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.urls import reverse

from incidents.models import MessageState, UnverifiedMail
from lakehub.catalog.models import Dataset
from lakehub.kernel.error_isolation import log_and_continue
from quality.generation.weekly_report import contacts
from quality.state.unverified import UnverifiedTest, unverified_tests, unverified_units

TOLD_AT_ONCE = (0, 1, 2)
"""The tiers."""
MAX_LINES = 20
MAX_LETTERS = 50
"""In one run; the next one goes on."""


def write_due_letters(*, now: datetime) -> int:
    """One letter for each dataset of which something has become unverified; what is verified again may be told anew."""
    concerned = unverified_units(now=now).filter(test__dataset__tier__in=TOLD_AT_ONCE).values("test__dataset")
    UnverifiedMail.objects.filter(over_at=None).exclude(dataset__in=concerned).update(over_at=now)
    datasets = Dataset.objects.filter(pk__in=concerned).exclude(
        unverified_letters__over_at=None, unverified_letters__isnull=False
    )
    written = 0
    untold = list(datasets.select_related("team").order_by("tier", "name")[:MAX_LETTERS])
    tests = unverified_tests(untold, now=now)
    for dataset in untold:
        with log_and_continue(f"What is not verified of {dataset.name}"):
            written += _write_letter(dataset, tests[dataset.pk], now=now)
    return written


def _write_letter(dataset: Dataset, tests: Sequence[UnverifiedTest], *, now: datetime) -> int:
    """Whose owners cannot be written to, the row says so; the page of its coverage says the same."""
    addresses = contacts(dataset.team)
    _, is_new = UnverifiedMail.objects.get_or_create(
        dataset=dataset,
        over_at=None,
        defaults={
            "address": ", ".join(addresses),
            "subject": _subject(dataset, tests)[:300],
            "body": _body(dataset, tests),
            "state": MessageState.PENDING if addresses else MessageState.DROPPED,
            "created_at": now,
            "due_at": now,
        },
    )
    return int(is_new)


def _subject(dataset: Dataset, tests: Sequence[UnverifiedTest]) -> str:
    ranges = sum(test.ranges for test in tests)
    are = "data range of {} is" if ranges == 1 else "data ranges of {} are"
    return f"{ranges:,} {are.format(dataset.name)} not verified"


def _body(dataset: Dataset, tests: Sequence[UnverifiedTest]) -> str:
    lines = [f"- {test.sentence}" for test in tests[:MAX_LINES]]
    if len(tests) > MAX_LINES:
        lines.append(f"- and {len(tests) - MAX_LINES:,} tests more")
    return "\n\n".join(
        [
            f"Tests of {dataset.name} should have said by now whether its data is right, and have not. "
            "Nothing is known to be wrong; but nobody knows that it is right, and the gate says unknown.",
            "\n".join(lines),
            f"{settings.LAKEHUB_BASE_URL}{reverse('dataset', args=[dataset.name])}",
        ]
    )
