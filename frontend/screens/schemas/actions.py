"""What changes a subject: its rule, and a version that should not be used any more."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.screens.schemas.queries import find_subject, find_version
from frontend.screens.schemas.rule_words import rule_name
from frontend.screens.schemas.views import render_subject
from frontend.ui.form_actions import actor_of, errors_as_messages
from ingestion.schemas import registry
from lakehub import wiring
from lakehub.accounts.permissions import require
from lakehub.kernel.errors import Refused


@require_POST
def set_rule(request: HttpRequest, subject: str) -> HttpResponse:
    """For versions that are registered from now on."""
    changed, actor = find_subject(subject), actor_of(request)
    require(actor, "onboard", changed.team)
    with errors_as_messages(request):
        rule = registry.set_rule(
            changed, request.POST.get("compatibility", ""), actor=actor.get_username(), now=wiring.clock.now()
        )
        messages.info(request, f"The rule is {rule_name(rule.value)}. It holds for versions from now on.")
    return redirect("schemas-subject", subject)


@require_POST
def deprecate(request: HttpRequest, subject: str, number: int) -> HttpResponse:
    of_subject, actor = find_subject(subject), actor_of(request)
    require(actor, "onboard", of_subject.team)
    version, why = find_version(of_subject, number), request.POST.get("why", "")
    try:
        registry.deprecate(version, why, actor=actor.get_username(), now=wiring.clock.now())
    except Refused as refused:
        return render_subject(request, of_subject, number, why=why, error=str(refused))
    messages.info(request, f"Version {number} is deprecated.")
    return redirect(f"{reverse('schemas-subject', args=[subject])}?version={number}")
