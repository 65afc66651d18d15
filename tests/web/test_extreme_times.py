"""The ends of the calendar in forms and bodies: refused or kept, and what is kept can be shown to everybody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from lakehub.accounts.models import User
from tests import callers

pytestmark = pytest.mark.django_db
TIMES = (
    "9999-12-31T23:59",
    "9999-12-31T23:59Z",
    "9999-12-31T23:59-14:00",
    "0001-01-01T00:00+14:00",
)


@pytest.fixture
def world() -> callers.World:
    return callers.build()


def of_forms(client: Client, incident: str, text: str) -> Iterator[int]:
    token = {"csrfmiddlewaretoken": "t" * 32}
    settings = {"tier": "1", "primary_key": "id", "every": "5m", "version": "1", "grace_until": text}
    report = {"dataset": "flights", "from": text, "to": "9999-12-31", "category": "others", "text": "Odd"}
    override = {"dataset": "flights", "from": text, "to": "9999-12-31", "dc": "dc1", "reason": "Known", "until": text}
    for address, fields in (
        (f"incidents/{incident}/snooze", {"ends": "time", "until": text}),
        (f"incidents/{incident}/annotate", {"eta": text}),
        ("datasets/flights/settings", settings),
        ("datasets/flights/settings", settings | {"check": "1"}),
        ("incidents/report", report | {"occurred_at": text}),
        ("gate/override", override),
    ):
        yield client.post(f"/{address}", fields | token).status_code
    for address in (f"gate?dataset=flights&dc=dc1&from={text}&to=9999-12-31", f"audit?since={text}&until={text}"):
        yield client.get("/" + address.replace("+", "%2B")).status_code


def of_the_api(client: Client, incident: str, text: str) -> Iterator[int]:
    dataset = {"dataset": "flights", "from": text, "to": "9999-12-31", "dc": "dc1"}
    for address, body in (
        (f"incidents/{incident}/snooze", {"until": text}),
        (f"incidents/{incident}/annotate", {"eta": text}),
        ("incidents", dataset | {"category": "others", "text": "Odd", "occurred_at": text}),
        ("gate/overrides", dataset | {"reason": "Known", "until": text}),
        ("datasets/flights/run", {"start": text, "end": text}),
    ):
        yield client.post(f"/api/v1/{address}", body, content_type="application/json").status_code
    body = {"grace_until": text}
    yield client.patch("/api/v1/datasets/flights", body, content_type="application/json").status_code
    asked = text.replace("+", "%2B")
    yield client.get(f"/api/v1/gate?dataset=flights&dc=dc1&from={asked}&to=9999-12-31").status_code


def test_no_time_makes_a_page_that_somebody_elsewhere_cannot_see(world: callers.World) -> None:
    User.objects.filter(username="admin").update(timezone="America/New_York")
    User.objects.filter(username="viewer").update(timezone="Pacific/Kiritimati")
    User.objects.filter(username="owner").update(timezone="Pacific/Pago_Pago")
    incident, admin = world.places["incidents/<int:pk>"], world.callers["admin"].client
    for text in TIMES:
        codes = [*of_forms(admin, incident, text), *of_the_api(admin, incident, text)]
        assert max(codes) < 500, (text, codes)
        for where in ("incidents?view=snoozed", f"incidents/{incident}", "datasets/flights/settings"):
            seen = [world.callers[name].client.get(f"/{where}").status_code for name in ("viewer", "owner")]
            assert seen == [200, 200], (text, where)
