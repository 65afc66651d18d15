"""Checks of catalog input against the real storage; problems are gathered by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model

from lakehub.accounts.models import Team
from lakehub.catalog.metadata import Drawn, KeyEvidence, MetadataUnavailable, NoSuchTable, TableMetadata
from lakehub.catalog.models import Connection, DataCenter, Dataset, DatasetKind
from lakehub.catalog.ports import overrides_check
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import HintBudget, did_you_mean

NamedModel = TypeVar("NamedModel", Team, Connection, DataCenter, Dataset)


class Problems:
    """What is wrong, by field. `hints`: for unknown names, where others of the same request share it."""

    def __init__(self, hints: HintBudget | None = None) -> None:
        self._by_field: dict[str, list[str]] = {}
        self.hints = hints or HintBudget()

    def add(self, name: str, why: str) -> None:
        self._by_field.setdefault(name, []).append(why)

    @property
    def texts(self) -> list[str]:
        return [why for reasons in self._by_field.values() for why in reasons]

    @property
    def fields(self) -> dict[str, str]:
        return {name: " ".join(why) for name, why in self._by_field.items()}

    def raise_if_any(self) -> None:
        if self._by_field:
            raise Refused.for_fields(self.fields)


def find_by_name(problems: Problems, name: str, model: type[NamedModel], wanted_name: str) -> NamedModel | None:
    """The object with this name, or a problem with the nearest name while `problems` have hints left."""
    live = model._default_manager.filter(offboarded_at=None) if model is Dataset else model._default_manager.all()
    instance = live.filter(name=wanted_name).first()
    if instance is None:
        kind = str(model._meta.verbose_name)
        near = did_you_mean(wanted_name, live.values_list("name", flat=True)[:1000]) if problems.hints.take() else ""
        problems.add(name, f"There is no {kind} `{wanted_name}`.{near}")
    return instance


def check_kind(problems: Problems, kind: str) -> None:
    if kind not in DatasetKind.values:
        problems.add("kind", f"There is no kind `{kind}`.{did_you_mean(kind, DatasetKind.values)}")


def check_overrides(
    problems: Problems, overrides: Mapping[str, object], tier: int, zone: str, *, name: str = "overrides"
) -> None:
    """What cannot be read would be noticed by whoever reads it later, and not by whoever wrote it."""
    for why in overrides_check()(overrides, tier=tier, zone=zone):
        problems.add(name, why)


MAX_DURATION = timedelta(days=366)


def check_duration(problems: Problems, name: str, length: timedelta | None, *, least: timedelta = timedelta()) -> None:
    """A length of time that can be counted with: not below `least`, and not beyond a year."""
    if length is not None and not least <= length <= MAX_DURATION:
        problems.add(name, f"{length} is no length of time to go by: give {least} to {MAX_DURATION.days} days.")


def read_table_metadata(problems: Problems, connection: Connection, table: str) -> TableMetadata | None:
    try:
        return connection.storage.describe(table)
    except MetadataUnavailable as error:
        problems.add("table", f"{error}{_empty_connection(connection) if isinstance(error, NoSuchTable) else ''}")
        return None


def _empty_connection(connection: Connection) -> str:
    """That it lists no table at all, with the remedy; empty where it lists some, or cannot be asked."""
    try:
        return (
            ""
            if connection.storage.tables(1)
            else f" {connection.name} lists no table at all. {connection.storage.empty_hint}"
        )
    except MetadataUnavailable:
        return ""


def read_key_evidence(
    problems: Problems, name: str, key: Sequence[str], connection: Connection, table: str
) -> KeyEvidence | None:
    """How well the key holds in the real rows. None where there is no key, or it cannot be read, which is a problem."""
    if not key:
        return None
    try:
        return connection.storage.key_evidence(table, key)
    except MetadataUnavailable as error:
        problems.add(name, str(error))
        return None


def check_record_key(problems: Problems, name: str, key: Sequence[str], evidence: KeyEvidence) -> None:
    """What names the records of the lake is unique and never null; a table that is only monitored may be as it is."""
    looked_at = "" if evidence.drawn is Drawn.ALL else f" ({evidence.drawn_text})"
    if evidence.nulls:
        columns = ", ".join(f"{count:,} in `{column}`" for column, count in evidence.null_columns.items())
        problems.add(
            name,
            f"The key {', '.join(key)} has a null in {evidence.nulls:,} of {evidence.rows:,} rows{looked_at}"
            f"{f': {columns}' if columns else ''}. A row without a key is not brought into the lake: choose columns that are never "
            "null, or monitor the table where it lies.",
        )
    if evidence.repeats:
        problems.add(
            name,
            f"The record key {', '.join(key)} names {evidence.distinct:,} of {evidence.rows:,} rows{looked_at}: it must be unique. "
            "Name a `record_key` that is, or monitor the table where it lies.",
        )


def save_validated(thing: Model) -> None:
    try:
        thing.full_clean()
    except ValidationError as error:
        raise Refused.for_fields({field: " ".join(why) for field, why in error.message_dict.items()}) from error
    thing.save()
