"""The pipeline of a modelled table: what it reads and what is made from it, how far it is, its runs and its files."""

from __future__ import annotations

from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.screens.pipeline import queries
from frontend.screens.pipeline.lineage import column_lineage_rows
from frontend.ui import words
from frontend.ui.form_actions import perform_action
from frontend.ui.live import render_live
from frontend.ui.whole_numbers import parse_whole_number
from ingestion.models import Pipeline, RefusedBatch
from ingestion.pipelines.transformers import transformer_states
from ingestion.runs.backfills.requests import (
    PartitionChoice,
    change_backfill,
    find_backfill,
    request_backfill,
)
from ingestion.runs.job_runs import find_copy
from ingestion.runs.modelled_tables.decisions import drop, publish
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can
from lakehub.kernel.errors import NotFound, Refused

FRAGMENTS = {
    "running": "components/templates/running_list.html",
    "graph": "screens/pipeline/templates/graph.html",
    "copies": "screens/pipeline/templates/copies.html",
    "backfills": "screens/pipeline/templates/backfills.html",
    "runs": "screens/pipeline/templates/runs.html",
}


def pipeline(request: HttpRequest, name: str) -> HttpResponse:
    """Raises Http404 for a dataset that no pipeline makes."""
    now = wiring.clock.now()
    dataset, context = dataset_frame(request, name, "pipeline", now)
    registered = Pipeline.objects.filter(dataset=dataset).first() if dataset.is_modelled else None
    if registered is None:
        raise Http404(f"Dataset `{name}` is not made by a pipeline.")
    progress = queries.copies_of(dataset, now=now)
    may_see_rows = can(request.user, "see rows", dataset.team)
    context |= {
        "registered": registered,
        "files": queries.files_of(registered),
        "transformers": transformer_states(registered),
        "graph": queries.graph_of(dataset, registered, progress, now=now),
        "lineage": partial(
            column_lineage_rows, registered
        ),  # by the page alone, not by its parts that come again and again
        "copies": progress,
        "runs": queries.run_rows(dataset),
        "backfills": queries.backfill_rows(dataset),
        "may_rerun": can(request.user, "rerun", dataset.team),
        "not_followed": queries.ignored_inputs(registered),
        "may_see_rows": may_see_rows,
        "may_override": can(request.user, "override", dataset.team),
        "refused": queries.refused_batches(dataset, with_rows=may_see_rows),
    }
    return render_live(request, "screens/pipeline/templates/page.html", context, FRAGMENTS)


@require_POST
def decide(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Over a refused batch: `decision` is publish or drop, with a `reason`."""
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        batch = RefusedBatch.objects.filter(pk=number, copy__dataset=dataset, copy__removed_at=None).first()
        if batch is None:
            raise NotFound(f"Dataset `{name}` has no refused batch {number}.")
        decision, reason = request.POST.get("decision", ""), request.POST.get("reason", "")
        by, now = actor.get_username(), wiring.clock.now()
        seen = parse_whole_number(request.POST.get("run", "")) or 0
        if decision == "publish":
            run = publish(batch, seen=seen, reason=reason, actor=by, now=now)
            return f"Run {run.pk} commits what the inputs hold, without audits."
        if decision != "drop":
            raise Refused("Choose what to do: publish or drop.")
        skipping = drop(batch, seen=seen, reason=reason, actor=by, now=now)
        return "It is dropped." if skipping is None else f"Run {skipping.pk} goes past the changes."

    return perform_action(request, "override", dataset, use_case, then=reverse("dataset-pipeline", args=[name]))


@require_POST
def ask_backfill(request: HttpRequest, name: str) -> HttpResponse:
    """From `first` to `last`, in chunks of `chunk_size` partitions, of the copy in `data_center`."""
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        choice = PartitionChoice(request.POST.get("first", "").strip(), request.POST.get("last", "").strip())
        size = parse_whole_number(request.POST.get("chunk_size", "")) or 0
        copy, by = find_copy(dataset, request.POST.get("data_center", "")), actor.get_username()
        backfill = request_backfill(copy, choice, chunk_size=size, actor=by, now=wiring.clock.now())
        return f"Backfill {backfill.pk} recomputes the partitions, in {words.count(backfill.chunks.count(), 'chunk')}."

    return perform_action(request, "rerun", dataset, use_case, then=reverse("dataset-pipeline", args=[name]))


@require_POST
def act_on_backfill(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """`action`: pause, resume, cancel or retry."""
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        backfill, action = find_backfill(dataset, number), request.POST.get("action", "")
        change_backfill(backfill, action, actor=actor.get_username(), now=wiring.clock.now())
        return f"Backfill {number} is {backfill.get_state_display().lower()}."

    return perform_action(request, "rerun", dataset, use_case, then=reverse("dataset-pipeline", args=[name]))
