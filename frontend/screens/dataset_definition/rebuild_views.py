"""The rebuild that another partition started: how far it is, and what is done about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import find_dataset
from frontend.components.runs.failures import failure_sentence
from frontend.components.runs.progress import RunProgress, run_progress
from frontend.ui import words
from frontend.ui.form_actions import perform_action
from ingestion.models import JobKind, JobState
from ingestion.runs import rebuilds
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.rebuild import accept_fewer_rows, find_rebuild

_ENDED = (JobState.SUCCEEDED, JobState.CANCELLED, JobState.FAILED)
_WORDS = {
    rebuilds.FAILED: ("fail", "Failed"),
    rebuilds.LOADING: ("running", "Loading"),
    rebuilds.BEHIND: ("running", "Reading what came meanwhile"),
    rebuilds.WHOLE: ("pass", "Whole"),
}


@dataclass(frozen=True)
class BuiltTableRow:
    built: rebuilds.BuiltCopy
    state: str
    word: str
    progress: RunProgress | None
    """Of the job that is at work on it, or waits."""
    failure: str


@dataclass(frozen=True)
class RebuildPanel:
    progress: rebuilds.RebuildProgress
    rows: list[BuiltTableRow]


def rebuild_panel(dataset: Dataset, *, now: datetime) -> RebuildPanel | None:
    """None: nothing is built, and nothing is left to drop."""
    progress = rebuilds.rebuild_progress(dataset)
    if progress is None or not (progress.is_under_way or progress.left_tables):
        return None
    return RebuildPanel(progress, [_row(built, now) for built in progress.copies])


def _row(built: rebuilds.BuiltCopy, now: datetime) -> BuiltTableRow:
    state, word = _WORDS[built.state]
    run = built.run
    at_work = run is not None and run.state not in _ENDED and (run.kind != JobKind.FOLLOW or bool(run.error))
    failed = run is not None and run.state == JobState.FAILED
    return BuiltTableRow(
        built,
        state,
        word,
        run_progress(run, now=now) if run is not None and at_work else None,
        failure_sentence(run) if run is not None and failed else "",
    )


@require_POST
def cancel_rebuild(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        rebuilds.cancel(find_rebuild(dataset), actor=actor.get_username(), now=wiring.clock.now())
        return "The rebuild is cancelled. The present tables stay as they are."

    return perform_action(request, "onboard", dataset, use_case, then=_page_url(name))


@require_POST
def accept_rebuild(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        accept_fewer_rows(find_rebuild(dataset), actor=actor.get_username(), now=wiring.clock.now())
        return "The dataset switches within seconds. The present tables are kept until they are dropped."

    return perform_action(request, "offboard", dataset, use_case, then=_page_url(name))


@require_POST
def drop_left_tables(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        runs = rebuilds.drop_left_tables(dataset, actor=actor.get_username(), now=wiring.clock.now())
        return f"{words.count(len(runs), 'table')} will be removed as soon as a worker is free."

    return perform_action(request, "offboard", dataset, use_case, then=_page_url(name))


def _page_url(name: str) -> str:
    return reverse("dataset-definition", args=[name])
