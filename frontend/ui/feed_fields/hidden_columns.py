"""The columns of a captured table that are left out, hashed or masked, as fields of a form with a name on each line, and as facts to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.http import QueryDict

from lakehub.catalog.datasets.hidden_columns import HASHED, HIDING_FIELDS, LEFT_OUT, MASKED, hidden_names
from lakehub.catalog.models import Dataset

_FIELDS = {
    LEFT_OUT: ("Columns left out", "They do not come into the lake."),
    HASHED: ("Columns hashed", "A text with a key of this installation (HMAC-SHA-256); equal values stay equal."),
    MASKED: ("Columns masked", "They are null in the lake."),
}


@dataclass(frozen=True)
class HiddenColumnsField:
    name: str
    label: str
    hint: str
    value: str
    error: str


@dataclass(frozen=True)
class HiddenColumnsFact:
    label: str
    columns: Sequence[str]


class FormWithHiddenColumns:
    """`values`: what was typed, by the names of the fields; `errors`: by what the use case refuses."""

    values: Mapping[str, str]
    errors: Mapping[str, str]

    @property
    def hidden_columns(self) -> list[HiddenColumnsField]:
        return [
            HiddenColumnsField(name, label, hint, self.values.get(name, ""), self.errors.get(name, ""))
            for name, (label, hint) in _FIELDS.items()
        ]

    @property
    def opens_hidden_columns(self) -> bool:
        """Whether the fields are shown at once: some are set, or wrong."""
        return any(each.value or each.error for each in self.hidden_columns)


def hidden_column_facts(dataset: Dataset) -> list[HiddenColumnsFact]:
    """Those that there are."""
    hidden = hidden_names(dataset.feed_or_none)
    return [HiddenColumnsFact(label, hidden[name]) for name, (label, _) in _FIELDS.items() if hidden[name]]


def fields_of_dataset(dataset: Dataset) -> dict[str, str]:
    return {name: "\n".join(columns) for name, columns in hidden_names(dataset.feed_or_none).items()}


def fields_from_post(posted: QueryDict) -> dict[str, str]:
    return {name: posted.get(name, "").replace("\r\n", "\n") for name in HIDING_FIELDS}


def names_of_fields(values: Mapping[str, str]) -> dict[str, list[str]]:
    """As the use case takes them. A name may begin with a space, and ends with none."""
    return {
        name: [line.rstrip() for line in values.get(name, "").split("\n") if line.strip()] for name in HIDING_FIELDS
    }
