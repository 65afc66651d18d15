"""Words that people edit reach documented names only."""

from __future__ import annotations

import pytest
from hypothesis import given

from incidents.domain.alerting.message_template import render_line, render_text, template_problem, variables_in
from tests.text_strategies import any_text, text_of

KNOWN = ("dataset", "title", "link", "cause")
VALUES = {"dataset": "flights", "title": "rows are missing", "link": "https://lakehub.example/incidents/1", "cause": ""}

HOSTILE = (
    "{{ dataset }}",
    "{{dataset}}",
    "{% debug %}",
    "{% include '/etc/passwd' %}",
    "{# comment #}",
    "{dataset.__class__}",
    "{dataset.__class__.__mro__[1].__subclasses__}",
    "{dataset[0]}",
    "{dataset!r}",
    "{dataset:>10}",
    "{0}",
    "{}",
    "{ dataset }",
    "{dataset|upper}",
    "{Dataset}",
    "{settings.SECRET_KEY}",
    "{dataset",
    "dataset}",
    "{{{dataset}}}",
    "%(dataset)s",
    "$dataset",
    "${dataset}",
)


@pytest.mark.parametrize("template", HOSTILE)
def test_nothing_but_a_known_name_in_braces_is_a_variable(template: str) -> None:
    """What is no variable is refused when it is written, and stays as it is where it is filled in all the same."""
    inner = "{dataset}"
    assert template_problem(template, KNOWN) or template in ("%(dataset)s", "$dataset") or template == "${dataset}"
    filled = render_line(template, VALUES)
    assert filled == " ".join(template.replace(inner, "flights").split())


def test_a_name_that_is_not_known_is_answered_with_the_nearest() -> None:
    assert template_problem("{title} of {datset}", KNOWN) == "There is no `{datset}`. Did you mean `dataset`?"
    assert template_problem("{title} of {dataset}: {link}", KNOWN) == ""


def test_what_a_value_says_is_not_looked_at_again() -> None:
    values = VALUES | {"title": "{dataset} {link} {{ dataset }}"}
    assert render_line("{title}", values) == "{dataset} {link} {{ dataset }}"


@pytest.mark.parametrize(
    "break_",
    ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x00", "\n\n"],
)
def test_no_line_break_comes_into_a_subject(break_: str) -> None:
    values = VALUES | {"title": f"rows{break_}Bcc: spy@example.org"}
    assert render_line(f"{{dataset}}{break_}{{title}}", values) == "flights rows Bcc: spy@example.org"


def test_a_value_stays_on_its_line_of_a_body() -> None:
    values = VALUES | {"title": "rows\nState: resolved\u202e"}
    assert render_text("Title: {title}\nLink: {link}", values).splitlines() == [
        "Title: rows State: resolved",
        "Link: https://lakehub.example/incidents/1",
    ]


def test_a_line_that_has_nothing_to_say_is_left_out() -> None:
    assert render_text("Dataset: {dataset}\nCause: {cause}\n\nSee {link} {cause}", VALUES) == (
        "Dataset: flights\n\nSee https://lakehub.example/incidents/1"
    )


def test_names_are_found() -> None:
    assert variables_in("{title} of {dataset}; {nothing.here} { link }") == {"title", "dataset"}


@given(any_text(60), any_text(30))
def test_whatever_is_written_a_subject_is_one_line_and_holds_what_it_was_given(template: str, value: str) -> None:
    subject = render_line(template, dict.fromkeys(KNOWN, value))
    assert len(subject.splitlines()) <= 1
    if not variables_in(template) & set(KNOWN):
        assert subject == render_line(template, {})


@given(text_of("{}a_.[]!:|% \n", 12))
def test_a_template_that_is_taken_has_no_brace_left(template: str) -> None:
    if not template_problem(template, ("a", "a_")):
        left = template.replace("{a_}", "").replace("{a}", "")
        assert "{" not in left
        assert "}" not in left
