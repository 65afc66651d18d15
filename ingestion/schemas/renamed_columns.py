"""What the tap has noted of columns with another name, by subject. A note is of one load of the dataset: rows of an earlier one have reference keys that
may not be compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from django.db import transaction

from ingestion.capture.binlog.column_changes import ColumnChange
from ingestion.capture.tap.rename_notes import RenameNotes
from ingestion.domain.schema import Schema
from ingestion.models import Capture


def notes_of(capture: Capture | None) -> RenameNotes:
    return RenameNotes() if capture is None else RenameNotes(**capture.column_renames)


def note_changes(subject: str, sequence: int, changes: Sequence[ColumnChange]) -> None:
    _change(subject, lambda notes: notes.noted(sequence, changes))


def seen_renames(subject: str, stored: Schema, columns: Schema) -> dict[str, str]:
    """By new name. See `RenameNotes.seen`."""
    return notes_of(Capture.objects.filter(topic=subject).first()).seen(stored, columns)


def keep_renames(subject: str, columns: Schema, origins: Mapping[str, str]) -> None:
    _change(subject, lambda notes: notes.kept(columns, origins))


def _change(subject: str, change: Callable[[RenameNotes], RenameNotes]) -> None:
    with transaction.atomic():
        capture = Capture.objects.select_for_update(of=("self",)).filter(topic=subject).first()
        if capture is None:
            return
        before = notes_of(capture)
        after = change(before)
        if after != before:
            capture.column_renames = asdict(after)
            capture.save(update_fields=["column_renames"])
