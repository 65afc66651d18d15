"""Writing a test: checked while it is typed, saved as a version, refused with the place of what is wrong."""

from __future__ import annotations

import html as entities
import re

import pytest
from django.test import Client

from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import Dataset
from quality.models import QualityTest
from tests import factories as make

NEW = "/datasets/flights/new-test"
DRAFT = {"title": "Few nulls in origin", "expression": "nulls(this.origin) / rows(this) < 5%", "gating": "on"}


def text_of(answer: object) -> str:
    page = re.sub(r"<[^>]+>", "", answer.content.decode())  # type: ignore[attr-defined]
    return entities.unescape(re.sub(r"[ ]{3,}|\n{2,}", "\n", page))


def check(page: Client, expression: str) -> str:
    return text_of(page.post("/datasets/flights/expression", {"expression": expression}))


def test_an_expression_is_understood_in_both_forms(page: Client) -> None:
    html = check(page, "null_share(this.origin) < 5% with sustain=1h")
    assert "Understood" in html
    assert "nulls(this.origin) / rows(this) < 5% with sustain=1h" in html
    assert "lt(div(nulls(this.origin), rows(this)), 5%) with sustain=1h" in html


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("nulls(this.orign) / rows(this) < 5%", "This dataset has no column orign. Did you mean origin?"),
        ("rowz(this) > 0", "There is no function rowz. Did you mean rows?"),
        ("rows(flihgts) > 0", "Did you mean flights?"),
        ("rows(this)", "A test says what must hold"),
        ("rows(this) > ", "The expression ends too early"),
    ],
)
def test_a_mistake_is_explained_with_its_place(page: Client, expression: str, message: str) -> None:
    answer = check(page, expression)
    assert message in answer
    assert "^" in answer
    assert "Line 1, column" in answer


def test_the_check_is_a_part_without_a_frame(page: Client) -> None:
    html = page.post("/datasets/flights/expression", {"expression": "rows(this) > 0"}).content.decode()
    assert "<html" not in html
    assert page.get("/datasets/flights/expression").status_code == 405


def test_without_script_a_button_checks_and_saves_nothing(page: Client) -> None:
    answer = page.post(NEW, {**DRAFT, "act": "check"})
    assert "Understood" in text_of(answer)
    assert 'value="Few nulls in origin"' in answer.content.decode()
    assert not QualityTest.objects.filter(title=DRAFT["title"]).exists()


def test_a_test_is_saved_named_after_its_title_and_audited(page: Client, flights: Dataset) -> None:
    answer = page.post(NEW, {**DRAFT, "act": "save"}, follow=True)
    made = flights.tests.get(key="few-nulls-in-origin")
    assert (made.generated, made.gating, made.version and made.version.number) == (False, True, 1)
    assert "Few nulls in origin is saved" in text_of(answer)
    assert AuditEntry.objects.get(action="write test").actor == "ines"


def test_a_change_becomes_a_version(page: Client, flights: Dataset) -> None:
    page.post(NEW, {**DRAFT, "key": "few"})
    assert "nulls(this.origin)" in page.get("/datasets/flights/tests/few/edit").content.decode()
    page.post("/datasets/flights/tests/few/edit", {**DRAFT, "expression": "nulls(this.origin) == 0", "gating": ""})
    made = flights.tests.get(key="few")
    assert made.version is not None
    assert (made.version.number, made.version.expression) == (2, "nulls(this.origin) == 0")


def test_what_cannot_be_saved_keeps_what_was_typed(page: Client) -> None:
    answer = page.post(NEW, {**DRAFT, "expression": "nulls(this.orign) < 5", "key": "Few!"})
    assert answer.status_code == 422
    text = text_of(answer)
    assert "Nothing was saved." in text
    assert "Small letters, digits" in text
    assert "Did you mean origin?" in text
    assert "nulls(this.orign)" in answer.content.decode()


def test_a_new_test_never_takes_the_place_of_another(page: Client, flights: Dataset) -> None:
    generated = flights.tests.filter(generated=True)[0]
    answer = page.post(NEW, {**DRAFT, "key": generated.key})
    assert answer.status_code == 422
    assert "already: edit that one, or choose another key" in text_of(answer)


def test_a_generated_test_has_no_form(page: Client, flights: Dataset) -> None:
    generated = flights.tests.filter(generated=True)[0]
    assert page.get(f"/datasets/flights/tests/{generated.key}/edit").status_code == 404


def test_an_address_may_bring_a_draft(page: Client) -> None:
    html = page.get(f"{NEW}?expression=rows(this) > 0&title=Rows").content.decode()
    assert "rows(this) &gt; 0</textarea>" in html
    assert "Understood" in html


def test_an_offboarded_dataset_takes_no_tests(page: Client) -> None:
    Dataset.objects.filter(name="flights").update(offboarded_at=make.NOW)
    assert page.get(NEW).status_code == 404
