"""What can be done with an incident. Each form calls one use case of `incidents`."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.timezone import make_aware
from django.views.decorators.http import require_POST

from frontend.components.snooze_form import morning_zone, parse_snooze, snooze_text
from frontend.screens.incident.views import find_incident
from frontend.ui import words
from frontend.ui.form_actions import actor_of, errors_as_messages, parse_local_time, perform_action, posted_revision
from frontend.ui.whole_numbers import parse_whole_number
from incidents.lifecycle import actions, resolution, user_reports
from incidents.models import Resolution
from lakehub import wiring
from lakehub.accounts.models import User


@require_POST
def acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        actions.acknowledge(pk, actor=actor, now=wiring.clock.now(), expected_revision=posted_revision(request))
        return f"#{pk} is yours."

    return perform_action(request, "acknowledge", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def rerun(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        requested_count = actions.rerun(pk, actor=actor, now=wiring.clock.now())
        if not requested_count:
            return f"The tests of #{pk} are being run already."
        return f"{words.count(requested_count, 'test run')} of #{pk} {'is' if requested_count == 1 else 'are'} under way. A pass resolves it."

    return perform_action(request, "rerun", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def annotate(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        posted = request.POST
        changes = {name: posted.get(name, "").strip() for name in ("backfill", "root_cause", "root_cause_text")}
        eta = parse_local_time(posted.get("eta", ""), make_aware)
        # The field shows minutes: an ETA that is untouched must not count as changed, nor as one in the past.
        incident = find_incident(pk)
        eta_unchanged = incident.eta is not None and eta is not None and abs((incident.eta - eta).total_seconds()) < 60
        annotation: dict[str, object] = {**changes} if eta_unchanged else {**changes, "eta": eta}
        if "backfill_run" in posted:
            annotation["backfill_run"] = parse_whole_number(posted["backfill_run"])
        actions.annotate(
            pk, annotation, actor=actor, now=wiring.clock.now(), expected_revision=posted_revision(request)
        )
        return f"What is known of #{pk} is saved."

    return perform_action(request, "annotate", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def comment(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        actions.comment(pk, request.POST.get("text", ""), actor=actor, now=wiring.clock.now())
        return "Your comment is on the timeline."

    return perform_action(request, "annotate", find_incident(pk).dataset, use_case, then=_page_url(pk) + "#timeline")


@require_POST
def snooze(request: HttpRequest, pk: int) -> HttpResponse:
    dataset = find_incident(pk).dataset

    def use_case(actor: User) -> str:
        now = wiring.clock.now()
        ends = request.POST.get("ends", "")
        chosen_snooze = parse_snooze(request.POST, ends, zone=morning_zone(dataset.zone), now=now)
        actions.snooze(
            pk,
            chosen_snooze.until,
            until_worse=chosen_snooze.until_worse,
            failures=chosen_snooze.failures,
            actor=actor,
            now=now,
            expected_revision=posted_revision(request),
        )
        return f"Messages about #{pk} are snoozed {snooze_text(chosen_snooze, now=now)}."

    return perform_action(request, "acknowledge", dataset, use_case, then=_page_url(pk))


@require_POST
def end_snooze(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        actions.wake(pk, actor=actor, now=wiring.clock.now(), expected_revision=posted_revision(request))
        return f"#{pk} is snoozed no longer."

    return perform_action(request, "acknowledge", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def resolve(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        how = request.POST.get("how", "")
        accepted = how == Resolution.ACCEPTED
        resolution.resolve_by_force(
            pk,
            resolution=Resolution.ACCEPTED if accepted else Resolution.FALSE_POSITIVE,
            false_positive="" if accepted else how,
            why=request.POST.get("why", "").strip(),
            actor=actor.get_username(),
            now=wiring.clock.now(),
            expected_revision=posted_revision(request),
        )
        return f"#{pk} is resolved by force."

    return perform_action(request, "resolve", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def reopen(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        name, now = actor.get_username(), wiring.clock.now()
        resolution.undo_resolution(
            pk, actor=name, now=now, why=request.POST.get("why", ""), expected_revision=posted_revision(request)
        )
        return f"#{pk} is open again."

    return perform_action(request, "resolve", find_incident(pk).dataset, use_case, then=_page_url(pk))


@require_POST
def answer_report(request: HttpRequest, pk: int) -> HttpResponse:
    """What becomes of a reader's report. The owners reject it or declare it fixed; everybody may insist."""
    answer, why, expected_revision = (
        request.POST.get("answer", ""),
        request.POST.get("why", "").strip(),
        posted_revision(request),
    )

    def use_case(actor: User) -> str:
        now = wiring.clock.now()
        if answer == "reject":
            user_reports.reject_report(pk, why=why, actor=actor, now=now, expected_revision=expected_revision)
            return f"#{pk} is rejected; the reader is told why."
        if answer == "fixed":
            user_reports.declare_fixed(pk, why=why, actor=actor, now=now, expected_revision=expected_revision)
            return f"#{pk} is declared fixed."
        user_reports.dispute_report(pk, why=why, actor=actor, now=now, expected_revision=expected_revision)
        return f"The owners are asked about #{pk} again."

    if answer == "dispute":
        with errors_as_messages(request):
            messages.info(request, use_case(actor_of(request)))
        return redirect("incident", pk)
    return perform_action(request, "resolve", find_incident(pk).dataset, use_case, then=_page_url(pk))


def _page_url(pk: int) -> str:
    return reverse("incident", args=[pk])
