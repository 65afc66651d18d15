"""Runs of ingestion that somebody else schedules: asked for, and looked at until they have ended. Nothing here waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from lakehub_client.client import Client, LakehubError

CONFLICT = 409
_NOT_BEGUN = ("queued", "waiting", "paused")
_OPEN = ("running", "paused")
"""Backfills that have not ended."""


@dataclass(frozen=True)
class RequestedRun:
    """A run, or a backfill in chunks, by its number."""

    dataset: str
    number: int
    is_backfill: bool = False

    def __str__(self) -> str:
        return f"{'Backfill' if self.is_backfill else 'Run'} {self.number} of {self.dataset}"

    def as_fields(self) -> dict[str, Any]:
        """As JSON has it; `RequestedRun(**fields)` is the same again."""
        return asdict(self)


@dataclass(frozen=True)
class Outcome:
    """`is_over`: it has ended. `error`: why it has not done what was asked for; empty where it has, and as long as it goes on. `note`: how far it is."""

    is_over: bool
    error: str
    note: str


def ask_for_run(client: Client, dataset: str, *, data_center: str = "") -> RequestedRun | None:
    """An incremental run that reads what is there now. One that has not begun yet is that as well, whoever has asked for it.

    None: one is at work that may have read before, or too many wait: ask again. Raises LakehubError.
    """
    try:
        return RequestedRun(dataset, int(client.request_run(dataset, data_center=data_center)["id"]))
    except LakehubError as problem:
        if problem.status != CONFLICT:
            raise
    waiting = (run for run in client.runs(dataset) if _is_such_a_run(run, data_center))
    return next((RequestedRun(dataset, int(run["id"])) for run in waiting), None)


def _is_such_a_run(run: Mapping[str, Any], data_center: str) -> bool:
    return run["kind"] == "incremental" and run["state"] in _NOT_BEGUN and data_center in ("", run["data_center"])


def ask_for_backfill(
    client: Client,
    dataset: str,
    *,
    first: str = "",
    last: str = "",
    partitions: Sequence[str] = (),
    chunk_size: int | None = None,
    data_center: str = "",
) -> RequestedRun | None:
    """Of a modelled table. One that certainly has the same partitions, and of which no chunk has begun yet, is that as well: its answer may have been lost.

    None: another one is open: ask again. Raises LakehubError.
    """
    try:
        backfill = client.request_backfill(
            dataset, first=first, last=last, partitions=partitions, chunk_size=chunk_size, data_center=data_center
        )
        return RequestedRun(dataset, int(backfill["id"]), is_backfill=True)
    except LakehubError as problem:
        if problem.status != CONFLICT:
            raise
    for backfill in client.backfills(dataset):
        counts: Mapping[str, int] = backfill["partitions"]
        if (
            backfill["state"] in _OPEN
            and data_center in ("", backfill["data_center"])
            and not counts["running"] + counts["succeeded"] + counts["failed"]
            and _has_these(backfill, first, last, partitions)
        ):
            return RequestedRun(dataset, int(backfill["id"]), is_backfill=True)
    return None


def _has_these(backfill: Mapping[str, Any], first: str, last: str, partitions: Sequence[str]) -> bool:
    """For certain: it says the first, the last and how many. Of three that were named the middle one may be another one, and a range may have been named in part."""
    ends, count = (backfill["first"], backfill["last"]), backfill["partitions"]["waiting"]
    if partitions:
        return set(ends) == set(partitions) and bool(count == len(set(partitions)))
    return ends == (first, last) and bool(count == _days(first, last))


def _days(first: str, last: str) -> int | None:
    """In the range, both included. None: they are no days, so it is not known how many partitions it has."""
    try:
        return (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    except ValueError:
        return None


def look_at(client: Client, requested: RequestedRun) -> Outcome:
    """How it is now. Raises LakehubError."""
    if requested.is_backfill:
        backfill = client.backfill(requested.dataset, requested.number)
        chunks: Mapping[str, int] = backfill["chunks"]
        note = f"{backfill['state']}, {chunks['succeeded']} of {sum(chunks.values())} chunks are done, {chunks['failed']} failed"
        return _outcome(requested, backfill, note, is_over=backfill["state"] not in _OPEN)
    run = client.run(requested.dataset, requested.number)
    blocked = [f"{each['dataset']}: {each['reason']}" for each in run["blocked_by"]]
    note = f"{run['state']}{', waits for ' + '; '.join(blocked) if blocked else ''}"
    if run["attempt"] > 1 and run["error"]:
        note += f", is tried again after: {run['error']}"
    return _outcome(requested, run, note, is_over=run["state"] not in (*_NOT_BEGUN, "running"))


def _outcome(requested: RequestedRun, answer: Mapping[str, Any], note: str, *, is_over: bool) -> Outcome:
    if not is_over or answer["state"] == "succeeded":
        return Outcome(is_over, "", note)
    became = "was cancelled" if answer["state"] == "cancelled" else f"has {answer['state']}"
    return Outcome(is_over, f"{requested} {became}{': ' if answer['error'] else '.'}{answer['error']}", note)
