"""Where the copies of a captured dataset stand in the changelog, its tap in the binlog; and setting where a copy reads on."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.timezone import make_aware
from django.views.decorators.http import require_POST

from frontend.components.dataset_frame import dataset_frame, find_dataset
from frontend.ui.form_actions import parse_local_time, perform_action
from frontend.ui.whole_numbers import parse_whole_number
from ingestion.positions.listing import Positions, positions_of
from ingestion.positions.requests import WantedPlace, request_position
from ingestion.runs.job_runs import find_copy
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Busy, Refused

_OFFSET = "offset-"
"""Before the partition, in the names of fields."""


def positions(request: HttpRequest, name: str) -> HttpResponse:
    dataset, context = dataset_frame(request, name, "ingestion", wiring.clock.now())
    known, problem = _positions(dataset)
    context |= {"positions": known, "problem": problem}
    return render(request, "screens/positions/templates/page.html", context)


@require_POST
def set_position(request: HttpRequest, name: str) -> HttpResponse:
    dataset, posted = find_dataset(name), request.POST

    def use_case(actor: User) -> str:
        requested = request_position(
            find_copy(dataset, posted.get("data_center", "")),
            _wanted(posted),
            why=posted.get("why", ""),
            may_skip=posted.get("may_skip") == "1",
            actor=actor.get_username(),
            now=wiring.clock.now(),
        )
        return requested.sentence()

    return perform_action(request, "onboard", dataset, use_case, then=reverse("dataset-positions", args=[name]))


def _positions(dataset: Dataset) -> tuple[Positions | None, str]:
    """None, with the reason, where there is nothing to show."""
    try:
        return positions_of(dataset), ""
    except (Refused, Busy) as problem:
        return None, str(problem)


def _wanted(posted: QueryDict) -> WantedPlace:
    """Raises Refused."""
    match posted.get("to", ""):
        case "earliest":
            return WantedPlace(is_earliest=True)
        case "time":
            if (time := parse_local_time(posted.get("time", ""), make_aware)) is None:
                raise Refused.for_fields({"time": "Give the time from which on messages are to be read."})
            return WantedPlace(time=time)
        case _:
            return WantedPlace(offsets=_offsets(posted))


def _offsets(posted: QueryDict) -> dict[str, int]:
    """Raises Refused. Fields that are empty stay where they are."""
    offsets = {}
    for field, text in posted.items():
        if field.startswith(_OFFSET) and (entered := str(text).strip()):
            number = parse_whole_number(entered)
            if number is None or number < 0:
                raise Refused.for_fields({"offsets": f"`{entered[:60]}` is not the number of a message."})
            offsets[field.removeprefix(_OFFSET)] = number
    return offsets
