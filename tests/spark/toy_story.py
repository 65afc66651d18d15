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
CENTS = "2026-11-16T08:00:00Z"


def play(folder: Path) -> dict[str, object]:
    from incidents.alerts.generate import generate_outdated_alerts
    from incidents.lifecycle.intake import process_flips
    from incidents.models import Incident
    from incidents.notifications.routes import set_route
    from incidents.notifications.sender import send_due_messages
    from ingestion.launchers import LauncherConfig
    from ingestion.launchers.warm import WarmLauncher
    from ingestion.models import Commit
    from ingestion.runs import feed_schedule, run_worker
    from lakehub.accounts.models import Team
    from lakehub.catalog.connections import add_connection
    from lakehub.catalog.data_centers import add_data_center
    from lakehub.catalog.onboarding.onboard import onboard_dataset
    from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
    from quality.execution.worker import run_due_units
    from quality.generation.generate import generate_outdated
    from quality.models import Result
    from quality.planning.baseline import start_missing_baselines

    ledger = folder / "books" / "payments.ledger"
    ledger.parent.mkdir()
    ledger.write_text("id:long|payer:string|booked_at:timestamp\n" + "".join(f"{n}|p{n}|{CENTS}\n" for n in range(50)))
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
    address = folder / "notes.txt"
    set_route(team, {"channel": "ledger_notes", "address": str(address)}, actor="ann", now=NOW)

    feed_schedule.request_due_runs(now=NOW)
    launcher = WarmLauncher(LauncherConfig(folder=folder / "jobs"))
    staging = (folder / "staging").as_uri()
    worker = run_worker.Worker(
        "host:1:a", launcher, staging, lambda: NOW, timedelta, lambda: 0.0, lambda inputs, **_: []
    )
    try:
        run = run_worker.run_next(worker)
    finally:
        launcher.close()
    assert run is not None
    run.refresh_from_db()
    generate_outdated(now=NOW)
    generate_outdated_alerts(now=NOW)
    start_missing_baselines(now=NOW)

    def outcomes(now: datetime) -> dict[str, str]:
        run_due_units(now=now, worker="test", most=100)
        process_flips(now=now)
        send_due_messages(now=now)
        newest = Result.objects.select_related("unit__test").order_by("pk")
        return {result.unit.test.key: result.outcome for result in newest}

    before = outcomes(NOW + timedelta(minutes=1))
    with ledger.open("a") as book:
        book.write(f"50|late|{CENTS}\n")
    later = NOW + timedelta(days=1)
    after = outcomes(later)
    send_due_messages(now=later + timedelta(minutes=30))
    return {
        "run": [run.state, run.error],
        "applied": Commit.objects.get().applied,
        "before": before,
        "after": after,
        "incidents": list(Incident.objects.values_list("category", flat=True)),
        "notes": address.read_text() if address.exists() else "",
    }


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    from django.core.management import call_command

    call_command("migrate", run_syncdb=True, verbosity=0)
    sys.stdout.write(json.dumps(play(Path(sys.argv[1]))))
