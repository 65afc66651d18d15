"""What is done about pipelines on a dataset's page: pause and resume, start or cancel a run that waits, make and revoke hooks."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.ui.form_actions import actor_of, errors_as_messages, perform_action
from ingestion.models import JobKind
from ingestion.runs import blocked_inputs, failed_runs, job_runs
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets import pausing
from lakehub.kernel.errors import NotFound, Refused
from quality.api.external_run_serializers import HOOK_ADDRESS
from quality.planning import pipeline_hooks

_MAX_NAME_LENGTH = 100
_INDEX_KINDS = (JobKind.VERIFY_INDEX, JobKind.REBUILD_INDEX)


@require_POST
def start_run(request: HttpRequest, name: str, number: int) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        run, now = job_runs.find_run(dataset, number), wiring.clock.now()
        blocked_inputs.start_regardless(run, why=request.POST.get("why", ""), actor=actor.get_username(), now=now)
        return f"Run {number} is queued, whatever the gate says."

    return perform_action(request, "rerun", dataset, use_case, then=_page_url(name))


@require_POST
def cancel_run(request: HttpRequest, name: str, number: int) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        job_runs.cancel_run(job_runs.find_run(dataset, number), actor=actor.get_username(), now=wiring.clock.now())
        return f"Run {number} is cancelled."

    return perform_action(request, "rerun", dataset, use_case, then=_page_url(name))


@require_POST
def retry_run(request: HttpRequest, name: str, number: int) -> HttpResponse:
    dataset = find_dataset(name)
    try:
        run = job_runs.find_run(dataset, number)
    except NotFound as missing:
        raise Http404(str(missing)) from None

    def use_case(actor: User) -> str:
        retried = failed_runs.retry_run(run, actor=actor.get_username(), now=wiring.clock.now())
        return f"Run {retried.pk} tries it again as soon as a worker is free."

    return perform_action(request, failed_runs.right_to_retry(run.kind), dataset, use_case, then=_page_url(name))


@require_POST
def run_index_job(request: HttpRequest, name: str) -> HttpResponse:
    """Looks at the index of a copy, or makes it anew."""
    dataset, kind = find_dataset(name), request.POST.get("kind", "")

    def use_case(actor: User) -> str:
        if kind not in _INDEX_KINDS:
            raise Refused(f"`{kind}` is no job on an index: choose one of {', '.join(_INDEX_KINDS)}.")
        copy = job_runs.find_copy(dataset, request.POST.get("data_center", ""))
        params = {"repairs": True} if kind == JobKind.VERIFY_INDEX and request.POST.get("repairs") else {}
        run = job_runs.request_run(copy, kind, params, asked_by=actor.get_username(), now=wiring.clock.now())
        return f"Run {run.pk} is queued: its result shows below."

    return perform_action(request, "rerun", dataset, use_case, then=_page_url(name))


@require_POST
def pause(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        why, by = request.POST.get("why", ""), actor.get_username()
        pausing.pause_ingestion(dataset, why=why, actor=by, now=wiring.clock.now())
        return "Ingestion is paused. A load that is at work stops after the commit that it is in."

    return perform_action(request, "rerun", dataset, use_case, then=_page_url(name))


@require_POST
def resume(request: HttpRequest, name: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        pausing.resume_ingestion(dataset, actor=actor.get_username(), now=wiring.clock.now())
        return "Ingestion goes on where it was."

    return perform_action(request, "rerun", dataset, use_case, then=_page_url(name))


@require_POST
def create_hook(request: HttpRequest, name: str) -> HttpResponse:
    """The page with the secret, which no other page shows."""
    dataset, context = dataset_frame(request, name, "ingestion", wiring.clock.now())
    actor = actor_of(request)
    require(actor, "onboard", dataset.team)
    hook_name = request.POST.get("name", "").strip()
    with errors_as_messages(request):
        if not hook_name or len(hook_name) > _MAX_NAME_LENGTH:
            raise Refused(f"Name the tool that reports, in at most {_MAX_NAME_LENGTH} characters.")
        context["hook"] = pipeline_hooks.create_hook(
            hook_name, dataset.team, dataset, created_by=actor, now=context["now"]
        )
    if "hook" not in context:
        return redirect(_page_url(name))
    context["address"] = request.build_absolute_uri(HOOK_ADDRESS.format(key=context["hook"].key))
    return render(request, "screens/dataset/templates/hook_created.html", context)


@require_POST
def revoke_hook(request: HttpRequest, name: str, key: str) -> HttpResponse:
    dataset = find_dataset(name)

    def use_case(actor: User) -> str:
        hook = pipeline_hooks.live_hook(key)
        if hook.team_id != dataset.team_id:
            raise NotFound(f"`{key}` is no hook of {name}.")
        pipeline_hooks.revoke_hook(hook, actor=actor.get_username(), now=wiring.clock.now())
        return f"{hook.name} is revoked: what it signs is refused."

    return perform_action(request, "onboard", dataset, use_case, then=_page_url(name))


def _page_url(name: str) -> str:
    return reverse("dataset-ingestion", args=[name])
