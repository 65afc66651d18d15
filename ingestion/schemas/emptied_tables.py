"""When the table of a captured dataset was emptied last, by its subject: of one load, because rows of an earlier one have reference keys that may not be
compared with it.
"""

from __future__ import annotations

from ingestion.models import Capture


def note_emptied(subject: str, sequence: int) -> None:
    """In the transaction of this number. One that was noted before is noted once, and an earlier one is no news."""
    Capture.objects.filter(topic=subject, emptied_sequence__lt=sequence).update(emptied_sequence=sequence)
