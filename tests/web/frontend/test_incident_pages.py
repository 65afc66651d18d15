"""The inbox and the page of an incident, and what people do there."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.test import Client

from incidents.models import Incident, IncidentEvent, Message
from lakehub.accounts.models import Role
from lakehub.kernel.outcome import Verdict
from quality.models import Category, Unit
from tests import factories as make


def text_of(page: Client, where: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.get(where).content.decode()))


def test_the_inbox_is_worst_first_and_counts_its_views(page: Client) -> None:
    html = page.get("/incidents").content.decode()
    order = re.findall(r'class="name" href="/incidents/\d+">(\w+ · [\w-]+)', html)
    assert order[:4] == ["weather · Freshness", "flights · Cross-dc", "weather · Completeness", "weather · Duplicates"]
    text = text_of(page, "/incidents")
    assert "Open 4 Mine 1 Unassigned 3 Suppressed 1 Snoozed 1 Resolved, 7 d 1" in text
    assert "Resolved today" in text


@pytest.mark.parametrize(
    ("view", "dataset_name"), [("mine", "flights"), ("suppressed", "weather"), ("resolved", "airports")]
)
def test_a_view_shows_its_own(page: Client, view: str, dataset_name: str) -> None:
    html = page.get(f"/incidents?view={view}").content.decode()
    main = html[html.index('id="list"') :]
    assert re.findall(r'class="name" href="/incidents/\d+">(\w+) ', main) == [dataset_name]


def test_an_empty_view_says_so(page: Client) -> None:
    assert "No incident of your teams is of this kind." in text_of(page, "/incidents?view=reported")
    assert "open" in text_of(page, "/incidents?view=nonsense")


def test_the_title_says_what_is_wrong(page: Client, cross_dc: Incident) -> None:
    html = page.get(f"/incidents/{cross_dc.pk}").content.decode()
    assert "<h1>dc2 lacks 10 of 985 rows of Mon 16 Nov</h1>" in html
    text = text_of(page, f"/incidents/{cross_dc.pk}")
    assert "The gate answers fail for [16 Nov, 17 Nov) in dc2." in text
    assert "Resolved not yet a pass resolves it; next rerun 14:59" in text


def test_the_timeline_is_newest_first_and_says_what_was_not_sent_and_why(page: Client, cross_dc: Incident) -> None:
    text = text_of(page, f"/incidents/{cross_dc.pk}")
    line = text[text.index("Timeline") :]
    order = ["Next: a rerun", "ines commented", "ines annotated", "fail , 98.98% (975 of 985)", "ines acknowledged"]
    places = [line.index(words) for words in order]
    assert places == sorted(places)
    assert "not sent Tier 1 goes to their daily digest" in line


def test_a_held_message_names_what_holds_it(page: Client) -> None:
    held = Incident.objects.get(category=Category.COMPLETENESS)
    text = text_of(page, f"/incidents/{held.pk}")
    assert "not sent yet Late data explains it" in text
    assert "Suppressed by incident #" in text


def test_the_timeline_can_be_narrowed(page: Client, cross_dc: Incident) -> None:
    text = text_of(page, f"/incidents/{cross_dc.pk}?show=messages")
    assert "Webhook to hooks.example.org" in text
    assert "ines commented" not in text


def test_the_plot_shades_warn_and_fail(page: Client, cross_dc: Incident) -> None:
    html = page.get(f"/incidents/{cross_dc.pk}").content.decode()
    plot = json.loads(re.findall(r'<script id="runs" type="application/json">(.*?)</script>', html)[0])
    assert [shade["state"] for shade in plot["shades"]] == ["warn", "fail"]
    assert [point["state"] for point in plot["points"]] == ["pass"] + ["fail"] * 7
    assert plot["next"] == "2026-11-17T14:59:00"


def test_acknowledging_takes_it(page: Client, late: Incident) -> None:
    answer = page.post(f"/incidents/{late.pk}/acknowledge", {"revision": late.revision}, follow=True)
    assert f"#{late.pk} is yours." in answer.content.decode()
    late.refresh_from_db()
    assert late.state == "acknowledged"
    assert late.assignee is not None
    assert late.assignee.username == "ines"


def test_of_two_at_once_one_wins_and_the_other_is_told(page: Client, late: Incident) -> None:
    page.post(f"/incidents/{late.pk}/acknowledge", {"revision": late.revision})
    answer = page.post(f"/incidents/{late.pk}/acknowledge", {"revision": late.revision}, follow=True)
    assert "ines was faster: acknowledged" in answer.content.decode()


def test_a_form_that_is_out_of_date_changes_nothing(page: Client, late: Incident) -> None:
    page.post(f"/incidents/{late.pk}/acknowledge", {"revision": late.revision})
    stale = {"backfill": "needed", "revision": late.revision}
    answer = page.post(f"/incidents/{late.pk}/annotate", stale, follow=True)
    assert "is not as you saw it" in answer.content.decode()
    late.refresh_from_db()
    assert late.backfill == ""


def test_rerun_makes_the_failing_units_due(page: Client, cross_dc: Incident) -> None:
    answer = page.post(f"/incidents/{cross_dc.pk}/rerun", follow=True)
    assert "1 test run of" in answer.content.decode()
    unit = Unit.objects.get(spans__incident=cross_dc)
    assert unit.lane == 0


def test_annotating_keeps_an_eta_that_is_not_touched(page: Client, cross_dc: Incident) -> None:
    form = {"eta": "2026-11-17T15:30", "backfill": "done", "root_cause": "replication", "root_cause_text": "x"}
    page.post(f"/incidents/{cross_dc.pk}/annotate", {**form, "revision": cross_dc.revision})
    eta = cross_dc.eta
    cross_dc.refresh_from_db()
    assert cross_dc.backfill == "done"
    assert cross_dc.eta == eta
    event = IncidentEvent.objects.filter(incident=cross_dc, kind="annotated").first()
    assert event is not None
    assert "ETA" not in event.text


def test_an_eta_is_read_in_the_viewers_zone(page: Client, late: Incident) -> None:
    page.post(f"/incidents/{late.pk}/annotate", {"eta": "2026-11-17T16:00", "revision": late.revision})
    late.refresh_from_db()
    assert late.eta == make.NOW.replace(hour=21, minute=0)


def test_an_eta_in_the_past_is_refused_in_words(page: Client, late: Incident) -> None:
    answer = page.post(
        f"/incidents/{late.pk}/annotate", {"eta": "2026-11-17T10:00", "revision": late.revision}, follow=True
    )
    assert "Recovery is expected in the future" in answer.content.decode()


def test_a_comment_is_on_the_timeline_and_is_escaped(page: Client, late: Incident) -> None:
    page.post(f"/incidents/{late.pk}/comment", {"text": "<script>alert(1)</script>"})
    html = page.get(f"/incidents/{late.pk}").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_snoozing_and_ending_it(page: Client, late: Incident) -> None:
    page.post(f"/incidents/{late.pk}/snooze", {"until": "2026-11-18T09:00", "revision": late.revision})
    late.refresh_from_db()
    assert late.snoozed_until == make.NOW.replace(day=18, hour=14, minute=0)
    page.post(f"/incidents/{late.pk}/wake", {"revision": late.revision})
    late.refresh_from_db()
    assert late.snoozed_until is None


def test_resolving_by_force_needs_a_reason_and_can_be_taken_back(page: Client, cross_dc: Incident) -> None:
    refused = page.post(f"/incidents/{cross_dc.pk}/resolve", {"how": "wrong_test", "why": " "}, follow=True)
    assert "Say why" in refused.content.decode()
    page.post(f"/incidents/{cross_dc.pk}/resolve", {"how": "wrong_test", "why": "dc2 is a test lake"})
    cross_dc.refresh_from_db()
    assert (cross_dc.resolution, cross_dc.false_positive) == ("false_positive", "wrong_test")
    assert "Resolved by force" in text_of(page, f"/incidents/{cross_dc.pk}")
    answer = page.post(f"/incidents/{cross_dc.pk}/reopen", {"revision": cross_dc.revision}, follow=True)
    assert f"#{cross_dc.pk} is open again." in answer.content.decode()


def test_accepting_says_what_the_gate_will_answer(page: Client, cross_dc: Incident) -> None:
    page.post(f"/incidents/{cross_dc.pk}/resolve", {"how": "accepted", "why": "The rows are lost"})
    cross_dc.refresh_from_db()
    assert cross_dc.resolution == "accepted"
    assert Unit.objects.get(spans__incident=cross_dc).verdict == "warn"


@pytest.mark.parametrize(
    "action",
    [
        "acknowledge",
        "rerun",
        "annotate",
        "comment",
        "snooze",
        "wake",
        "resolve",
        "reopen",
        "assign",
        "release",
        "merge",
        "split",
        "backfill",
    ],
)
def test_a_guest_may_look_but_not_act(guest: Client, cross_dc: Incident, action: str) -> None:
    before = Incident.objects.filter(pk=cross_dc.pk).values().get()
    assert (
        guest.post(f"/incidents/{cross_dc.pk}/{action}", {"text": "hello", "why": "x", "how": "accepted"}).status_code
        == 403
    )
    assert Incident.objects.filter(pk=cross_dc.pk).values().get() == before
    assert "To act on it you need to be" in guest.get(f"/incidents/{cross_dc.pk}").content.decode()


@pytest.mark.parametrize("revision", ["²", "9" * 5000])
def test_a_revision_that_is_no_number_is_none(page: Client, late: Incident, revision: str) -> None:
    answer = page.post(f"/incidents/{late.pk}/acknowledge", {"revision": revision}, follow=True)
    assert f"#{late.pk} is yours." in answer.content.decode()


def test_acting_is_a_post_with_a_token(page: Client, late: Incident) -> None:
    assert page.get(f"/incidents/{late.pk}/acknowledge").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make.user("other", is_superuser=True))
    assert strict.post(f"/incidents/{late.pk}/acknowledge").status_code == 403


def test_a_form_does_not_send_people_elsewhere(page: Client, late: Incident) -> None:
    answer = page.post(f"/incidents/{late.pk}/rerun", {"next": "https://evil.example/"})
    assert answer.headers["Location"] == f"/incidents/{late.pk}"
    assert page.post(f"/incidents/{late.pk}/rerun", {"next": "/"}).headers["Location"] == "/"


def test_on_call_may_act(late: Incident) -> None:
    person = make.user("maya")
    make.member(person, late.dataset.team, Role.ON_CALL)
    client = Client()
    client.force_login(person)
    client.post(f"/incidents/{late.pk}/acknowledge", {"revision": late.revision})
    late.refresh_from_db()
    assert late.acknowledged_at is not None
    assert late.acknowledged_at - make.NOW < timedelta(minutes=1)


# Who has it, what belongs to it, who hears of it


def test_it_is_given_to_somebody_and_taken_back(page: Client, late: Incident) -> None:
    html = page.get(f"/incidents/{late.pk}").content.decode()
    assert '<option value="ines">Inês Duarte</option>' in html
    page.post(f"/incidents/{late.pk}/assign", {"assignee": "ines", "revision": late.revision})
    late.refresh_from_db()
    assert late.assignee is not None
    page.post(f"/incidents/{late.pk}/acknowledge", {"revision": late.revision})
    answer = page.post(f"/incidents/{late.pk}/release", follow=True)
    assert f"Nobody has #{late.pk} any more." in answer.content.decode()
    late.refresh_from_db()
    assert (late.state, late.assignee) == ("open", None)


def test_two_are_merged_and_split_again(page: Client, cross_dc: Incident) -> None:
    unit = Unit.objects.get(spans__incident=cross_dc)
    earlier = make.unit(unit.test, unit.copy, make.day("2026-08-03"), Verdict.FAIL)
    other = make.incident(cross_dc.dataset, Category.CONSISTENCY, earlier)
    html = page.get(f"/incidents/{cross_dc.pk}").content.decode()
    assert f'<option value="{other.pk}">#{other.pk}' in html
    answer = page.post(
        f"/incidents/{cross_dc.pk}/merge", {"other": other.pk, "revision": cross_dc.revision}, follow=True
    )
    assert f"What fails of #{other.pk} belongs to #{cross_dc.pk} now." in answer.content.decode()
    assert f'<input type="checkbox" name="unit" value="{earlier.pk}">' in answer.content.decode()
    page.post(f"/incidents/{cross_dc.pk}/split", {"unit": [earlier.pk]})
    made = Incident.objects.latest("pk")
    assert [span.unit_id for span in made.spans.all()] == [earlier.pk]


@pytest.mark.parametrize(("action", "message"), [("merge", "Choose the incident"), ("split", "Choose what goes")])
def test_a_merge_or_a_split_of_nothing_is_refused_in_words(
    page: Client, cross_dc: Incident, action: str, message: str
) -> None:
    assert message in page.post(f"/incidents/{cross_dc.pk}/{action}", follow=True).content.decode()


def test_a_merge_that_was_decided_on_an_old_view_changes_nothing(page: Client, cross_dc: Incident) -> None:
    unit = Unit.objects.get(spans__incident=cross_dc)
    other = make.incident(
        cross_dc.dataset,
        Category.CONSISTENCY,
        make.unit(unit.test, unit.copy, make.day("2026-08-03"), Verdict.FAIL),
    )
    asked = {"other": other.pk, "revision": cross_dc.revision + 1}
    assert "is not as you saw it" in page.post(f"/incidents/{cross_dc.pk}/merge", asked, follow=True).content.decode()
    assert other.spans.count() == 1


def test_a_backfill_is_asked_for_and_linked(page: Client, cross_dc: Incident) -> None:
    answer = page.post(f"/incidents/{cross_dc.pk}/backfill", {"revision": cross_dc.revision}, follow=True)
    cross_dc.refresh_from_db()
    run = cross_dc.backfill_run
    assert run is not None
    assert run.params == {"partitions": ["2026-11-16"]}
    html = answer.content.decode()
    assert f"Run {run.pk} repairs it" in html
    assert f'href="/datasets/flights/ingestion#run-{run.pk}"' in html
    assert f'id="run-{run.pk}"' in page.get("/datasets/flights/ingestion").content.decode()


def test_a_run_of_the_dataset_can_be_named_as_the_backfill(page: Client, cross_dc: Incident) -> None:
    run = make.run(make.copy_of(cross_dc.dataset, "dc2"))
    assert f'<option value="{run.pk}"' in page.get(f"/incidents/{cross_dc.pk}").content.decode()
    page.post(f"/incidents/{cross_dc.pk}/annotate", {"backfill": "running", "backfill_run": run.pk})
    cross_dc.refresh_from_db()
    assert (cross_dc.backfill, cross_dc.backfill_run) == ("running", run)


def test_somebody_is_mentioned(page: Client, late: Incident) -> None:
    page.post(f"/incidents/{late.pk}/comment", {"text": "@ines, look"})
    assert Message.objects.get(occasion="mentioned").recipient_reason.startswith("mentioned: ines")
    answer = page.post(f"/incidents/{late.pk}/comment", {"text": "@inez, look"}, follow=True)
    assert "Did you mean `ines`?" in answer.content.decode()


def test_everybody_may_follow_a_dataset(guest: Client, cross_dc: Incident) -> None:
    assert "Follow flights" in guest.get(f"/incidents/{cross_dc.pk}").content.decode()
    form = {"follow": "1", "next": f"/incidents/{cross_dc.pk}"}
    html = guest.post("/datasets/flights/follow", form, follow=True).content.decode()
    assert "You follow flights: new incidents, their ETA and their end reach you nowhere" in html
    assert "Follow no more" in html
    guest.post("/datasets/flights/follow", {"follow": "0"})
    assert "Follow flights" in guest.get("/datasets/flights").content.decode()


def test_what_it_may_reach_is_where_it_fails(page: Client, cross_dc: Incident) -> None:
    near, far = make.dataset("hourly", copies=("dc2",)), make.dataset("features", copies=("dc2",))
    make.edge(cross_dc.dataset, near)
    make.edge(near, far)
    text = text_of(page, f"/incidents/{cross_dc.pk}")
    assert "features" in text
    assert "2 steps away, over hourly" in text
