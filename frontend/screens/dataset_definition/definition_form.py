"""What was said at onboarding, as a form that changes it: what differs, as the use case takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from lakehub.catalog.models import MAX_COPIES, PARTITION_FIELDS, Dataset
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest, UpstreamRequest
from lakehub.catalog.onboarding.redefine import request_of_dataset

TEXT_FIELDS = ("team", "connection", "table", "upstream", "one_to_one", "version", *PARTITION_FIELDS)


@dataclass(frozen=True)
class DefinitionForm:
    """The fields as typed, and why some cannot be used."""

    values: Mapping[str, str]
    data_centers: tuple[str, ...]
    copies: tuple[CopyRequest, ...]
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def hidden(self) -> Iterator[tuple[str, str]]:
        """All of it once more, for the form that confirms."""
        yield from self.values.items()
        for center in self.data_centers:
            yield "data_centers", center
        for copy in self.copies:
            yield f"copy_connection.{copy.data_center}", copy.connection
            yield f"copy_table.{copy.data_center}", copy.table


def form_of_dataset(dataset: Dataset) -> DefinitionForm:
    """Of what no connection reads, the owner and the upstream are what can be changed."""
    known = request_of_dataset(dataset)
    values = {name: str(getattr(known, name)) for name in ("team", "connection", "table", *PARTITION_FIELDS)}
    values |= {"upstream": _names(known.upstream, False), "one_to_one": _names(known.upstream, True)}
    values["version"] = str(dataset.metadata_version)
    return DefinitionForm(values, tuple(known.data_centers), tuple(known.copies))


def _names(upstream: Sequence[UpstreamRequest], one_to_one: bool) -> str:
    return ", ".join(request.dataset for request in upstream if request.one_to_one is one_to_one)


def form_from_post(posted: QueryDict) -> DefinitionForm:
    values = {name: posted.get(name, "").strip() for name in TEXT_FIELDS}
    centers = tuple(posted.getlist("data_centers")[:MAX_COPIES])
    return DefinitionForm(values, centers, tuple(_copies(posted, centers, values)))


def _copies(posted: QueryDict, centers: Sequence[str], values: Mapping[str, str]) -> Iterator[CopyRequest]:
    """Each data center's place, where one is named; the rest reads where the connection and the table say."""
    for center in centers:
        connection, table = (posted.get(f"{name}.{center}", "").strip() for name in ("copy_connection", "copy_table"))
        if connection or table:
            yield CopyRequest(center, connection or values["connection"], table or values["table"])


def changed_fields(dataset: Dataset, form: DefinitionForm) -> dict[str, Any]:
    """What differs from the dataset as it is."""
    known, submitted = request_of_dataset(dataset), _submitted(form)
    names = submitted if known.connection else ("team", "upstream")
    changed = {name: submitted[name] for name in names if submitted[name] != getattr(known, name)}
    if "copies" in changed and not dataset.ingested:
        changed["copies"] = (*form.copies, *_back_to_the_table(known, form))
    return changed


def changed_connections(dataset: Dataset, changes: Mapping[str, Any]) -> set[str]:
    """Those through which something is read by the change that is not read by them now; a copy that stays is not among them."""
    known = set(request_of_dataset(dataset).copies)
    copies = {copy.connection for copy in changes.get("copies", ()) if copy not in known}
    return copies | ({changes["connection"]} if "connection" in changes else set())


def _submitted(form: DefinitionForm) -> dict[str, Any]:
    texts = {name: form.values[name] for name in ("team", "connection", "table", *PARTITION_FIELDS)}
    upstream = [UpstreamRequest(name, False) for name in _split(form.values["upstream"])]
    upstream += [UpstreamRequest(name, True) for name in _split(form.values["one_to_one"])]
    return texts | {
        "grain": texts["grain"] or "none",
        "data_centers": tuple(sorted(form.data_centers)),
        "copies": tuple(sorted(form.copies, key=lambda copy: copy.data_center)),
        "upstream": tuple(sorted(upstream, key=lambda request: request.dataset)),
    }


def _back_to_the_table(known: OnboardingRequest, form: DefinitionForm) -> Iterator[CopyRequest]:
    """Copies that lay elsewhere, and whose fields were emptied."""
    named = {copy.data_center for copy in form.copies}
    for copy in known.copies:
        if copy.data_center in form.data_centers and copy.data_center not in named:
            yield CopyRequest(copy.data_center, form.values["connection"], form.values["table"])


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
