"""A sender that is killed with SIGKILL, in a process of its own on a database of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.polling import scaled

PRELUDE = """
import django
django.setup()
from datetime import timedelta
from django.conf import settings
from django.core.management import call_command
from django.db.models.functions import Now
from incidents.lifecycle.intake import process_flips
from incidents.models import Message
from incidents.notifications.sender import send_due_messages
from lakehub.accounts.models import Team
from tests.factories import NOW
settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
settings.EMAIL_FILE_PATH = settings.LAKEHUB_HOME / "mail"
"""
OPEN_AN_INCIDENT = """
from tests.web.incidents.failing_dataset import FailingDataset
call_command("migrate", run_syncdb=True, verbosity=0)
stage = FailingDataset()
Team.objects.update(email="ops@example.org")
stage.opened()
"""
LEASE_RUNS_OUT = "Message.objects.update(leased_until=Now() - timedelta(seconds=1))\n"
SHOW = "print(*Message.objects.values_list('state', 'attempt'))\n"
SEND = "send_due_messages(now=NOW)\n"


def run(home: Path, script: str, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "LAKEHUB_FAILPOINT"},
        "LAKEHUB_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        **({"LAKEHUB_FAILPOINT": failpoint} if failpoint else {}),
    }
    command = [sys.executable, "-c", PRELUDE + script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=scaled(120))


@pytest.mark.slow
def test_a_message_whose_sender_was_killed_is_sent_once_by_the_next(tmp_path: Path) -> None:
    opened = run(tmp_path, OPEN_AN_INCIDENT)
    assert opened.returncode == 0, opened.stderr
    killed = run(tmp_path, SEND, failpoint="incidents.before_message")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert run(tmp_path, SEND + SHOW).stdout.strip() == "('pending', 0)"
    assert run(tmp_path, LEASE_RUNS_OUT + SEND + SEND + SHOW).stdout.strip() == "('sent', 1)"
    (mail,) = (tmp_path / "mail").iterdir()
    assert mail.read_text().count("Message-ID") == 1
