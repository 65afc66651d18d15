"""Policies of the gate on a page: who sees them, who sets them, and that it is what the API does."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from incidents.models import GatePolicy
from lakehub.accounts.models import AuditEntry, User
from tests import factories as make

PAGE = "/gate/policies"
FORM = {"consumer": "pricing", "tier": "", "preset": "lenient", "blocks": "", "shadow": ""}


def text_of(page: Client, where: str = PAGE) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.get(where).content.decode()))


def policy(tier: int | None = None, consumer: str = "pricing") -> GatePolicy | None:
    return GatePolicy.objects.filter(consumer=consumer, tier=tier).first()


def test_it_says_what_blocks_whom(page: Client) -> None:
    text = text_of(page)
    assert "pricing shadow flight-ops every other Strict: fail, unknown, warn It only watches" in text
    assert "0 fail, unknown:never_tested" in text


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"preset": "strict", "tier": "1"}, (1, "strict", [], False)),
        ({"preset": "lenient", "shadow": "on"}, (None, "lenient", [], True)),
        ({"preset": "custom", "blocks": "fail, unknown:not_due"}, (None, "custom", ["fail", "unknown:not_due"], False)),
        ({"preset": "custom"}, (None, "custom", [], False)),
        ({"preset": "lenient", "blocks": "left from before"}, (None, "lenient", [], False)),
    ],
)
def test_one_is_set_and_audited(page: Client, changes: dict[str, str], kept: tuple[object, ...]) -> None:
    form = {name: value for name, value in {**FORM, **changes}.items() if value}
    answer = page.post(PAGE, form, follow=True)
    assert "has its policy" in answer.content.decode()
    row = policy(int(form["tier"]) if "tier" in form else None)
    assert row is not None
    assert (row.tier, row.preset, row.blocks, row.shadow) == kept
    assert AuditEntry.objects.filter(action="set gate policy", subject="consumer:pricing", actor="ines").count() == 1


def test_the_form_of_one_is_filled_with_what_it_is(page: Client) -> None:
    html = page.get(f"{PAGE}?consumer=pricing&tier=0").content.decode()
    assert 'value="fail, unknown:never_tested"' in html
    assert re.search(r'value="custom" checked', html)
    assert '<option value="0" selected>' in html


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"preset": "custom", "blocks": "fial"}, "There is no verdict"),
        ({"preset": "strickt"}, "not a valid choice"),
        ({"tier": "9"}, "not a valid choice"),
        ({"tier": "x"}, "is no tier: 0 to 5"),
    ],
)
def test_what_makes_no_sense_is_said_at_its_field(page: Client, changes: dict[str, str], why: str) -> None:
    answer = page.post(PAGE, {**FORM, **changes})
    assert answer.status_code == 422
    assert why in answer.content.decode()
    assert not AuditEntry.objects.filter(action="set gate policy").exists()


def test_one_is_removed(page: Client) -> None:
    answer = page.post(f"{PAGE}/remove", {"consumer": "pricing", "tier": "0"}, follow=True)
    assert "is gone" in answer.content.decode()
    assert policy(0) is None
    assert policy() is not None
    again = page.post(f"{PAGE}/remove", {"consumer": "pricing", "tier": "0"}, follow=True)
    assert "has no policy for tier 0" in again.content.decode()


def test_who_may_not_decide_sees_no_form_and_sets_nothing(guest: Client) -> None:
    assert "Set the policy" not in text_of(guest)
    assert "Remove" not in text_of(guest)
    assert guest.post(PAGE, FORM).status_code == 403
    assert guest.post(f"{PAGE}/remove", {"consumer": "pricing"}).status_code == 403
    assert policy() is not None


def test_lakehubs_own_jobs_are_for_who_runs_the_instance(page: Client, ines: User) -> None:
    own = {**FORM, "consumer": "ingestion", "preset": "strict"}
    assert page.post(PAGE, own).status_code == 403
    assert "ingestion" not in re.findall(r"<option[^>]*>(\w+)</option>", page.get(PAGE).content.decode())
    runs_it = Client()
    runs_it.force_login(make.user("root", is_superuser=True))
    assert 'value="ingestion"' in runs_it.get(PAGE).content.decode()
    assert runs_it.post(PAGE, own).status_code == 302
    assert policy(consumer="ingestion") is not None
