"""Whether a dataset's rows are ever changed can be said anew: a wrong kind is in no way final."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.test import Client

from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import Dataset
from tests import factories as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> Client:
    make.feed(make.dataset("flights", kind="append-only"))
    person = make.user("ana")
    make.member(person, make.team(), Role.OWNER)
    client.force_login(person)
    return client


def test_an_owner_says_that_rows_are_changed_after_all(owner: Client) -> None:
    answer = owner.patch("/api/v1/datasets/flights", {"kind": "append-plus-update"}, content_type="application/json")
    assert (answer.status_code, answer.json()["kind"]) == (200, "append-plus-update")
    assert Dataset.objects.get().kind == "append-plus-update"
    entry = AuditEntry.objects.get(action="change")
    assert (entry.detail["was"], entry.detail["becomes"]) == ({"kind": "append-only"}, {"kind": "append-plus-update"})


def test_a_kind_that_there_is_not_is_refused_with_the_nearest(owner: Client) -> None:
    answer = owner.patch("/api/v1/datasets/flights", {"kind": "append"}, content_type="application/json")
    assert answer.status_code == 422
    assert "There is no kind `append`. Did you mean `append-only`?" in str(answer.json())
    assert Dataset.objects.get().kind == "append-only"


def test_those_that_follow_a_column_go_on_as_they_did_when_no_job_read_the_kind() -> None:
    by_cursor = {
        name: make.feed(make.dataset(name, kind=kind, ingested=ingested), cursor_column=cursor).dataset
        for name, kind, ingested, cursor in (
            ("followed", "append-only", True, "updated_at"),
            ("whole", "append-only", True, ""),
            ("watched", "append-only", False, "updated_at"),
            ("updated", "append-plus-update", True, "updated_at"),
        )
    }
    unfed = make.dataset("unfed", kind="append-only")
    import_module("lakehub.catalog.migrations.0004_kinds_that_were_never_read")._keep_updating(apps, None)
    kinds = {dataset.name: Dataset.objects.get(pk=dataset.pk).kind for dataset in (*by_cursor.values(), unfed)}
    assert kinds == {
        "followed": "append-plus-update", "whole": "append-only", "watched": "append-only",
        "updated": "append-plus-update", "unfed": "append-only",
    }  # fmt: skip
