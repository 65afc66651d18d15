"""Null in place of a value that does not fit, where a dataset wants that (`on_misfit`): the event is encoded without it, and carries a note of what it was.

The note travels in the metadata of the event, so one message is one event, and whoever reads it puts the note into the error table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ingestion.domain.merging.events import ChangeEvent, Operation
from ingestion.heatpipe.broken_message import Defect, UnfitEvent
from ingestion.heatpipe.encoder import Encoder, Mended, Message
from ingestion.heatpipe.unencoded_row import UnencodedRow

NOTE = "null instead"
"""Such reasons begin with it."""
REQUIRED_OPTION = "required_columns"
NoteOf = Callable[[UnfitEvent], UnencodedRow]
"""The row as it would be put aside."""


def nulls_misfits(options: Mapping[str, str]) -> bool:
    """As a source is told of it."""
    return REQUIRED_OPTION in options


def required_columns(options: Mapping[str, str]) -> frozenset[str] | None:
    """Without which there is no row. None: no misfit becomes null."""
    return frozenset(json.loads(options[REQUIRED_OPTION])) if nulls_misfits(options) else None


def as_option(required: frozenset[str] | None) -> dict[str, str]:
    return {} if required is None else {REQUIRED_OPTION: json.dumps(sorted(required))}


def null_reason(reasons: Sequence[str]) -> str:
    return f"{NOTE}: {'; '.join(reasons)}"


def encode_or_null(
    encoder: Encoder,
    event: ChangeEvent,
    misfits: Mapping[str, str],
    note_of: NoteOf,
    *,
    required: frozenset[str] | None,
    source_column: str = "",
) -> Message:
    """`misfits`: by column why it was null before. `required`: the columns without which there is no row; None: no misfit becomes null. Raises UnfitEvent."""
    reasons = dict(misfits)
    while True:
        mended = None
        if reasons and event.operation is not Operation.DELETE:
            problem = UnfitEvent(Defect.TYPE, null_reason([*reasons.values()]), next(iter(reasons)))
            mended = Mended(str(problem), replace(note_of(problem), is_nulled=True).to_json())
        try:
            return encoder.encode(event, source_column=source_column, mended=mended)
        except UnfitEvent as problem:
            name = problem.field
            if (
                required is None
                or name in required
                or event.values.get(name) is None
                or problem.defect is not Defect.TYPE
            ):
                raise
            reasons[name] = str(problem)
            event = replace(event, values={**event.values, name: None})
