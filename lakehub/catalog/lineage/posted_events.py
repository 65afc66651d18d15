"""OpenLineage events that programs post one by one: what is accepted of them, and what is kept of the runs that they are of.

Of the newest completed run of a job all is kept, and of earlier runs only which tables they wrote or dropped last: by that, the runs
that are kept say the same as all events together would in a folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lakehub.catalog.lineage import WINDOW_DAYS, TableName
from lakehub.catalog.lineage.events import COMPLETE, LineageRun, add_event, parse_event_time
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean

WINDOW = timedelta(days=WINDOW_DAYS)
MAX_TABLES = 500
"""On each side of a run."""
MAX_LINKS = 2_000
"""Of a run: its inputs by its outputs."""
MAX_WORDS = 500
"""Tables of earlier runs of a job of which it is kept whether they were written or dropped last: the newest."""
MAX_NAMESPACE, MAX_NAME, MAX_RUN_ID = 200, 500, 100
"""Bytes of UTF-8: a key of a database is no longer."""
EVENT_TYPES = ("START", "RUNNING", COMPLETE, "ABORT", "FAIL", "OTHER")
FAILED_TYPES = ("ABORT", "FAIL")
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class PostedEvent:
    """`at`: never later than when it was posted, so that a wrong clock does not hold its job up."""

    at: datetime
    is_failure: bool
    run: LineageRun
    """What it alone says."""

    @property
    def has_tables(self) -> bool:
        return bool(self.run.inputs or self.run.outputs)


@dataclass
class PostedState:
    """A run by all its events so far. `words`: tables that earlier runs of its job wrote or dropped, when, and whether dropped."""

    run: LineageRun
    words: dict[TableName, tuple[datetime, bool]] = field(default_factory=dict)

    @property
    def tables(self) -> frozenset[TableName]:
        """All that it says something of."""
        return frozenset((*self.run.inputs, *self.run.outputs, *self.words))

    @property
    def drops(self) -> bool:
        return any(self.run.outputs.values()) or any(dropped for _, dropped in self.words.values())

    @property
    def meaning(self) -> object:
        """The same where nothing follows but a later time."""
        return (self.run.inputs, self.run.outputs, {table: dropped for table, (_, dropped) in self.words.items()})

    def runs(self, *, since: datetime) -> Iterator[LineageRun]:
        """As `snapshot_of_runs` takes them: earlier runs tell of no input, so nothing is made from anything by them."""
        yield self.run
        for table, (at, dropped) in self.words.items():
            if at > since:
                yield LineageRun("", self.run.job, at, outputs={table: dropped})

    def dump(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "inputs": [[*_pair(table), one_to_one] for table, one_to_one in self.run.inputs.items()],
            "outputs": [[*_pair(table), dropped] for table, dropped in self.run.outputs.items()],
            "words": [[*_pair(table), at.isoformat(), dropped] for table, (at, dropped) in self.words.items()],
        }

    @classmethod
    def load(
        cls, run_id: str, job: tuple[str, str], completed_at: datetime | None, dumped: Mapping[str, Any]
    ) -> PostedState:
        inputs, outputs = (
            {TableName(namespace, name): flag for namespace, name, flag in dumped[side]}
            for side in ("inputs", "outputs")
        )
        words = {
            TableName(namespace, name): (datetime.fromisoformat(at), dropped)
            for namespace, name, at, dropped in dumped["words"]
        }
        return cls(LineageRun(run_id, job, completed_at, inputs, outputs), words)


def parse_posted_event(body: object, *, now: datetime) -> PostedEvent | None:
    """None: an event of a dataset or of a job, without a run, which says nothing that is used. Raises Refused."""
    if not isinstance(body, dict):
        raise Refused(f"The body is {_kind(body)}: send one OpenLineage event, a JSON object.")
    if "run" not in body and "eventType" not in body and ("dataset" in body or "job" in body):
        return None
    problems = dict(_problems(body))
    if problems:
        raise Refused.for_fields(problems)
    runs: dict[str, LineageRun] = {}
    add_event(runs, body)
    (run,) = runs.values()
    at = min(parse_event_time(body["eventTime"]), now)
    if run.ended_at is not None:
        run.ended_at = at
    return PostedEvent(at, body.get("eventType") in FAILED_TYPES, run)


def merge_event(state: PostedState | None, event: PostedEvent) -> PostedState:
    """What the events of the run say together. Raises Refused where that is too much."""
    if state is None:
        state = PostedState(LineageRun(event.run.number, event.run.job))
    merged = deepcopy(state)
    for mine, theirs in ((merged.run.inputs, event.run.inputs), (merged.run.outputs, event.run.outputs)):
        for table, flag in theirs.items():
            mine[table] = mine.get(table, False) or flag
    merged.run.ended_at = max(filter(None, (state.run.ended_at, event.run.ended_at)), default=None)
    _require_bounds(merged.run)
    return merged


def newest_of(first: PostedState, second: PostedState) -> PostedState:
    """Of two completed runs of a job the newer one, with what the other wrote or dropped."""
    older, newer = sorted((first, second), key=lambda state: (state.run.ended_at or _NEVER, state.run.number))
    words = dict(newer.words)
    for table, word in (*older.words.items(), *_words_of(older.run)):
        if table not in newer.run.outputs:
            words[table] = max(words.get(table, word), word)
    newest = sorted(words.items(), key=lambda item: item[1], reverse=True)[:MAX_WORDS]
    return PostedState(newer.run, dict(sorted(newest)))


def _words_of(run: LineageRun) -> Iterator[tuple[TableName, tuple[datetime, bool]]]:
    for table, dropped in run.outputs.items():
        if run.ended_at is not None:
            yield table, (run.ended_at, dropped)


def _require_bounds(run: LineageRun) -> None:
    """Also of several events together."""
    links = len(run.inputs) * len(run.outputs)
    fields = {
        side: f"Run {run.number} has {len(tables)} {side}, and at most {MAX_TABLES} are taken: split the job."
        for side, tables in (("inputs", run.inputs), ("outputs", run.outputs))
        if len(tables) > MAX_TABLES
    }
    if fields:
        raise Refused.for_fields(fields)
    if links > MAX_LINKS:
        raise Refused.for_fields(
            {
                "outputs": f"Run {run.number} has {len(run.inputs)} inputs and {len(run.outputs)} outputs, {links} links, "
                f"and at most {MAX_LINKS} are taken: split the job."
            }
        )


def _problems(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind = body.get("eventType")
    if kind is not None and kind not in EVENT_TYPES:
        hint = did_you_mean(kind, EVENT_TYPES) if isinstance(kind, str) and len(kind) < 20 else ""
        yield "eventType", f"eventType is {_shown(kind)}: write one of {', '.join(EVENT_TYPES)}.{hint}"
    yield from _time_problems(body.get("eventTime"))
    run, job = body.get("run"), body.get("job")
    yield from _text_problems("run.runId", run.get("runId") if isinstance(run, dict) else None, MAX_RUN_ID)
    yield from _name_problems("job", job)
    for side in ("inputs", "outputs"):
        yield from _side_problems(side, body.get(side))


def _time_problems(at: object) -> Iterator[tuple[str, str]]:
    wanted = "write a time with an offset, such as 2026-11-30T08:00:00Z."
    if not isinstance(at, str):
        yield "eventTime", f"eventTime is {_shown(at)}: {wanted}"
        return
    try:
        parse_event_time(at)
    except ValueError:
        yield "eventTime", f"eventTime is {_shown(at)}: {wanted}"


def _side_problems(side: str, tables: object) -> Iterator[tuple[str, str]]:
    """The first of each side."""
    if tables is None:
        return
    if not isinstance(tables, list):
        yield side, f"{side} is {_kind(tables)}: write a list of tables, each with a namespace and a name."
        return
    if len(tables) > MAX_TABLES:
        yield side, f"{side} has {len(tables)} tables, and at most {MAX_TABLES} are taken: split the job."
        return
    for place, table in enumerate(tables):
        problems = [*_name_problems(f"{side}[{place}]", table), *_facet_problems(f"{side}[{place}]", table)]
        if problems:
            yield problems[0]
            return


def _name_problems(where: str, named: object) -> Iterator[tuple[str, str]]:
    if not isinstance(named, dict):
        yield where, f"{where} is {_kind(named)}: write an object with a namespace and a name."
        return
    yield from _text_problems(f"{where}.namespace", named.get("namespace"), MAX_NAMESPACE)
    yield from _text_problems(f"{where}.name", named.get("name"), MAX_NAME)


def _facet_problems(where: str, table: object) -> Iterator[tuple[str, str]]:
    facets = table.get("facets") if isinstance(table, dict) else None
    used: Iterable[object] = (
        (facets.get("lakehub"), facets.get("lifecycleStateChange")) if isinstance(facets, dict) else (facets,)
    )
    if any(facet is not None and not isinstance(facet, dict) for facet in used):
        yield (
            f"{where}.facets",
            f"{where}.facets is not an object of objects: write facets as OpenLineage does, or leave them out.",
        )


def _text_problems(where: str, text: object, longest: int) -> Iterator[tuple[str, str]]:
    if not isinstance(text, str) or not text.strip():
        yield where, f"{where} is {_shown(text)}: write a text that is not empty."
    elif len(text.encode()) > longest:
        yield where, f"{where} is {len(text.encode())} bytes long, {_shown(text)}: write at most {longest} bytes."


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool) else _kind(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", type(None): "missing or null"}
    return kinds.get(type(value), "a number or a boolean")


def _pair(table: TableName) -> tuple[str, str]:
    return table.namespace, table.name
