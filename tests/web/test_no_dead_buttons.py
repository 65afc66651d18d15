"""Nobody sees a button that ends in "you may not": everybody walks every page and tries all that is offered there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from pytest_django.plugin import DjangoDbBlocker

from ingestion.models import JobKind, JobState
from lakehub.catalog.models import Dataset
from tests import callers
from tests import factories as make
from tests.callers import World
from tests.every_address import OURS, place
from tests.page_forms import Form, PageForms

PAGES = tuple(
    sorted(
        address for method, address in OURS if method == "GET" and not address.startswith(("api/", "metrics", "sign"))
    )
)
MORE_PAGES = (
    "datasets/flights?test=1",
    "gate?dataset=flights&from=2026-11-14&to=2026-11-17&dc=dc1",
    "incidents?teams=all",
)
ACTING = ("owner", "on_call", "admin")
LEFT_ALONE = ("/sign-out",)
"""It would end the walk."""
SLOW = ("new-metric", "/business-metrics", "backtest")
"""They start a process that reads data; who may is tested by tests/web/test_roles.py."""


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """With a run that failed and one that is to delete rows again."""
    with django_db_blocker.unblock(), transaction.atomic():
        built = callers.build()
        copy = make.copy_of(Dataset.objects.get(name="flights"), "dc1")
        for kind in (JobKind.BOOTSTRAP, JobKind.DELETE):
            make.run(
                copy,
                kind,
                JobState.FAILED,
                attempt=5,
                error="boom",
                params={"share": 0.1} if kind == JobKind.DELETE else {},
            )
        yield built
        transaction.set_rollback(True)


@pytest.mark.parametrize("name", [*ACTING, "viewer", "stranger"])
def test_what_is_offered_may_be_done(world: World, db: None, name: str) -> None:
    client, walk = world.callers[name].client, _Walk()
    for address in (*(place(page, world) for page in PAGES), *MORE_PAGES):
        answer = client.get(f"/{address}")
        assert answer.status_code < 500, address
        if answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/html"):
            walk.over(client, f"/{address}", PageForms(answer.content.decode()))
    assert walk.refused == []
    assert walk.tried > (20 if name in ACTING else 5)  # or the walk is over empty pages


class _Walk:
    """What one person has tried already, and what ended in a refusal."""

    def __init__(self) -> None:
        self._seen: set[Any] = set()
        self.refused: list[str] = []
        self.tried = 0

    def over(self, client: Client, page: str, offered: PageForms) -> None:
        for link in offered.links:
            where = link.partition("#")[0]
            if where.startswith("/") and self._is_new(_shape(where)) and client.get(where).status_code == 403:
                self.refused.append(f"{page}: the link {where}")
        for form in offered.forms:
            for button in form.buttons:
                self._press(client, page, form, button)

    def _press(self, client: Client, page: str, form: Form, button: tuple[str, str]) -> None:
        action = form.action or page
        if form.method != "post" or action in LEFT_ALONE or any(part in action for part in SLOW):
            return
        if not self._is_new((action, button, tuple(name for name, _ in form.fields))):
            return
        self.tried += 1
        with _undone():
            answer = client.post(action, form.body(button), follow=True)
            notes = re.findall(r'<div class="note" role="status".*?</div>', answer.content.decode(), re.S)
        if answer.status_code in (403, 500) or any("you need to be" in note for note in notes):
            self.refused.append(f"{page}: {action} with {button}: {answer.status_code} {notes}")

    def _is_new(self, what: Any) -> bool:
        new = what not in self._seen
        self._seen.add(what)
        return new


def _shape(link: str) -> str:
    """One link of each kind is enough where they differ by a number or a choice."""
    return re.sub(r"\d+", "0", link.partition("?")[0])


@contextmanager
def _undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
