"""What Slack and PagerDuty are told, as a server on loopback in their place receives it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from incidents.channels import CHANNELS, DeliveryError, Notification
from tests.contracts.conftest import FACTS, NOTE, NOW, ROUTING_KEY
from tests.webhook_receiver import Receiver


def page(note: Notification) -> None:
    CHANNELS.get("pagerduty")().send(note, ROUTING_KEY, now=NOW)


def test_an_incident_is_one_alert_from_trigger_to_resolve(receiver: Receiver) -> None:
    receiver.status = 202
    for number, occasion in enumerate(("opened", "worse", "acknowledged", "resolved"), start=7):
        page(replace(NOTE, id=number, occasion=occasion))
    events = receiver.posted()
    assert [event["event_action"] for event in events] == ["trigger", "trigger", "acknowledge", "resolve"]
    assert {event["dedup_key"] for event in events} == {"lakehub:127.0.0.1:8000:incident-214"}
    assert {event["routing_key"] for event in events} == {ROUTING_KEY}


def test_one_that_nobody_has_any_more_notifies_again(receiver: Receiver) -> None:
    for number, occasion in enumerate(("opened", "acknowledged", "released"), start=7):
        page(replace(NOTE, id=number, occasion=occasion))
    assert [event["event_action"] for event in receiver.posted()] == ["trigger", "acknowledge", "resolve", "trigger"]


def test_what_is_over_by_the_time_it_is_said_to_be_released_stays_over(receiver: Receiver) -> None:
    page(replace(NOTE, occasion="released", facts=FACTS | {"state": "resolved"}))
    assert [event["event_action"] for event in receiver.posted()] == ["resolve"]


def test_another_incident_is_another_alert(receiver: Receiver) -> None:
    page(NOTE)
    page(replace(NOTE, thread="incident-215"))
    assert len({event["dedup_key"] for event in receiver.posted()}) == 2


def test_an_alert_says_what_where_how_bad_and_where_to_look(receiver: Receiver) -> None:
    page(NOTE)
    (event,) = receiver.posted()
    payload = event["payload"]
    assert payload["summary"] == "[opened] flights: rows are missing"
    assert (payload["source"], payload["class"], payload["severity"]) == ("flights", "consistency", "error")
    assert payload["timestamp"] == "2026-11-17T19:32:00+00:00"
    assert payload["custom_details"]["cause"] == FACTS["cause"]
    assert event["links"] == [{"href": FACTS["url"], "text": "The incident"}]


def test_what_is_said_of_a_resolved_incident_raises_no_alert(receiver: Receiver) -> None:
    page(replace(NOTE, occasion="eta", facts=FACTS | {"state": "resolved"}))
    assert receiver.got == []


def test_a_list_of_incidents_is_no_alert(receiver: Receiver) -> None:
    page(replace(NOTE, kind="digest", occasion="digest", thread=""))
    assert receiver.got == []


def test_a_trial_is_taken_back_at_once(receiver: Receiver) -> None:
    page(replace(NOTE, occasion="test"))
    assert [event["event_action"] for event in receiver.posted()] == ["trigger", "resolve"]


def test_what_pagerduty_does_not_like_is_said(receiver: Receiver) -> None:
    receiver.status, receiver.says = (
        400,
        '{"status": "invalid event", "errors": ["Length of routing_key is incorrect"]}',
    )
    with pytest.raises(DeliveryError, match="answered 400: Length of routing_key is incorrect") as caught:
        page(NOTE)
    assert caught.value.is_permanent


def test_slack_gets_blocks_and_a_text_for_notifications(receiver: Receiver) -> None:
    CHANNELS.get("slack")().send(NOTE, receiver.url, now=NOW)
    (message,) = receiver.posted()
    assert message["text"] == "[opened] flights: rows\nare missing"
    assert [block["type"] for block in message["blocks"]] == ["header", "section", "section", "actions"]
    assert {"type": "mrkdwn", "text": "*Dataset*\nflights"} in message["blocks"][1]["fields"]
    assert message["blocks"][3]["elements"][0]["url"] == FACTS["url"]


def test_nothing_in_a_note_calls_a_whole_channel(receiver: Receiver) -> None:
    CHANNELS.get("slack")().send(
        replace(NOTE, subject="<!channel>", body="<http://evil|here> & more"), receiver.url, now=NOW
    )
    body = receiver.got[0][1].decode()
    assert "<!channel>" not in body.replace('"plain_text", "text": "<!channel>"', "")
    assert "&lt;http://evil|here&gt; &amp; more" in body
    assert "&lt;!channel&gt; is late" in body


def test_slack_takes_no_more_than_it_says(receiver: Receiver) -> None:
    CHANNELS.get("slack")().send(replace(NOTE, subject="s" * 500, body="b" * 9000), receiver.url, now=NOW)
    header, _, section, _ = receiver.posted()[0]["blocks"]
    assert (len(header["text"]["text"]), len(section["text"]["text"])) == (150, 3000)


def test_what_slack_does_not_like_is_said(receiver: Receiver) -> None:
    receiver.status, receiver.says = 404, "no_service"
    with pytest.raises(DeliveryError, match="answered 404: no_service"):
        CHANNELS.get("slack")().send(NOTE, receiver.url, now=NOW)
