"""What can be done with an incident. Each form calls one use case of `incidents`."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.timezone import make_aware
from django.views.decorators.http import require_POST

from frontend import words
from frontend.acting import act, actor_of, explained, instant, seen_revision
from frontend.numbers import whole
from frontend.snoozes import snooze_asked
from frontend.views.incident import find
from incidents import actions, reports, resolving
from incidents.models import Resolution
from lakehub import wiring
from lakehub.accounts.models import User


@require_POST
def acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        actions.acknowledge(pk, actor=actor, now=wiring.clock.now(), seen=seen_revision(request))
        return f"#{pk} is yours."

    return act(request, "acknowledge", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def rerun(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        asked = actions.rerun(pk, actor=actor, now=wiring.clock.now())
        if not asked:
            return f"The tests of #{pk} are being run already."
        return (
            f"{words.count(asked, 'test run')} of #{pk} {'is' if asked == 1 else 'are'} under way. A pass resolves it."
        )

    return act(request, "rerun", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def annotate(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        said = request.POST
        changes = {name: said.get(name, "").strip() for name in ("backfill", "root_cause", "root_cause_text")}
        eta = instant(said.get("eta", ""), make_aware)
        # The field shows minutes: an ETA that is untouched must not count as changed, nor as one in the past.
        incident = find(pk)
        kept = incident.eta is not None and eta is not None and abs((incident.eta - eta).total_seconds()) < 60
        known: dict[str, object] = {**changes} if kept else {**changes, "eta": eta}
        if "backfill_run" in said:
            known["backfill_run"] = whole(said["backfill_run"])
        actions.annotate(pk, known, actor=actor, now=wiring.clock.now(), seen=seen_revision(request))
        return f"What is known of #{pk} is saved."

    return act(request, "annotate", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def comment(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        actions.comment(pk, request.POST.get("text", ""), actor=actor, now=wiring.clock.now())
        return "Your comment is on the timeline."

    return act(request, "annotate", find(pk).dataset, use_case, then=_page(pk) + "#timeline")


@require_POST
def snooze(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        wanted, now = snooze_asked(request.POST), wiring.clock.now()
        actions.snooze(
            pk,
            wanted.until,
            until_worse=wanted.until_worse,
            failures=wanted.failures,
            actor=actor,
            now=now,
            seen=seen_revision(request),
        )
        return f"Messages about #{pk} are snoozed {wanted}."

    return act(request, "acknowledge", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def wake(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        actions.wake(pk, actor=actor, now=wiring.clock.now(), seen=seen_revision(request))
        return f"#{pk} is snoozed no longer."

    return act(request, "acknowledge", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def resolve(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        how = request.POST.get("how", "")
        accepted = how == Resolution.ACCEPTED
        resolving.resolve(
            pk,
            resolution=Resolution.ACCEPTED if accepted else Resolution.FALSE_POSITIVE,
            false_positive="" if accepted else how,
            why=request.POST.get("why", "").strip(),
            actor=actor.get_username(),
            now=wiring.clock.now(),
            seen=seen_revision(request),
        )
        return f"#{pk} is resolved by force."

    return act(request, "resolve", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def reopen(request: HttpRequest, pk: int) -> HttpResponse:
    def use_case(actor: User) -> str:
        name, now = actor.get_username(), wiring.clock.now()
        resolving.reopen(pk, actor=name, now=now, why=request.POST.get("why", ""), seen=seen_revision(request))
        return f"#{pk} is open again."

    return act(request, "resolve", find(pk).dataset, use_case, then=_page(pk))


@require_POST
def answer(request: HttpRequest, pk: int) -> HttpResponse:
    """What becomes of a reader's report. The owners reject it or declare it fixed; everybody may insist."""
    asked, why, seen = request.POST.get("answer", ""), request.POST.get("why", "").strip(), seen_revision(request)

    def use_case(actor: User) -> str:
        now = wiring.clock.now()
        if asked == "reject":
            reports.reject(pk, why=why, actor=actor, now=now, seen=seen)
            return f"#{pk} is rejected; the reader is told why."
        if asked == "fixed":
            reports.declare_fixed(pk, why=why, actor=actor, now=now, seen=seen)
            return f"#{pk} is declared fixed."
        reports.dispute(pk, why=why, actor=actor, now=now, seen=seen)
        return f"The owners are asked about #{pk} again."

    if asked == "dispute":
        with explained(request):
            messages.info(request, use_case(actor_of(request)))
        return redirect("incident", pk)
    return act(request, "resolve", find(pk).dataset, use_case, then=_page(pk))


def _page(pk: int) -> str:
    return reverse("incident", args=[pk])
