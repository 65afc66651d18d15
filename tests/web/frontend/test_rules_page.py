"""Rules of columns: set by a form of their kind, proposed by the data with evidence, taken back."""

from __future__ import annotations

import html as entities
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from lakehub.catalog.models import Dataset
from quality.domain.generation.rules import RULE_KINDS
from quality.models import ColumnRule
from tests import factories as make

COLUMNS = [
    {"name": "tailnum", "type": "string", "nullable": False},
    {"name": "origin", "type": "string", "nullable": True},
    {"name": "seats", "type": "integer", "nullable": True},
]
WHERE = "/datasets/fleet_list/rules"


@pytest.fixture
def watched(page: Client, tmp_path: Path) -> Dataset:
    """A table of 60 planes, watched where it lies."""
    file = tmp_path / "ops.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE fleet_list (tailnum TEXT NOT NULL, origin TEXT, seats INTEGER)")
        rows = [(f"N{number}", ("JFK", "EWR", "LGA")[number % 3], 100 + number % 7) for number in range(60)]
        database.executemany("INSERT INTO fleet_list VALUES (?, ?, ?)", rows)
    made = make.dataset("fleet_list", by_day=False, ingested=False, columns=COLUMNS, primary_key=["tailnum"])
    make.feed(made, connection=make.connection("real", f"sqlite:///{file}"))
    return made


def text_of(answer: Any) -> str:
    return entities.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode())))


def test_every_kind_can_be_chosen(page: Client, watched: Dataset) -> None:
    html = page.get(WHERE).content.decode()
    assert set(re.findall(r'href="\?kind=(\w+)#add"', html)) == set(RULE_KINDS)
    for kind in RULE_KINDS:
        assert f'name="kind" value="{kind}"' in page.get(f"{WHERE}?kind={kind}").content.decode()


def test_each_kind_has_its_fields_with_what_is_usual(page: Client, watched: Dataset) -> None:
    html = page.get(f"{WHERE}?kind=drift").content.decode()
    assert re.search(r'name="before" value="7d"', html)
    assert re.search(r'name="distance" value="10%"', html)
    assert 'name="column"' not in page.get(f"{WHERE}?kind=volume").content.decode()


def test_a_rule_is_set_and_makes_its_test(page: Client, watched: Dataset) -> None:
    answer = page.post(
        WHERE, {"kind": "range", "column": "seats", "low": "0", "high": "500", "share": "1%"}, follow=True
    )
    text = text_of(answer)
    assert "The rule is set" in text
    assert "outside(this.seats, 0, 500) / rows(this) < 1%" in text
    test = watched.tests.get(key="rule:seats.range")
    assert page.get(f"/datasets/fleet_list/tests/{test.key}").status_code == 200


def test_values_are_one_a_line_and_groups_are_named(page: Client, watched: Dataset) -> None:
    page.post(WHERE, {"kind": "accepted", "column": "origin", "values": "JFK\r\nEWR\nLGA"})
    page.post(WHERE, {"kind": "nulls", "column": "seats", "share": "1%", "by": "origin", "least": "10"})
    rules = {rule.kind: rule for rule in ColumnRule.objects.filter(dataset=watched)}
    assert rules["accepted"].parameters["values"] == ["JFK", "EWR", "LGA"]
    assert (rules["nulls"].by, rules["nulls"].parameters["least"]) == ("origin", "10")
    assert "by=origin" in text_of(page.get(WHERE))


def test_numbers_are_numbers_where_the_column_holds_them(page: Client, watched: Dataset) -> None:
    page.post(WHERE, {"kind": "accepted", "column": "seats", "values": "100\n-1\n1.5"})
    assert ColumnRule.objects.get(dataset=watched).parameters["values"] == [100, -1, 1.5]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("column", "seatz", "Did you mean seats?"),
        ("low", "few", "cannot be read"),
        ("share", "1", "write a share in percent"),
    ],
)
def test_a_mistake_is_explained_at_its_field(
    page: Client, watched: Dataset, field: str, value: str, message: str
) -> None:
    form = {"kind": "range", "column": "seats", "low": "0", "high": "500", "share": "1%", field: value}
    answer = page.post(WHERE, form)
    assert answer.status_code == 422
    assert message in text_of(answer).replace("`", "")
    assert not ColumnRule.objects.filter(dataset=watched).exists()


def test_the_data_proposes_with_evidence_and_what_is_chosen_is_set(page: Client, watched: Dataset) -> None:
    answer = page.get(f"{WHERE}?propose=1")
    text = text_of(answer)
    assert "60 of 60" in text
    assert "Values of origin" in text
    carried = [
        entities.unescape(escaped) for escaped in re.findall(r'name="rule" value="([^"]*)"', answer.content.decode())
    ]
    chosen = next(carried_rule for carried_rule in carried if json.loads(carried_rule)["kind"] == "accepted")
    assert "1 rule is set." in text_of(page.post(f"{WHERE}/take", {"rule": [chosen]}, follow=True))
    assert ColumnRule.objects.get(dataset=watched).parameters == {"values": ["EWR", "JFK", "LGA"]}


@pytest.mark.parametrize("carried", ["{", "[]", '{"kind": "nulls"}', "null"])
def test_what_was_not_proposed_sets_nothing(page: Client, watched: Dataset, carried: str) -> None:
    assert "nothing was set" in text_of(page.post(f"{WHERE}/take", {"rule": [carried]}, follow=True))
    assert not ColumnRule.objects.exists()


def test_data_that_cannot_be_read_says_so(page: Client, watched: Dataset) -> None:
    watched.feed.connection.url = "sqlite:////nowhere/at/all.db"
    watched.feed.connection.save()
    text = text_of(page.get(f"{WHERE}?propose=1"))
    assert "Nothing more to propose" not in text
    assert "could not be read just now" in text or "cannot be read" in text


def test_a_rule_is_taken_back(page: Client, watched: Dataset) -> None:
    page.post(WHERE, {"kind": "nulls", "column": "origin"})
    rule = ColumnRule.objects.get(dataset=watched)
    page.post(f"{WHERE}/{rule.pk}/remove")
    assert not ColumnRule.objects.exists()
    assert watched.tests.get(key="rule:origin.nulls").retired_at is not None


def test_a_viewer_sees_rules_and_no_control(guest: Client) -> None:
    html = guest.get("/datasets/flights/rules?propose=1&kind=nulls").content.decode()
    assert "To set rules you need to be owner or admin" in html
    assert not re.search(r"Propose rules|Set the rule", html)
    assert guest.post("/datasets/flights/rules", {"kind": "nulls", "column": "origin"}).status_code == 403
    assert guest.post("/datasets/flights/rules/take", {"rule": []}).status_code == 403
    assert guest.post("/datasets/flights/rules/1/remove").status_code == 403


@pytest.mark.parametrize("rule", ["[" * 3_000, "[" * 3_000 + "]" * 3_000, "{", "[]", '{"kind": "nulls"}', "9" * 5_000])
def test_a_proposal_that_nobody_made_is_refused(page: Client, watched: Dataset, rule: str) -> None:
    answer = page.post(f"{WHERE}/take", {"rule": rule}, follow=True)
    assert answer.status_code == 200
    assert "What was chosen cannot be read; nothing was set." in text_of(answer)
    assert not ColumnRule.objects.exists()
