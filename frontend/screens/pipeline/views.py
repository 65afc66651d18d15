"""The pipeline of a modelled table: what it reads and what is made from it, how far it is, its runs and its files."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from frontend.components.dataset_frame import dataset_frame
from frontend.screens.pipeline import queries
from frontend.ui.live import render_live
from ingestion.models import Pipeline
from lakehub import wiring

FRAGMENTS = {
    "running": "components/templates/running_list.html",
    "graph": "screens/pipeline/templates/graph.html",
    "copies": "screens/pipeline/templates/copies.html",
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
    context |= {
        "registered": registered,
        "files": queries.files_of(registered),
        "graph": queries.graph_of(dataset, registered, progress, now=now),
        "copies": progress,
        "runs": queries.run_rows(dataset),
        "not_followed": queries.ignored_inputs(registered),
    }
    return render_live(request, "screens/pipeline/templates/page.html", context, FRAGMENTS)
