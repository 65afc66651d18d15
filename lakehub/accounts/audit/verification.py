"""Walks the audit log's chain from its first line to its head, and names the first line that is not as it was written."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Max

from lakehub.accounts.audit.chain import digest_of
from lakehub.accounts.models import AuditEntry, AuditHead
from lakehub.kernel.errors import Refused

_CHUNK_SIZE = 2_000
_ANCHOR = re.compile(r"(?P<number>[0-9]{1,18}):(?P<digest>[0-9a-f]{64})")


@dataclass(frozen=True)
class Anchor:
    """The end of the chain as it was once: kept elsewhere, it shows that nothing up to there has gone since."""

    number: int
    digest: str

    @classmethod
    def parse(cls, text: str) -> Anchor:
        """Raises Refused."""
        match = _ANCHOR.fullmatch(text.strip())
        if match is None:
            raise Refused(
                f"`{text}` is no head of the audit log: give what `manage.py verify_audit` printed, NUMBER:DIGEST."
            )
        return cls(int(match["number"]), match["digest"])

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"


@dataclass(frozen=True)
class ChainReport:
    """`broken_at`: the number of the first line that is wrong, None where there is none; `problem` says how."""

    line_count: int
    head: Anchor
    waiting_count: int
    """Lines that were written and are not in the chain yet: they join it within moments."""
    broken_at: int | None = None
    problem: str = ""


def verify_chain(remembered: Anchor | None = None) -> ChainReport:
    """In the memory of a few thousand lines. Lines that join the chain meanwhile are not looked at."""
    newest = AuditEntry.objects.aggregate(newest=Max("number"))["newest"] or 0
    stored = AuditHead.objects.first() or AuditHead()  # after the newest line: the two are committed together
    head = Anchor(stored.number, stored.digest)
    waiting_count = AuditEntry.objects.filter(number=None).count()
    last = Anchor(0, "")
    if newest > head.number:
        problem = (
            f"Line {head.number + 1} and those after it were inserted behind the head, which is line {head.number}."
        )
        return ChainReport(0, head, waiting_count, head.number + 1, problem)
    for entry in _entries_up_to(head.number):
        if problem := _problem_of(entry, last):
            return ChainReport(last.number, head, waiting_count, last.number + 1, problem)
        assert entry.number is not None
        last = Anchor(entry.number, entry.digest)
        if remembered and remembered.number == last.number and remembered != last:
            problem = f"Line {last.number} is not the one whose digest you remembered: the chain was written anew up to there."
            return ChainReport(last.number, head, waiting_count, last.number, problem)
    problem = _problem_of_end(last, head, remembered)
    return ChainReport(last.number, head, waiting_count, last.number + 1 if problem else None, problem)


def _entries_up_to(number: int) -> Iterator[AuditEntry]:
    return AuditEntry.objects.filter(number__lte=number).order_by("number").iterator(chunk_size=_CHUNK_SIZE)


def _problem_of(entry: AuditEntry, last: Anchor) -> str:
    """Why the line does not follow the `last` one; empty: it does."""
    assert entry.number is not None
    expected = last.number + 1
    if entry.number != expected:
        return f"Line {expected} was removed: line {last.number} is followed by line {entry.number}."
    genuine = digest_of(entry, number=entry.number, previous=entry.previous)
    if not hmac.compare_digest(genuine, entry.digest):
        return f"Line {expected} was changed or inserted: its digest is not that of what it says."
    if entry.previous != last.digest:
        return f"Line {expected} follows another line {last.number} than the one that is there, which was put in its place."
    return ""


def _problem_of_end(last: Anchor, head: Anchor, remembered: Anchor | None) -> str:
    if last != head:
        return f"Line {last.number + 1} and those after it were removed: the head is line {head.number}, the last line is {last.number}."
    if remembered and remembered.number > last.number:
        return f"Line {last.number + 1} and those after it were removed: you remembered line {remembered.number}, and the head says {last.number}."
    return ""
