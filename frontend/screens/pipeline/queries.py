"""A pipeline: its graph with states, how far each copy is, and its runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from frontend.components.runs.failures import failure_sentence
from frontend.ui import words
from incidents.record.health import health_of
from ingestion.domain.backfills.states import ACTIONS, TRANSITIONS
from ingestion.domain.pipelines.definition import PipelineInput
from ingestion.domain.pipelines.reading import FILES, inputs_of
from ingestion.models import Backfill, BackfillChunk, JobRun, JobState, Pipeline, RefusedBatch
from ingestion.pipelines.registering import LINEAGE_SOURCE
from ingestion.runs.backfills.progress import BackfillProgress, backfill_progress, failed_chunks_of
from ingestion.runs.job_runs import with_details
from ingestion.runs.modelled_tables.decisions import is_decided
from ingestion.runs.modelled_tables.progress import MAKING_KINDS, MAX_PENDING, CopyProgress, InputProgress, progress_of
from ingestion.spark.contract.report import REFUSED
from lakehub.catalog.models import Dataset, LineageEdge

MAX_RUNS, MAX_REFUSED, MAX_BACKFILLS = 20, 20, 5
_ACTION_LABELS = {"pause": "Pause", "resume": "Resume", "cancel": "Cancel", "retry": "Try failed chunks again"}
MAX_CHAINED, MAX_LEVELS = 50, 4
"""Datasets that are shown behind the target, and how far behind."""
_MAX_PHASES = 3


@dataclass(frozen=True)
class InputNode:
    """`state` None: there is no such dataset any more. `notes`: of each copy, what waits there."""

    input: PipelineInput
    state: str | None
    notes: list[str]


@dataclass(frozen=True)
class ChainedNode:
    """`after`: what it is made from that is no direct neighbour; empty for one that reads the target itself."""

    dataset: Dataset
    state: str
    after: str


@dataclass(frozen=True)
class Graph:
    inputs: list[InputNode]
    chained: list[ChainedNode]


@dataclass(frozen=True)
class CopyRow:
    """`failure`: why the newest run failed, in a sentence; else empty. `next_look`: when it is tried again by itself."""

    progress: CopyProgress
    lag: timedelta | None
    failure: str
    next_look: datetime | None


@dataclass(frozen=True)
class RefusedRow:
    """`is_decided`: a run is about to do it."""

    batch: RefusedBatch
    is_decided: bool


@dataclass(frozen=True)
class BackfillRow:
    """`failed`: its chunks that failed, the first ones. `actions`: what its state takes, each with its label."""

    progress: BackfillProgress
    failed: list[BackfillChunk]
    actions: list[tuple[str, str]]

    @property
    def share(self) -> float:
        return self.progress.ended / self.progress.total if self.progress.total else 0.0


@dataclass(frozen=True)
class RunRow:
    """`rows`: new, changed and deleted; None where it has not told. `cost`: what it read, what took longest, and core-seconds."""

    run: JobRun
    rows: tuple[int, int, int] | None
    made_anew: str
    cost: str
    commits_read: int | None


def copies_of(dataset: Dataset, *, now: datetime) -> list[CopyRow]:
    """By data center. Seven queries."""
    copies = dataset.copies.select_related("dataset", "data_center").order_by("data_center__name")
    return [_copy_row(dataset, progress, now) for progress in progress_of([*copies], now=now)]


def _copy_row(dataset: Dataset, progress: CopyProgress, now: datetime) -> CopyRow:
    run, feed = progress.newest_run, dataset.feed
    if run is None or run.state != JobState.FAILED or (run.report or {}).get("status") == REFUSED:
        return CopyRow(progress, progress.lag(now=now), "", None)
    next_look = None if feed.paused or run.ended_at is None else max(now, run.ended_at + feed.every)
    return CopyRow(progress, progress.lag(now=now), failure_sentence(run), next_look)


def graph_of(dataset: Dataset, registered: Pipeline, copies: Sequence[CopyRow], *, now: datetime) -> Graph:
    """One query for each level of what is made from it, and those of their states."""
    inputs = inputs_of(registered.files)
    chained = _chained(dataset)
    live = Dataset.objects.filter(name__in={each.dataset for each in inputs}, offboarded_at=None)
    there = {each.name: each for each in live}
    states = health_of([*there.values(), *(each for each, _ in chained)], now=now)
    nodes = [
        InputNode(
            each,
            states[there[each.dataset].pk].state if each.dataset in there else None,
            [*_notes(each, copies, now)] if each.dataset in there else [],
        )
        for each in inputs
    ]
    return Graph(nodes, [ChainedNode(each, states[each.pk].state, after) for each, after in chained])


def _chained(dataset: Dataset) -> list[tuple[Dataset, str]]:
    """Nearest first, each once, with what it is made from."""
    chained: dict[int, tuple[Dataset, str]] = {}
    level = {dataset.pk}
    for _ in range(MAX_LEVELS):
        edges = LineageEdge.objects.filter(upstream__in=level, source=LINEAGE_SOURCE, downstream__offboarded_at=None)
        ordered = edges.select_related("upstream", "downstream").order_by("downstream__name", "upstream__name")
        new: dict[int, tuple[Dataset, str]] = {}
        for edge in ordered[: MAX_CHAINED * 2]:
            if edge.downstream_id not in chained and edge.downstream_id != dataset.pk:
                after = "" if edge.upstream_id == dataset.pk else edge.upstream.name
                new.setdefault(edge.downstream_id, (edge.downstream, after))
        chained |= new
        level = set(new)
        if not level or len(chained) >= MAX_CHAINED:
            break
    return [*chained.values()][:MAX_CHAINED]


def _notes(each: PipelineInput, copies: Iterable[CopyRow], now: datetime) -> Iterable[str]:
    for row in copies:
        where = row.progress.copy.data_center.name
        of_input = next((known for known in row.progress.inputs if known.input == each), None)
        if of_input is None or not each.is_followed:
            continue
        if of_input.copy is None:
            yield f"no copy in {where}"
        elif of_input.pending and of_input.waits_since is not None:
            behind = words.duration(now - of_input.waits_since)
            yield f"{pending_text(of_input)} in {where}, behind {behind}"


def pending_text(progress: InputProgress) -> str:
    """`3 commits wait`, `more than 1,000 commits wait`."""
    count = progress.pending or 0
    if count > MAX_PENDING:
        return f"more than {MAX_PENDING:,} commits wait"
    return f"{words.count(count, 'commit')} {'waits' if count == 1 else 'wait'}"


def run_rows(dataset: Dataset) -> list[RunRow]:
    """Of all copies, newest first. Two queries."""
    making = JobRun.objects.filter(copy__dataset=dataset, kind__in=MAKING_KINDS)
    return [_run_row(run) for run in with_details(making).order_by("-pk")[:MAX_RUNS]]


def _run_row(run: JobRun) -> RunRow:
    report: Mapping[str, Any] = run.report or {}
    written, output = report.get("written"), report.get("output") or {}
    inputs: Mapping[str, Mapping[str, int]] = output.get("inputs") or {}
    is_told = run.state == JobState.SUCCEEDED and written is not None
    rows = (written["inserts"], written["updates"], written["deletes"]) if is_told and written else None
    commits = sum(each["commits"] for each in inputs.values()) if inputs else None
    return RunRow(run, rows, str(output.get("made_anew", "")), _cost(inputs, report), commits)


def _cost(inputs: Mapping[str, Mapping[str, int]], report: Mapping[str, Any]) -> str:
    """`12 files compared, 3.4 MB; compute 14 s, write 6 s; 23.4 core-seconds`."""
    files, size = (sum(each.get(fact, 0) for each in inputs.values()) for fact in ("files", "bytes"))
    read = f"{words.count(files, 'file')} compared, {words.size(size)}" if files else ""
    phases, core_s = report.get("phases") or {}, report.get("core_s")
    longest = sorted(phases.items(), key=lambda phase: -phase[1])[:_MAX_PHASES]
    took = ", ".join(f"{name} {words.duration(timedelta(seconds=seconds))}" for name, seconds in longest if seconds)
    cores = "" if core_s is None else f"{core_s:,.1f} core-seconds"
    return "; ".join(filter(None, (read, took, cores)))


def refused_batches(dataset: Dataset, *, with_rows: bool) -> list[RefusedRow]:
    """Of each copy those that are not over, whose audits have some of the rows that are the reason. One query."""
    batches = RefusedBatch.objects.filter(copy__dataset=dataset, copy__removed_at=None, ended_at=None)
    ordered = batches.select_related("copy__data_center", "decision_run").order_by(
        "copy__data_center__name", "kind", "pk"
    )
    shown = list(ordered[:MAX_REFUSED])
    for batch in shown if with_rows else ():
        for audit, sample in zip(batch.audits, batch.samples, strict=True):
            audit |= sample
    return [RefusedRow(batch, is_decided(batch)) for batch in shown]


def backfill_rows(dataset: Dataset) -> list[BackfillRow]:
    """Of all copies, newest first. Three queries."""
    newest = Backfill.objects.filter(copy__dataset=dataset, copy__removed_at=None).order_by("-pk")
    shown = backfill_progress(newest.select_related("copy__data_center")[:MAX_BACKFILLS])
    failed = failed_chunks_of([each.backfill for each in shown])
    return [BackfillRow(each, failed.get(each.backfill.pk, []), _actions(each.backfill)) for each in shown]


def _actions(backfill: Backfill) -> list[tuple[str, str]]:
    return [(action, _ACTION_LABELS[action]) for action in ACTIONS if (backfill.state, action) in TRANSITIONS]


def ignored_inputs(registered: Pipeline) -> list[PipelineInput]:
    """Those whose changes are not followed."""
    return [each for each in inputs_of(registered.files) if not each.is_followed]


def files_of(registered: Pipeline) -> list[tuple[str, str]]:
    """By name, in the order in which they are read."""
    return [(name, registered.files[name]) for name in FILES if name in registered.files]
