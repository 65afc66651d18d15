"""PostgreSQL takes letters for equal that make two mail addresses: of single sign-on, one links nobody to the other's account."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.test_incidents_concurrency import fresh_database
from tests.web.quality import test_worker_kill as processes

LINK = """
from tests import factories
from lakehub.accounts.models import User
from lakehub.accounts.single_sign_on.identities import person_of
call_command("migrate", run_syncdb=True, verbosity=0)
settings.LAKEHUB_OIDC_LINK_MAIL = True
for name in ("mike", "s\u0131m"):
    factories.user(name, email=f"{name}@example.org")
for subject, email in enumerate(["m\u0131ke@example.org", "sim@example.org", "MIKE@example.org"]):
    claims = {"iss": "https://issuer", "sub": str(subject), "email": email, "email_verified": True, "preferred_username": "new"}
    print(User.objects.filter(email__iexact=email).count(), person_of(claims, now=NOW).username)
"""


def test_a_letter_that_only_looks_the_same_links_nobody(
    postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh_database(postgresql_url) as url:
        monkeypatch.setenv("LAKEHUB_DATABASE_URL", url)
        code, printed = processes.run(tmp_path, LINK)
    assert (code, printed.split("\n")) == (0, ["1 new", "1 new-2", "2 mike"])
