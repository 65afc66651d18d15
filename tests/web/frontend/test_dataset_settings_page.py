"""The settings of a dataset: the tier's value beside each SLA, one use case, off-boarding."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from frontend.screens.dataset_settings.settings_form import form_of_dataset
from lakehub.catalog.models import Dataset

WHERE = "/datasets/flights/settings"


@pytest.fixture
def form(page: Client, flights: Dataset) -> dict[str, str]:
    """As the page is filled in."""
    html = page.get(WHERE).content.decode()
    fields = dict(re.findall(r'<input[^>]* name="([\w-]+)"[^>]* value="([^"]*)"', html))
    return {**fields, "tier": "1", "description": ""}


def save(page: Client, form: dict[str, str], **changes: str) -> Any:
    fields = {name.replace("__", "-"): value for name, value in changes.items()}
    return page.post(WHERE, {**form, **fields}, follow=True)


def text_of(answer: Any) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode()))


def test_each_sla_stands_beside_the_tiers(page: Client) -> None:
    Dataset.objects.filter(name="flights").update(overrides={"sustain": "45m"}, freshness_sla=timedelta(hours=3))
    html = page.get(WHERE).content.decode()
    assert 'name="sla-sustain" value="45m" placeholder="30m"' in html
    assert 'name="sla-freshness" value="3h" placeholder="2h"' in html
    assert 'name="sla-completeness" value="" placeholder="99.9%"' in html


def test_each_sla_says_what_it_is_of(flights: Dataset) -> None:
    assert [sla.name for sla in form_of_dataset(flights).slas if not sla.hint] == []


def test_nothing_typed_changes_nothing(page: Client, form: dict[str, str], flights: Dataset) -> None:
    assert "Nothing differs" in text_of(save(page, form))
    flights.refresh_from_db()
    assert flights.metadata_version == 1


def test_what_differs_is_saved_once(page: Client, form: dict[str, str], flights: Dataset) -> None:
    answer = save(page, form, tier="0", sla__sustain="45m", sla__freshness="3h", paused="on", every="10m")
    assert "Saved: tier, SLAs, whole within, the feed. Its tests follow within seconds." in text_of(answer)
    flights.refresh_from_db()
    assert (flights.tier, flights.overrides, flights.freshness_sla) == (0, {"sustain": "45m"}, timedelta(hours=3))
    assert (flights.feed.paused, flights.feed.every) == (True, timedelta(minutes=10))
    assert flights.metadata_version == 2


def test_an_empty_field_is_the_tiers_again(page: Client, flights: Dataset, form: dict[str, str]) -> None:
    Dataset.objects.filter(pk=flights.pk).update(overrides={"sustain": "45m"}, freshness_sla=timedelta(hours=3))
    save(page, form, sla__sustain="", sla__freshness="")
    flights.refresh_from_db()
    assert (flights.overrides, flights.freshness_sla) == ({}, None)


def test_a_calendar_is_kept_with_the_slas_and_said_in_words(
    page: Client, form: dict[str, str], flights: Dataset
) -> None:
    save(page, form, calendar="0 6 * * mon-fri", holidays="US")
    flights.refresh_from_db()
    assert flights.overrides == {"calendar": "0 6 * * mon-fri", "holidays": "US"}
    assert "Next at 06:00 on Wed 18 Nov, America/New_York." in text_of(page.get(WHERE))


def test_what_the_page_does_not_show_stays(page: Client, form: dict[str, str], flights: Dataset) -> None:
    Dataset.objects.filter(pk=flights.pk).update(overrides={"grace": "2d", "holidays": ["US", "2026-12-24"]})
    save(page, form, tier="0", holidays="US, 2026-12-24")
    flights.refresh_from_db()
    assert flights.overrides == {"grace": "2d", "holidays": ["US", "2026-12-24"]}


def test_the_policies_have_fields_of_their_own(page: Client, form: dict[str, str], flights: Dataset) -> None:
    more = [{"name": name, "type": "string", "nullable": True} for name in ("loaded_at", "host")]
    Dataset.objects.filter(pk=flights.pk).update(overrides={"sustain": "45m"}, columns=[*flights.columns, *more])
    answer = save(page, form, sla__sustain="45m", schema_changes="incident", not_compared="loaded_at , host")
    assert "Saved: not compared, schema changes. Its tests follow within seconds." in text_of(answer)
    flights.refresh_from_db()
    assert flights.overrides == {
        "sustain": "45m",
        "schema_changes": "incident",
        "not_compared": ["loaded_at", "host"],
    }
    html = page.get(WHERE).content.decode()
    assert '<option value="incident" selected>' in html
    assert 'name="not_compared" value="loaded_at, host"' in html


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("schema_changes", "shwo", "is not known. Did you mean show?"),
        ("not_compared", "flight_dat", "There is no column flight_dat. Did you mean flight_date?"),
        ("not_compared", "carrier", "carrier is part of the primary key"),
        ("calendar", "often", "five are wanted"),
        ("holidays", "UZA", "no country"),
        ("sla-sustain", "soon", "is not a duration: write 30m, 2h or 1d."),
        ("sla-completeness", "2", "is not a share: write it in percent"),
        ("sla-severity", "scream", "is not known."),
        ("tier", "9", "tiers go from 0 (highest) to 5"),
        ("every", "often", "is no length of time"),
        ("grace_until", "later", "is not a time"),
        ("event_time", "flight_dat", "Did you mean flight_date?"),
    ],
)
def test_each_mistake_is_explained_at_its_field(
    page: Client, form: dict[str, str], flights: Dataset, field: str, value: str, message: str
) -> None:
    answer = page.post(WHERE, {**form, field: value})
    assert answer.status_code == 422
    assert message in text_of(answer)
    flights.refresh_from_db()
    assert flights.metadata_version == 1


def test_of_two_people_the_slower_one_is_told(page: Client, form: dict[str, str], flights: Dataset) -> None:
    Dataset.objects.filter(pk=flights.pk).update(metadata_version=2)
    assert "was changed by somebody else just now" in text_of(save(page, form, tier="0"))
    flights.refresh_from_db()
    assert flights.tier == 1


def test_off_boarding_says_what_becomes_of_it_and_can_be_undone(page: Client, flights: Dataset) -> None:
    text = text_of(page.get(WHERE))
    assert "Its open incidents are resolved as off-boarded." in text
    page.post("/datasets/flights/offboard")
    flights.refresh_from_db()
    assert flights.offboarded_at is not None
    assert "Restore flights" in text_of(page.get(WHERE))
    page.post("/datasets/flights/restore")
    flights.refresh_from_db()
    assert flights.offboarded_at is None


def test_a_viewer_sees_the_values_and_no_control(guest: Client) -> None:
    html = guest.get(WHERE).content.decode()
    assert "Whole within" in html
    assert "To change it you need to be owner or admin of team flight-ops." in html
    assert not re.search(r'<input[^>]* name="tier"|Off-board flights', html)
    for where in (WHERE, "/datasets/flights/offboard", "/datasets/flights/restore"):
        assert guest.post(where, {"tier": "0", "version": "1"}).status_code == 403


def test_what_saving_would_do_is_shown_on_request(page: Client, form: dict[str, str], flights: Dataset) -> None:
    answer = save(page, form, sla__duplicates="3%", check="1")
    assert "duplicates(this) &lt; 3%" in text_of(answer)
    assert 'name="sla-duplicates" value="3%"' in answer.content.decode(), "what was typed is still there"
    flights.refresh_from_db()
    assert (flights.metadata_version, flights.overrides) == (1, {})
    assert "cannot be used" in text_of(save(page, form, sla__duplicates="many", check="1"))


def test_the_kind_is_shown_and_changed(page: Client, form: dict[str, str], flights: Dataset) -> None:
    Dataset.objects.filter(pk=flights.pk).update(kind="append-only")
    assert '<option value="append-only" selected>' in page.get(WHERE).content.decode()
    assert "Saved: kind." in text_of(save(page, form, kind="append-plus-update"))
    flights.refresh_from_db()
    assert flights.kind == "append-plus-update"
