"""The catalog in the console: nothing is edited or deleted past the use cases; a feed is paused with an audit."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import Dataset
from tests import factories as make

pytestmark = pytest.mark.django_db


def console(*rights: str) -> Client:
    person = make.user(is_staff=True)
    person.user_permissions.add(*Permission.objects.filter(codename__in=rights))
    client = Client()
    client.force_login(person)
    return client


def test_a_dataset_is_neither_edited_nor_deleted_here() -> None:
    make.feed(dataset := make.dataset("planes"))
    client = console("view_dataset", "change_dataset", "delete_dataset")
    assert client.get(f"/console/catalog/dataset/{dataset.pk}/change/").status_code == 200
    client.post(f"/console/catalog/dataset/{dataset.pk}/change/", {"tier": 0})
    client.post(f"/console/catalog/dataset/{dataset.pk}/delete/", {"post": "yes"})
    assert Dataset.objects.get().tier == dataset.tier


@pytest.mark.parametrize(("rights", "paused"), [(("view_dataset",), False), (("view_dataset", "change_dataset"), True)])
def test_a_feed_is_paused_by_who_may_change_it(rights: tuple[str, ...], paused: bool) -> None:
    make.feed(dataset := make.dataset("planes"))
    console(*rights).post("/console/catalog/dataset/", {"action": "pause", "_selected_action": dataset.pk})
    assert Dataset.objects.get().feed.paused is paused
    assert AuditEntry.objects.filter(action="change").exists() is paused


@pytest.mark.parametrize("table", ["lineageday", "lineagetable"])
def test_lineage_can_be_looked_at(table: str) -> None:
    client = console(f"view_{table}", f"add_{table}")
    assert client.get(f"/console/catalog/{table}/").status_code == 200
    assert client.get(f"/console/catalog/{table}/add/").status_code == 403
