"""The audit log's chain: each line has a number and a digest that covers the line and the digest of the one before.

A line is written with its change and joins the chain right after the commit, in a transaction of its own that locks the head
only: so changes wait neither for each other nor, in another order, for ever. A process that dies in between leaves a line
without a number; whoever writes next, or the hourly sweep, chains it.

The digest is an HMAC-SHA-256 under the instance's encryption key of `canonical_form`: who can write to the database but does
not have the key can change, remove or insert no line unseen.
"""

from __future__ import annotations

import json
from datetime import UTC

from django.db import connection, transaction

from lakehub.accounts.models import AuditEntry, AuditHead
from lakehub.db.bulk_update import bulk_update
from lakehub.db.encrypted_fields import keyed_digest

BATCH_SIZE = 500
"""Lines that one transaction chains."""


def extend_after_commit() -> None:
    """Call it in the transaction that has written a line; once is enough for all of its lines."""
    if not any(hook[1] is _extend for hook in connection.run_on_commit):
        transaction.on_commit(_extend, robust=True)


def extend() -> int:
    """Chains every committed line that is not yet in the chain, in the order of their keys. The number of lines."""
    lines = 0
    while (batch := _extend_once()) == BATCH_SIZE:
        lines += batch
    return lines + batch


def _extend() -> None:
    extend()


def canonical_form(entry: AuditEntry, *, number: int, previous: str) -> str:
    """What the digest covers: a JSON list without spaces, keys sorted, not ASCII as \\u escapes, time in UTC with microseconds."""
    at = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    parts = [number, previous, at, entry.actor, entry.action, entry.subject, entry.detail, entry.team_id]
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))


def digest_of(entry: AuditEntry, *, number: int, previous: str) -> str:
    return keyed_digest(canonical_form(entry, number=number, previous=previous))


@transaction.atomic
def _extend_once() -> int:
    head = _locked_head()
    # Read back from the database, so that what is covered is what will be read.
    entries = list(AuditEntry.objects.filter(number=None).order_by("pk")[:BATCH_SIZE])
    if not entries:
        return 0
    for entry in entries:
        entry.number, entry.previous = head.number + 1, head.digest
        entry.digest = digest_of(entry, number=entry.number, previous=entry.previous)
        head.number, head.digest = entry.number, entry.digest
    bulk_update(entries, ["number", "previous", "digest"])
    head.save(update_fields=["number", "digest"])
    return len(entries)


def _locked_head() -> AuditHead:
    head = AuditHead.objects.select_for_update().first()
    if head is None:
        AuditHead.objects.bulk_create([AuditHead()], ignore_conflicts=True)
        head = AuditHead.objects.select_for_update().get()
    return head
