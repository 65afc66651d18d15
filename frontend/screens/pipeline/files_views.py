"""The files of a pipeline are looked at first: what is wrong in them, or what registering them would do. Then they are registered as they were looked at."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.screens.pipeline import plan_rows
from frontend.screens.pipeline.files_form import (
    FilesForm,
    form_from,
    form_of,
    with_name_checked,
    with_plan,
    with_refusal,
)
from frontend.ui import words
from frontend.ui.form_actions import actor_of
from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.models import Pipeline
from ingestion.pipelines.planning import Plan
from ingestion.pipelines.rights import require_registration
from ingestion.pipelines.transformers import transformers_folder
from ingestion.runs.modelled_tables.registration import Registration, register
from lakehub import wiring
from lakehub.accounts.permissions import require, require_in_some_team
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, Refused

_EDITED = "The files are not as they were when the plan was made. This is the plan for them as they are now."


def edit_files(request: HttpRequest, name: str) -> HttpResponse:
    """GET has the files as they are registered, POST says what changing them would do."""
    dataset, registered = _find(request, name)
    if request.method != "POST":
        return _page(request, form_of(registered), dataset)
    form = form_from(request, registered)
    notice = _changed_notice(form, registered)
    return _checked_page(request, form, dataset, notice=notice, opened=registered.changed_at)


@require_POST
def apply_files(request: HttpRequest, name: str) -> HttpResponse:
    dataset, registered = _find(request, name)
    return _apply(request, form_from(request, registered), dataset, opened=registered.changed_at)


def new_pipeline(request: HttpRequest) -> HttpResponse:
    require_in_some_team(request.user, "onboard")
    if request.method != "POST":
        return _page(request, FilesForm({}))
    return _checked_page(request, form_from(request))


@require_POST
def register_new(request: HttpRequest) -> HttpResponse:
    require_in_some_team(request.user, "onboard")
    return _apply(request, form_from(request))


def _find(request: HttpRequest, name: str) -> tuple[Dataset, Pipeline]:
    """Raises PermissionDenied, and Http404 for a dataset that no pipeline makes."""
    dataset = find_dataset(name)
    require(request.user, "onboard", dataset.team)
    registered = Pipeline.objects.filter(dataset=dataset).first() if dataset.is_modelled else None
    if registered is None or dataset.offboarded_at is not None:
        raise Http404(f"Dataset `{name}` is not made by a pipeline.")
    return dataset, registered


def _changed_notice(form: FilesForm, registered: Pipeline) -> str:
    """Empty: nobody has changed the files since the form was opened."""
    if form.opened in ("", registered.changed_at.isoformat()):
        return ""
    return f"{registered.changed_by} has changed the files since you opened them, at {words.utc(registered.changed_at)}. What you typed is kept; the plan says what it differs in from the files as they are now."


def _apply(
    request: HttpRequest, form: FilesForm, dataset: Dataset | None = None, *, opened: datetime | None = None
) -> HttpResponse:
    """Registers what the plan that was shown is about, and nothing else."""
    if not form.is_as_planned or not form.basis:
        return _checked_page(request, form, dataset, notice=_EDITED, opened=opened, status=409)
    form = with_name_checked(form, dataset.name if dataset else "")
    if form.problems:
        return _page(request, form, dataset, status=422)
    user = actor_of(request)
    may, now = partial(require_registration, user), wiring.clock.now()
    try:
        done = register(form.given, actor=user.get_username(), may=may, basis=form.basis, now=now)
    except BadPipeline as bad:
        return _page(request, replace(form, problems=bad.problems), dataset, status=422)
    except PermissionDenied as denied:
        return _page(request, with_refusal(form, denied), dataset, status=403)
    except (Refused, Conflict) as problem:
        return _checked_page(request, form, dataset, notice=str(problem), opened=opened, status=409)
    messages.info(request, _outcome(done))
    return redirect("dataset-pipeline", done.dataset.name)


def _outcome(done: Registration) -> str:
    if done.is_new:
        return f"The pipeline {done.dataset} is registered: a worker makes its table."
    recomputed = f" {words.count(done.rebuilds, 'table')} {'is' if done.rebuilds == 1 else 'are'} recomputed."
    return f"The pipeline {done.dataset} is changed.{recomputed if done.rebuilds else ''}"


def _checked_page(
    request: HttpRequest,
    form: FilesForm,
    dataset: Dataset | None = None,
    *,
    notice: str = "",
    opened: datetime | None = None,
    status: int = 200,
) -> HttpResponse:
    """`opened`: when the files were changed last that the plan is made against."""
    try:
        form, plan = with_plan(form, actor_of(request), dataset.name if dataset else "")
    except PermissionDenied as denied:
        return _page(request, with_refusal(form, denied), dataset, status=403)
    if plan is not None and opened is not None:
        form = replace(form, opened=opened.isoformat())
    return _page(request, form, dataset, plan=plan, notice=notice, status=status if plan is not None else 422)


def _page(
    request: HttpRequest,
    form: FilesForm,
    dataset: Dataset | None = None,
    *,
    plan: Plan | None = None,
    notice: str = "",
    status: int = 200,
) -> HttpResponse:
    now = wiring.clock.now()
    context: dict[str, Any] = (
        {"now": now} if dataset is None else dataset_frame(request, dataset.name, "pipeline", now)[1]
    )
    context |= {
        "form": form,
        "plan": plan,
        "notice": notice,
        "check_url": reverse("new-pipeline")
        if dataset is None
        else reverse("dataset-pipeline-files", args=[dataset.name]),
        "apply_url": reverse("new-pipeline-register")
        if dataset is None
        else reverse("dataset-pipeline-apply", args=[dataset.name]),
        "takes_transformers": bool(transformers_folder()),
    }
    if plan is not None:
        context |= {
            "changes": plan_rows.change_rows(plan),
            "reads": plan_rows.read_rows(plan),
            "written": plan_rows.written_text(plan.writes),
            "may_apply": plan.is_new or bool(plan.changes) or form.given != _registered_files(plan),
        }
    page = "new_page.html" if dataset is None else "files_page.html"
    return render(request, f"screens/pipeline/templates/{page}", context, status=status)


def _registered_files(plan: Plan) -> dict[str, str]:
    return dict(Pipeline.objects.get(dataset=plan.checked.target).files)
