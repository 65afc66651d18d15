"""A schema as it is typed, with the column that is to be added to it, and what comes of looking at both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.http import QueryDict

from ingestion.schemas.avro_text import MAX_BYTES
from ingestion.schemas.subjects.added_column import NewColumn, with_column
from ingestion.schemas.subjects.proposals import Proposal, look_at_proposal
from lakehub.kernel.errors import Refused

EXAMPLE = """{
  "type": "record",
  "name": "Row",
  "fields": [
    {"name": "id", "type": "long", "doc": "What it is"}
  ]
}"""
SIZE_HINT = f"At most {MAX_BYTES // 1024} KiB."
BLANK_COLUMN = NewColumn("", "string")


@dataclass(frozen=True)
class ProposalForm:
    """`team`: of a new subject, by its name. `errors` by field: subject, team, schema, and those of the column with `column_` before."""

    subject: str
    text: str
    team: str = ""
    column: NewColumn = BLANK_COLUMN
    errors: Mapping[str, str] = field(default_factory=dict)


def proposal_form_from(posted: QueryDict, *, subject: str = "") -> ProposalForm:
    """`subject`: of a version of a subject that is there."""
    column = NewColumn(
        posted.get("column_name", "").strip(),
        posted.get("column_type", "").strip() or "string",
        "column_nullable" in posted,
        posted.get("column_doc", "").strip(),
        posted.get("column_default", "").strip(),
    )
    if "column_name" not in posted:
        column = BLANK_COLUMN
    # Browsers send each end of a line as two characters.
    text = posted.get("schema", "").replace("\r\n", "\n").strip()
    return ProposalForm(subject or posted.get("subject", "").strip(), text, posted.get("team", "").strip(), column)


def with_its_column(form: ProposalForm) -> ProposalForm:
    """With the column in the schema, and an empty form for the next; or with what is wrong."""
    try:
        return replace(form, text=with_column(form.text, form.column), column=BLANK_COLUMN)
    except Refused as refused:
        of_column = {f"column_{name}": text for name, text in refused.fields.items()}
        return replace(form, errors=of_column or {"schema": str(refused)})


def looked_at(form: ProposalForm) -> tuple[ProposalForm, Proposal | None]:
    """None: what is wrong is in the form."""
    if form.errors:
        return form, None
    try:
        return form, look_at_proposal(form.subject, form.text)
    except Refused as refused:
        return replace(form, errors=refused.fields or {"schema": str(refused)}), None
