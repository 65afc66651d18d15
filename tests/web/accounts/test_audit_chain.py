"""The audit log's chain: whatever is changed, removed or inserted is named by its line; nothing bypasses it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from lakehub.accounts.audit import audit_log, chain
from lakehub.accounts.audit.verification import Anchor, ChainReport, verify_chain
from lakehub.accounts.models import AuditEntry, AuditHead
from tests import factories as make

LINES = 7
SOURCES = ("lakehub", "ingestion", "quality", "incidents", "frontend")


def write(count: int = LINES) -> None:
    with transaction.atomic():
        for number in range(count):
            detail = {"rows": number, "share": 1e22, "text": "Zürich  \N{SNOWMAN}", "none": None}
            audit_log.record("ines", "change", f"dataset:d{number}", now=make.NOW, **detail)
    chain.extend()


def line(number: int) -> AuditEntry:
    return AuditEntry.objects.get(number=number)


def update(number: int, /, **fields: Any) -> None:
    AuditEntry.objects.filter(number=number).update(**fields)


def swap() -> None:
    """Two lines say what the other said, digests included, under their own numbers."""
    third, fourth = line(3), line(4)
    update(3, digest=fourth.digest, previous=fourth.previous, subject=fourth.subject, detail=fourth.detail)
    update(4, digest=third.digest, previous=third.previous, subject=third.subject, detail=third.detail)


def insert_between() -> None:
    for number in range(LINES, 3, -1):
        update(number, number=number + 1)
    AuditHead.objects.update(number=LINES + 1)
    AuditEntry.objects.create(
        at=make.NOW, actor="x", action="y", subject="z", number=4, previous=line(3).digest, digest="0" * 64
    )


def renumber_after_removal() -> None:
    """The hole is closed and the head is moved: the numbers are whole again."""
    line(4).delete()
    for number in range(5, LINES + 1):
        update(number, number=number - 1)
    AuditHead.objects.update(number=LINES - 1)


def truncate_with_head() -> None:
    AuditEntry.objects.filter(number__gt=5).delete()
    AuditHead.objects.update(number=5, digest=line(5).digest)


FORGERIES: dict[str, tuple[Callable[[], object], int, str]] = {
    "an actor": (lambda: update(4, actor="omar"), 4, "changed"),
    "a time": (lambda: update(4, at=make.NOW + make.MINUTE), 4, "changed"),
    "a detail": (lambda: update(4, detail={"rows": 4}), 4, "changed"),
    "an action": (lambda: update(4, action="look"), 4, "changed"),
    "a subject": (lambda: update(4, subject="dataset:x"), 4, "changed"),
    "a team": (lambda: update(4, team=99), 4, "changed"),
    "a digest": (lambda: update(4, digest="0" * 64), 4, "changed"),
    "a link": (lambda: update(4, previous="0" * 64), 4, "changed"),
    "the first line removed": (lambda: line(1).delete(), 1, "removed"),
    "a line removed": (lambda: line(4).delete(), 4, "removed"),
    "a line removed, numbers closed": (renumber_after_removal, 4, "changed"),
    "the last line removed": (lambda: line(LINES).delete(), LINES, "removed"),
    "a line inserted": (insert_between, 4, "changed or inserted"),
    "a line put behind the head": (
        lambda: AuditEntry.objects.create(at=make.NOW, number=LINES + 1),
        LINES + 1,
        "inserted",
    ),
    "two lines exchanged": (swap, 3, "changed"),
    "the head's digest": (lambda: AuditHead.objects.update(digest="0" * 64), LINES + 1, "removed"),
    "the head removed": (lambda: AuditHead.objects.all().delete(), 1, "inserted"),
    "all removed": (lambda: AuditEntry.objects.all().delete(), 1, "removed"),
}


@pytest.mark.django_db
def test_what_was_written_is_as_it_was() -> None:
    write()
    report = verify_chain()
    assert (report.line_count, report.waiting_count, report.broken_at) == (LINES, 0, None)
    assert report.head == Anchor(LINES, line(LINES).digest)
    assert [entry.previous for entry in AuditEntry.objects.order_by("number")][1:] == [
        line(n).digest for n in range(1, LINES)
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("forgery", FORGERIES)
def test_the_first_line_that_is_wrong_is_named(forgery: str) -> None:
    write()
    forge, number, words = FORGERIES[forgery]
    forge()
    report = verify_chain()
    assert report.broken_at == number
    assert words in report.problem
    assert f"ine {number}" in report.problem
    with pytest.raises(CommandError, match=re.escape(report.problem)):
        call_command("verify_audit")


@pytest.mark.django_db
def test_a_tail_cut_off_with_the_head_is_found_by_a_head_that_was_remembered() -> None:
    write()
    remembered = verify_chain().head
    truncate_with_head()
    assert verify_chain().broken_at is None  # what the docs say that it cannot prove
    assert verify_chain(remembered).broken_at == 6
    with pytest.raises(CommandError, match="you remembered line 7"):
        call_command("verify_audit", head=str(remembered))


@pytest.mark.django_db
def test_a_chain_written_anew_is_found_by_a_head_that_was_remembered() -> None:
    write()
    remembered = verify_chain().head
    update(2, actor="omar")
    AuditEntry.objects.update(number=None)
    AuditHead.objects.update(number=0, digest="")
    chain.extend()
    assert verify_chain().broken_at is None
    assert verify_chain(remembered).broken_at == LINES


@pytest.mark.django_db
def test_the_command_prints_the_head_and_takes_it_back() -> None:
    write()
    out = StringIO()
    call_command("verify_audit", json=True, stdout=out)
    facts = json.loads(out.getvalue())
    assert facts == {
        "lines": LINES,
        "head": f"{LINES}:{line(LINES).digest}",
        "waiting": 0,
        "broken_at": None,
        "problem": "",
    }
    write(2)
    call_command("verify_audit", head=facts["head"], stdout=out)
    assert f"Head {LINES + 2}:" in out.getvalue()
    with pytest.raises(CommandError, match="`7` is no head"):
        call_command("verify_audit", head="7")


@pytest.mark.django_db
def test_one_who_has_the_database_but_not_the_key_cannot_write_it_anew(settings: Any) -> None:
    write()
    settings.LAKEHUB_ENCRYPTION_KEY = "a guess"
    update(3, actor="omar")
    AuditEntry.objects.update(number=None)
    AuditHead.objects.update(number=0, digest="")
    chain.extend()
    settings.LAKEHUB_ENCRYPTION_KEY = "of the instance"
    assert verify_chain().broken_at == 1


@pytest.mark.django_db(transaction=True)
def test_a_line_joins_the_chain_when_its_change_is_committed_and_not_before() -> None:
    with transaction.atomic():
        audit_log.record("ines", "change", "dataset:flights", now=make.NOW)
        audit_log.record("ines", "change", "dataset:flights", now=make.NOW)
        assert AuditEntry.objects.filter(number=None).count() == 2
    assert list(AuditEntry.objects.values_list("number", flat=True)) == [1, 2]
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        audit_log.record("ines", "change", "dataset:flights", now=make.NOW)
        raise ZeroDivisionError
    audit_log.record("ines", "change", "dataset:flights", now=make.NOW)
    assert verify_chain() == ChainReport(3, Anchor(3, line(3).digest), 0)


@pytest.mark.django_db(transaction=True)
def test_what_a_process_that_died_left_behind_joins_with_the_next_line() -> None:
    AuditEntry.objects.create(at=make.NOW, actor="ines", action="change", subject="dataset:flights")
    assert verify_chain().waiting_count == 1
    audit_log.record("ines", "change", "dataset:flights", now=make.NOW)
    assert verify_chain().line_count == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("lines", [1, 60])
def test_the_cost_is_bounded_and_once_for_each_transaction(lines: int) -> None:
    """Two statements a line, as its team is looked up; the chain takes four and a transaction's two, however many lines."""
    make.dataset("flights")
    audit_log.record("ines", "change", "dataset:flights", now=make.NOW)  # makes the head
    with CaptureQueriesContext(connection) as seen, transaction.atomic():
        for _ in range(lines):
            audit_log.record("ines", "change", "dataset:flights", now=make.NOW)
    statements = [query["sql"] for query in seen if not re.match(r"BEGIN|COMMIT", query["sql"])]
    assert len(statements) == 2 * lines + 4


def test_nothing_writes_a_line_past_the_log() -> None:
    """One function writes lines; nothing changes or deletes them but the chain, which numbers them."""
    writes = re.compile(
        r"AuditEntry(?:\.objects)?(?:\.\w+\([^)]*\))*\.(?:bulk_)?(?:create|update|delete|get_or_create)\b|AuditEntry\(\s*\w+="
    )
    root = Path(settings.BASE_DIR)
    writers = {
        str(file.relative_to(root)): writes.findall(file.read_text())
        for package in SOURCES
        for file in sorted((root / package).rglob("*.py"))
        if writes.search(file.read_text())
    }
    assert {name: len(calls) for name, calls in writers.items()} == {"lakehub/accounts/audit/audit_log.py": 1}


def test_every_kind_of_subject_has_a_team_or_is_of_the_whole_instance() -> None:
    """Every subject that the product writes: a new kind that nobody thought of would be hidden from its team's administrators."""
    of_the_instance = {"person", "data_center", "index_cluster"}
    kinds = set()
    for package in SOURCES:
        for file in (Path(settings.BASE_DIR) / package).rglob("*.py"):
            text = file.read_text()
            if "audit_log" in text:
                kinds |= set(re.findall(r'f"([a-z_]+):\{', text))
    assert kinds - of_the_instance == set(settings.LAKEHUB_AUDIT_SUBJECTS)
