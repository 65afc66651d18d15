"""From onboarding to a message, by the plug-ins of the installed package `lakehub-ledger` alone: what happened, as one line of JSON.

`python -m tests.spark.toy_story FOLDER`, with that package on the path. The entry that the lake lacks is written to the ledger
after it was loaded.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import django

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
BOOKED_AT = "2026-11-16T08:00:00Z"


def play(folder: Path) -> dict[str, object]:
    from incidents.alerts.generate import generate_outdated_alerts
    from incidents.models import Incident
    from incidents.notifications.sender import send_due_messages
    from ingestion.models import Commit
    from quality.generation.generate import generate_outdated
    from quality.planning.baseline import start_missing_baselines

    ledger, notes = folder / "books" / "payments.ledger", folder / "notes.txt"
    ledger.parent.mkdir()
    entries = "".join(f"{number}|p{number}|{BOOKED_AT}\n" for number in range(50))
    ledger.write_text(f"id:long|payer:string|booked_at:timestamp\n{entries}")
    onboard(folder, notes)
    run = load(folder)
    for part in (generate_outdated, generate_outdated_alerts, start_missing_baselines):
        part(now=NOW)
    before = outcomes(NOW + timedelta(minutes=1))
    with ledger.open("a") as book:
        book.write(f"50|late|{BOOKED_AT}\n")
    later = NOW + timedelta(days=1)
    after = outcomes(later)
    send_due_messages(now=later + timedelta(minutes=30))
    return {
        "run": run,
        "applied": Commit.objects.get().applied,
        "before": before,
        "after": after,
        "incidents": list(Incident.objects.values_list("category", flat=True)),
        "notes": notes.read_text() if notes.exists() else "",
    }


def onboard(folder: Path, notes: Path) -> None:
    """The payments of a team that is told by the toy's channel."""
    from incidents.notifications.routes import set_route
    from lakehub.accounts.models import Team
    from lakehub.catalog.connections import add_connection
    from lakehub.catalog.data_centers import add_data_center
    from lakehub.catalog.onboarding.onboard import onboard_dataset
    from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest

    team = Team.objects.create(name="treasury")
    add_data_center(name="dc1", lake_uri=(folder / "lake").as_uri(), actor="ann", now=NOW)
    books = {"plugin": "ledger", "url": f"ledger:{folder / 'books'}", "team": "treasury"}
    add_connection(name="books", **books, actor="ann", now=NOW, by_operator=True)
    application = OnboardingRequest(
        name="payments",
        team="treasury",
        tier=1,
        connection="books",
        table="payments",
        data_centers=["dc1"],
        primary_key=["id"],
        reference_key="booked_at",
    )
    onboard_dataset(application, actor="ann", now=NOW)
    set_route(team, {"channel": "ledger_notes", "address": str(notes)}, actor="ann", now=NOW)


def load(folder: Path) -> list[str]:
    """By Spark: the state and the error of the run."""
    from ingestion.launchers import LauncherConfig
    from ingestion.launchers.warm import WarmLauncher
    from ingestion.runs import feed_schedule, run_worker

    feed_schedule.request_due_runs(now=NOW)
    launcher, staging = WarmLauncher(LauncherConfig(folder=folder / "jobs")), (folder / "staging").as_uri()
    worker = run_worker.Worker(
        "host:1:a", launcher, staging, lambda: NOW, timedelta, lambda: 0.0, lambda inputs, **_: []
    )
    try:
        run = run_worker.run_next(worker)
    finally:
        launcher.close()
    assert run is not None
    run.refresh_from_db()
    return [run.state, run.error]


def outcomes(now: datetime) -> dict[str, str]:
    """Of each test the newest, after all that is due was run, taken in and sent."""
    from incidents.lifecycle.intake import process_flips
    from incidents.notifications.sender import send_due_messages
    from quality.execution.worker import run_due_units
    from quality.models import Result

    run_due_units(now=now, worker="test", most=100)
    process_flips(now=now)
    send_due_messages(now=now)
    newest = Result.objects.select_related("unit__test").order_by("pk")
    return {result.unit.test.key: result.outcome for result in newest}


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)
    sys.stdout.write(json.dumps(play(Path(sys.argv[1]))))
