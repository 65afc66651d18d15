"""The gate on the server that `up` runs, with two processes: a change shows in the next answer, and no question is lost."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakehub.demo.instance import free_address
from lakehub.setup.artifacts import PROJECT_ROOT
from lakehub_client import Client, Input, LakehubError
from tests.polling import scaled, wait_until

FLIGHTS = [Input("flights", "2026-11-16", "2026-11-17")]
EACH = 25
"""Questions between two changes; enough for both processes to have answered."""

_INSTANCE = """
import os, sys, django
from lakehub.instance import prepare_instance
prepare_instance()
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from tests.fleet import build
from tests import factories
from lakehub.accounts.tokens import api_tokens
from lakehub.wiring import clock
build()
_, text = api_tokens.issue_token(name="jobs", consumer="pricing", team=factories.team(), created_by=factories.user(),
    scopes=["gate:read"], data_center="dc2", now=clock.now())
print(text)
"""
CHANGES = {"mend": "false_positive", "break": ""}
"""The waiver of the unit that fails: a person resolved it, and took that back."""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    settings = {"DJANGO_SETTINGS_MODULE": "lakehub.settings", "LAKEHUB_CLOCK": "shifted", "LAKEHUB_WEB_WORKERS": "2"}
    return own | settings | {"LAKEHUB_HOME": str(tmp_path), "LAKEHUB_GATE_RATE": "0", "LAKEHUB_BIND": free_address()}


def built(environ: dict[str, str]) -> str:
    """A new instance with a fleet; the token of its consumer."""
    command = [sys.executable, "-c", _INSTANCE]
    done = subprocess.run(command, cwd=PROJECT_ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def served(environ: dict[str, str], tmp_path: Path) -> Iterator[tuple[Client, subprocess.Popen[bytes]]]:
    token = built(environ)
    client, log = Client(f"http://{environ['LAKEHUB_BIND']}", token), tmp_path / "log"
    command = [sys.executable, "manage.py", "up", "web", "--no-migrate", "--bind", environ["LAKEHUB_BIND"]]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=PROJECT_ROOT, env=environ, stdout=out, stderr=out, start_new_session=True
        )
    try:
        wait_until(lambda: _answers(client), within_s=60, otherwise=lambda: log.read_text(errors="replace")[-2000:])
        yield client, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(scaled(60))


def _answers(client: Client) -> bool:
    try:
        client.gate(FLIGHTS)
    except LakehubError as problem:
        if problem.status:
            raise
        return False
    return True


def test_a_change_shows_in_the_next_answer_of_every_process_and_a_stop_loses_no_question(
    served: tuple[Client, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    client, process = served
    database = tmp_path / "lakehub.db"
    verdicts = []
    for change in ("", "mend", "break"):
        if change:
            with sqlite3.connect(database) as rows:
                changed = rows.execute(
                    "UPDATE quality_unit SET waiver = ? WHERE detail LIKE '%975 of 985%'", [CHANGES[change]]
                )
                assert changed.rowcount == 1
        verdicts.append([client.gate(FLIGHTS, request_id=f"run {change} {number}").verdict for number in range(EACH)])
    assert verdicts == [["fail"] * EACH, ["pass"] * EACH, ["fail"] * EACH], json.dumps(verdicts)
    process.send_signal(signal.SIGTERM)
    process.wait(scaled(60))
    with sqlite3.connect(database) as rows:
        kept = rows.execute("SELECT count(*) FROM incidents_gatequestion WHERE request_id LIKE 'run %'").fetchone()
    assert kept == (3 * EACH,)
