"""What is done about pipelines on a dataset's page: start or cancel a run that waits, make and revoke hooks."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from frontend.acting import act, actor_of, explained
from frontend.views.dataset import find, frame
from ingestion import runs, waiting
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.kernel.errors import NotFound, Refused
from quality.pipelines import hooks
from quality.pipelines.serializers import ADDRESS

_NAME_LENGTH = 100


@require_POST
def start(request: HttpRequest, name: str, number: int) -> HttpResponse:
    dataset = find(name)

    def use_case(actor: User) -> str:
        run, now = runs.find(dataset, number), wiring.clock.now()
        waiting.start_regardless(run, why=request.POST.get("why", ""), actor=actor.get_username(), now=now)
        return f"Run {number} is queued, whatever the gate says."

    return act(request, "rerun", dataset, use_case, then=_page(name))


@require_POST
def cancel(request: HttpRequest, name: str, number: int) -> HttpResponse:
    dataset = find(name)

    def use_case(actor: User) -> str:
        runs.cancel(runs.find(dataset, number), actor=actor.get_username(), now=wiring.clock.now())
        return f"Run {number} is cancelled."

    return act(request, "rerun", dataset, use_case, then=_page(name))


@require_POST
@never_cache
def make_hook(request: HttpRequest, name: str) -> HttpResponse:
    """The page with the secret, which no other page shows."""
    dataset, context = frame(request, name, "ingestion", wiring.clock.now())
    actor = actor_of(request)
    require(actor, "onboard", dataset.team)
    said = request.POST.get("name", "").strip()
    with explained(request):
        if not said or len(said) > _NAME_LENGTH:
            raise Refused(f"Name the tool that reports, in at most {_NAME_LENGTH} characters.")
        context["hook"] = hooks.make(said, dataset.team, dataset, created_by=actor, now=context["now"])
    if "hook" not in context:
        return redirect(_page(name))
    context["address"] = request.build_absolute_uri(ADDRESS.format(key=context["hook"].key))
    return render(request, "frontend/dataset/hook_made.html", context)


@require_POST
def revoke_hook(request: HttpRequest, name: str, key: str) -> HttpResponse:
    dataset = find(name)

    def use_case(actor: User) -> str:
        hook = hooks.live_hook(key)
        if hook.team_id != dataset.team_id:
            raise NotFound(f"`{key}` is no hook of {name}.")
        hooks.revoke(hook, actor=actor.get_username(), now=wiring.clock.now())
        return f"{hook.name} is revoked: what it signs is refused."

    return act(request, "onboard", dataset, use_case, then=_page(name))


def _page(name: str) -> str:
    return reverse("dataset-ingestion", args=[name])
