from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.alerting import Severity, problems, template, tone
from incidents.domain.precedence import CATEGORIES
from incidents.domain.routing import Filter, Matter, Recipient, once_each
from quality.domain.tiers import TIERS

DOCS = Path(__file__).parents[3] / "docs" / "alerts.md"

matters = st.builds(Matter, st.sampled_from(sorted(TIERS)), st.sampled_from(CATEGORIES), st.sampled_from(Severity))
filters = st.builds(
    Filter,
    st.frozensets(st.sampled_from(sorted(TIERS))),
    st.frozensets(st.sampled_from(CATEGORIES)),
    st.sampled_from(Severity),
)
told = st.lists(
    st.builds(Recipient, st.sampled_from(["email", "log"]), st.sampled_from("ab"), st.just("why"), waits=st.booleans()),
    max_size=8,
)


@given(filters, matters)
def test_an_empty_filter_takes_all_and_each_part_narrows_it(one: Filter, matter: Matter) -> None:
    by_tier, by_category = Filter(tiers=one.tiers), Filter(categories=one.categories)
    assert one.takes(matter) == (
        by_tier.takes(matter) and by_category.takes(matter) and Filter(least=one.least).takes(matter)
    )
    assert Filter().takes(matter)


@given(filters, matters)
def test_what_is_louder_is_taken_wherever_the_quieter_was(one: Filter, matter: Matter) -> None:
    louder = [
        Matter(matter.tier, matter.category, severity) for severity in Severity if severity.at_least(matter.severity)
    ]
    assert not one.takes(matter) or all(map(one.takes, louder))


@given(told)
def test_an_address_is_told_once_and_at_once_if_any_of_its_routes_is(recipients: list[Recipient]) -> None:
    chosen = once_each(recipients)
    addresses = [(one.channel, one.address) for one in chosen]
    assert sorted(addresses) == sorted({(one.channel, one.address) for one in recipients})
    for one in chosen:
        same = [other for other in recipients if (other.channel, other.address) == (one.channel, one.address)]
        assert one.waits == all(other.waits for other in same)


@pytest.mark.parametrize("category", CATEGORIES)
def test_severity_falls_with_the_tier(category: str) -> None:
    ranks = [template(tier, slas.severity, category).severity.rank for tier, slas in sorted(TIERS.items())]
    assert ranks == sorted(ranks, reverse=True)


def test_the_template_says_why() -> None:
    assert template(0, "page", "freshness").severity is Severity.CRITICAL
    others = template(1, "page", "others")
    assert (others.severity, others.because) == (Severity.MEDIUM, "tier 1, urgency page; others is one step quieter")
    assert template(5, "mail", "others").severity is Severity.LOW


def test_what_a_person_set_counts_in_place_of_the_template() -> None:
    assert tone(Severity.HIGH, {}).severity is Severity.HIGH
    assert tone(Severity.HIGH, {"severity": "low"}).severity is Severity.LOW
    assert tone(Severity.HIGH, {"muted": True, "why": "known"}).muted


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ({"severity": "hihg"}, {"severity": "There is no severity `hihg`. Did you mean `high`?"}),
        ({"muted": True}, {"why": "Say why nobody is to be told: whoever misses a message will ask."}),
        ({"muted": "yes"}, {"muted": "`yes` is neither true nor false."}),
        ({"severty": "high"}, {"severty": "An alert has no `severty` to override. Did you mean `severity`?"}),
        ({"severity": "high", "muted": False}, {}),
    ],
)
def test_an_override_that_cannot_be_used_says_why(override: dict[str, Any], said: dict[str, str]) -> None:
    assert problems(override) == said


@pytest.mark.parametrize(("urgency", "tier"), [("page", 0), ("page", 1), ("message", 2), ("mail", 4)])
def test_the_table_of_severities_is_the_one_in_the_docs(urgency: str, tier: int) -> None:
    name = "page, tier 0" if tier == 0 else urgency
    row = next(line for line in DOCS.read_text().splitlines() if line.startswith(f"| {name} |"))
    cells = [cell.strip() for cell in row.split("|")[2:4]]
    assert cells == [template(tier, urgency, category).severity for category in ("freshness", "others")]
