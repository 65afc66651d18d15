"""The first page and the inbox are of my teams; all is a switch that the address keeps. What I reported follows me."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from incidents.models import Incident, IncidentState, UserReport
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset
from lakehub.kernel.outcome import Verdict
from quality.models import Category
from tests import factories as make


def text_of(page: Client, where: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.get(where).content.decode()))


@pytest.fixture
def theirs() -> Incident:
    """Of a team that ines is not in."""
    dataset = make.dataset("their_prices", team=make.team("pricing"), tier=0)
    unit = make.unit(make.quality_test(dataset, Category.DUPLICATES), make.copy_of(dataset), verdict=Verdict.FAIL)
    return make.incident(dataset, Category.DUPLICATES, unit)


@pytest.mark.parametrize("where", ["/", "/incidents"])
def test_what_is_another_teams_is_shown_with_all_only(page: Client, theirs: Incident, where: str) -> None:
    assert "their_prices" not in text_of(page, where)
    assert "their_prices" in text_of(page, f"{where}?teams=all")


def test_the_count_of_the_menu_is_that_of_the_inbox(page: Client, theirs: Incident) -> None:
    mine = Incident.objects.filter(resolved_at=None).exclude(pk=theirs.pk).count()
    text = text_of(page, "/incidents")
    assert f"{mine} incidents open" in text
    assert f"Incidents {mine} open" in text
    assert f"{mine + 1} incidents open" in text_of(page, "/incidents?teams=all")


@pytest.mark.parametrize("where", ["/?teams=all", "/incidents?view=open&teams=all"])
def test_links_keep_the_choice(page: Client, theirs: Incident, where: str) -> None:
    html = page.get(where).content.decode()
    assert re.search(r'aria-current="true"[^>]*>All<', html)
    own = re.findall(r'<a [^>]*href="(\?view=[^"]*|/\?days=[^"]*)"', html)
    assert own
    assert all("teams=all" in link for link in own)


def test_the_switch_keeps_the_view(page: Client) -> None:
    assert 'href="/incidents?view=unassigned&amp;teams=all"' in page.get("/incidents?view=unassigned").content.decode()


def test_who_is_in_no_team_sees_everything_and_no_switch(client: Client, theirs: Incident) -> None:
    client.force_login(make.user("visitor"))
    assert "their_prices" in text_of(client, "/")
    assert "their_prices" in text_of(client, "/incidents")
    assert "My teams" not in text_of(client, "/")


def test_a_team_without_datasets_is_told_so(client: Client) -> None:
    person = make.user("newcomer")
    make.member(person, make.team("empty-team"))
    client.force_login(person)
    text = text_of(client, "/")
    assert "Your teams have no dataset yet" in text
    assert "Every dataset may be read" not in text


def test_what_is_assigned_to_me_is_mine_in_whatever_team(page: Client, theirs: Incident, ines: User) -> None:
    Incident.objects.filter(pk=theirs.pk).update(assignee=ines)
    assert "their_prices" in text_of(page, "/incidents?view=mine")


@pytest.fixture
def reporter(theirs: Incident) -> Client:
    """Somebody who may only look, and reported something about another team's data."""
    client = Client()
    client.force_login(make.user("rita"))
    answer = client.post(
        "/incidents/report",
        {"dataset": "their_prices", "from": "2026-11-10", "to": "2026-11-11", "category": "others", "text": "Odd"},
    )
    assert answer.status_code == 302
    return client


def test_who_reported_is_told_where_to_find_it(reporter: Client) -> None:
    number = Incident.objects.get(report__reporter__username="rita").pk
    assert "Reported by me" in text_of(reporter, f"/incidents/{number}")


def test_a_report_stays_in_sight_to_its_end(reporter: Client) -> None:
    number = Incident.objects.get(report__reporter__username="rita").pk
    assert "Reported by me 1" in text_of(reporter, "/incidents")
    states: tuple[dict[str, Any], ...] = (
        {},
        {"state": IncidentState.REJECTED},
        {"state": IncidentState.RESOLVED, "resolved_at": make.NOW, "resolution": "rejected"},
    )
    for fields in states:
        Incident.objects.filter(pk=number).update(**fields)
        assert f"#{number}" in text_of(reporter, "/incidents?view=reported-by-me")


def test_the_reports_of_others_are_not_mine(reporter: Client, page: Client) -> None:
    assert UserReport.objects.filter(reporter__username="rita").exists()
    assert "You reported nothing yet." in text_of(page, "/incidents?view=reported-by-me")


def test_who_may_not_act_has_nothing_to_tick(guest: Client, flights: Dataset) -> None:
    html = guest.get("/incidents").content.decode()
    assert 'name="incident"' not in html
    assert 'value="acknowledge"' not in html


def test_only_what_i_may_act_on_can_be_ticked(page: Client, theirs: Incident) -> None:
    html = page.get("/incidents?teams=all").content.decode()
    assert f'name="incident" value="{theirs.pk}"' not in html
    assert 'name="incident"' in html
