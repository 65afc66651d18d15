"""Lineage from a folder of event files (`.json` holds one event or a list, `.jsonl` one a line, `.yaml` a list), without Spark.

An event is OpenLineage's RunEvent; we read `eventType`, `eventTime`, `run.runId`, `job`, and of `inputs` and `outputs` the
namespace, the name and two facets: `lifecycleStateChange` (DROP) and our own `lakehub: {"one_to_one": true}` of an input
whose every row gives one row of the output.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from lakehub.catalog.lineage import WINDOW_DAYS, LineageSnapshot, LineageUnavailable, TableLink, TableName

_ENDINGS = (".json", ".jsonl", ".yaml", ".yml")
COMPLETE = "COMPLETE"


class EventFolderSource:
    def __init__(self, uri: str) -> None:
        self._folder = Path(unquote(urlsplit(uri).path))

    def read(self, *, now: datetime) -> LineageSnapshot:
        if not self._folder.is_dir():
            raise LineageUnavailable(
                f"There is no folder {self._folder}: LAKEHUB_LINEAGE_URI names the events' folder."
            )
        files = sorted(file for file in self._folder.rglob("*") if file.suffix in _ENDINGS)
        return snapshot_of_events((event for file in files for event in _read_events(file)), now=now)


@dataclass
class LineageRun:
    """What the events of one run said together: the first often names the inputs, the last the outputs."""

    number: str
    job: tuple[str, str]
    ended_at: datetime | None = None
    inputs: dict[TableName, bool] = field(default_factory=dict)
    outputs: dict[TableName, bool] = field(default_factory=dict)
    """By table: of inputs, whether they map one to one; of outputs, whether they were dropped."""


def snapshot_of_events(events: Iterable[dict[str, Any]], *, now: datetime) -> LineageSnapshot:
    """Of each job its newest run that completed; of each table whether it was written or dropped last."""
    runs: dict[str, LineageRun] = {}
    for event in events:
        add_event(runs, event)
    return snapshot_of_runs(
        run for run in runs.values() if run.ended_at and run.ended_at > now - timedelta(days=WINDOW_DAYS)
    )


def snapshot_of_runs(runs: Iterable[LineageRun]) -> LineageSnapshot:
    """The same of runs that have completed, each with its `ended_at`."""
    recent = sorted(runs, key=lambda run: (run.ended_at or datetime.min.replace(tzinfo=UTC), run.number))
    newest = {run.job: run for run in recent}
    links: dict[tuple[TableName, TableName], bool] = {}
    for run in newest.values():
        for downstream in (table for table, dropped in run.outputs.items() if not dropped):
            for upstream, one_to_one in run.inputs.items():
                if upstream != downstream:
                    links[upstream, downstream] = links.get((upstream, downstream), False) or one_to_one
    last_word = {table: dropped for run in recent for table, dropped in run.outputs.items()}
    gone = frozenset(table for table, dropped in last_word.items() if dropped)
    alive = (TableLink(*ends, one_to_one) for ends, one_to_one in links.items() if gone.isdisjoint(ends))
    return LineageSnapshot(frozenset(alive), gone)


def add_event(runs: dict[str, LineageRun], event: dict[str, Any]) -> None:
    try:
        job = (str(event["job"]["namespace"]), str(event["job"]["name"]))
        number = str(event["run"]["runId"])
        run = runs.setdefault(number, LineageRun(number, job))
        at = parse_event_time(str(event["eventTime"]))
        for name, facet in _tables(event, "inputs", "lakehub"):
            run.inputs[name] = run.inputs.get(name, False) or facet.get("one_to_one") is True
        for name, facet in _tables(event, "outputs", "lifecycleStateChange"):
            run.outputs[name] = run.outputs.get(name, False) or facet.get("lifecycleStateChange") == "DROP"
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        event_text = json.dumps(event, default=str)[:200]
        raise LineageUnavailable(
            f"This is no lineage event ({type(problem).__name__}: {problem}): {event_text}. "
            "It needs eventType, eventTime, run.runId, job.namespace and job.name, as in OpenLineage."
        ) from problem
    if event.get("eventType") == COMPLETE:
        run.ended_at = max(filter(None, (run.ended_at, at)))


def parse_event_time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"eventTime {text} has no offset")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"eventTime {text} is not between the years 1 and 9999 in UTC") from None


def _tables(event: dict[str, Any], side: str, facet: str) -> Iterator[tuple[TableName, dict[str, Any]]]:
    for table in event.get(side) or ():
        yield TableName(str(table["namespace"]), str(table["name"])), (table.get("facets") or {}).get(facet) or {}


class _PlainLoader(yaml.SafeLoader):
    """Without aliases: a few lines of them stand for more text than there is memory."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it has an alias (*name), and those are not read; write out what it stands for.")
        return super().compose_node(parent, index)


def _read_events(file: Path) -> list[dict[str, Any]]:
    try:
        text = file.read_text()
        if file.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        parsed = json.loads(text) if file.suffix == ".json" else yaml.load(text, _PlainLoader)  # noqa: S506 - a safe one
    except (OSError, ValueError, yaml.YAMLError) as problem:
        raise LineageUnavailable(f"{file} cannot be read: {problem}") from problem
    except RecursionError as problem:
        raise LineageUnavailable(f"{file} cannot be read: it is nested too deep.") from problem
    return parsed if isinstance(parsed, list) else [parsed]
