"""Rows whose values do not fit: written on purpose, given good values at the source or in the error table, and at rest in the lake as the source has them.

Of two kinds, in one table: a text that is none of its character set, which the tap puts aside, and a key that is an empty text, which the jobs reject."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

from django.db.models import QuerySet

from ingestion.lake.error_rows import count_errors
from ingestion.models import Commit, JobKind, JobRun, JobState
from ingestion.runs.job_specs import error_table_uri
from ingestion.runs.replays.row_choice import RowChoice, request_replay
from lakehub.catalog.models import DatasetCopy
from tests.soak.capture.onboarding import ACTOR
from tests.soak.capture.source import CapturedSource
from tests.soak.capture.tables import RIDERS

MISFIT_TABLE = RIDERS
EMPTY_KEY_COLUMN = "country"
_ROWS = 12
_NO_TEXT = "note = _greek x'FF'"
"""No letter of Greek; to whoever reads it MariaDB says `?`."""
_AS_READ = {"note": "?"}
_HAS_NO_TEXT = "HEX(note) = 'FF'"


def write_misfits(source: CapturedSource, random: Random) -> str:
    """While everybody writes, who may change them again."""
    numbers = random.sample(range(MISFIT_TABLE.numbers), _ROWS)
    source.execute("SET SESSION sql_mode = ''", *(_statement(number, random) for number in numbers))
    return f"{MISFIT_TABLE.name} gets misfits"


def _statement(number: int, random: Random) -> str:
    name, key = MISFIT_TABLE.name, MISFIT_TABLE.key_of(number)
    match random.randrange(4):
        case 0:
            columns = "country, number, note"
            return f"REPLACE INTO {name} ({columns}) SELECT {key.replace('country = ', '').replace(' AND number = ', ', ')}, _greek x'FF'"
        case 1:
            return f"UPDATE IGNORE {name} SET {MISFIT_TABLE.moved(number, random)}, {_NO_TEXT} WHERE {key}"
        case 2:
            fits = f"(note IS NULL OR NOT {_HAS_NO_TEXT})"
            return f"UPDATE IGNORE {name} SET {EMPTY_KEY_COLUMN} = '' WHERE {key} AND {fits}"
    return f"UPDATE {name} SET {_NO_TEXT} WHERE {key}"


def mend_at_source(source: CapturedSource, *, all_texts: bool) -> None:
    """When nobody else writes: each empty key, and half of the texts, so that the others are mended in the error table only."""
    name = MISFIT_TABLE.name
    source.execute(
        f"UPDATE {name} SET note = 'β' WHERE {_HAS_NO_TEXT} AND number % 4 < {4 if all_texts else 2}",
        f"UPDATE IGNORE {name} SET {EMPTY_KEY_COLUMN} = 'XX' WHERE {EMPTY_KEY_COLUMN} = ''",
        f"DELETE FROM {name} WHERE {EMPTY_KEY_COLUMN} = ''",
    )


def is_loaded(table: str) -> bool:
    """Rows that a load rejects lie in no log."""
    return Commit.objects.filter(copy__dataset__name=table).exists()


def publish_again() -> str:
    """All that was put aside, as the source says it now; older than what came since. Empty: nothing is left to do."""
    copy = DatasetCopy.objects.select_related("dataset__feed__connection", "data_center").get(
        dataset__name=MISFIT_TABLE.name
    )
    groups = [group for group in count_errors(error_table_uri(copy)).groups if group.column != EMPTY_KEY_COLUMN]
    if not groups:
        return ""
    if not _replays().exclude(state__in=(JobState.SUCCEEDED, JobState.CANCELLED)).exists():
        choice = RowChoice.of(column=groups[0].column, kind=groups[0].kind, values=_AS_READ)
        request_replay(copy, choice, asked_by=ACTOR, now=datetime.now(UTC))
    return f"{MISFIT_TABLE.name}: {sum(group.rows for group in groups)} rows are published again; {[run.error for run in _replays() if run.error]}"


def _replays() -> QuerySet[JobRun]:
    return JobRun.objects.filter(kind=JobKind.REPLAY)
