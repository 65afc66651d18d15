from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.alerting.routing import (
    AlertLabels,
    Recipient,
    RouteMatcher,
    Severity,
    alert_template,
    effective_setting,
    override_problems,
    unique_recipients,
)
from incidents.domain.alerting.suppression import CATEGORIES
from quality.domain.slas import TIERS

DOCS = Path(__file__).parents[3] / "docs" / "alerts.md"

matters = st.builds(AlertLabels, st.sampled_from(sorted(TIERS)), st.sampled_from(CATEGORIES), st.sampled_from(Severity))
filters = st.builds(
    RouteMatcher,
    st.frozensets(st.sampled_from(sorted(TIERS))),
    st.frozensets(st.sampled_from(CATEGORIES)),
    st.sampled_from(Severity),
)
recipient_lists = st.lists(
    st.builds(
        Recipient, st.sampled_from(["email", "log"]), st.sampled_from("ab"), st.just("why"), may_delay=st.booleans()
    ),
    max_size=8,
)


@given(filters, matters)
def test_an_empty_filter_takes_all_and_each_part_narrows_it(matcher: RouteMatcher, matter: AlertLabels) -> None:
    by_tier, by_category = RouteMatcher(tiers=matcher.tiers), RouteMatcher(categories=matcher.categories)
    assert matcher.matches(matter) == (
        by_tier.matches(matter)
        and by_category.matches(matter)
        and RouteMatcher(min_severity=matcher.min_severity).matches(matter)
    )
    assert RouteMatcher().matches(matter)


@given(filters, matters)
def test_what_is_louder_is_taken_wherever_the_quieter_was(matcher: RouteMatcher, matter: AlertLabels) -> None:
    louder = [
        AlertLabels(matter.tier, matter.category, severity)
        for severity in Severity
        if severity.at_least(matter.severity)
    ]
    assert not matcher.matches(matter) or all(map(matcher.matches, louder))


@given(recipient_lists)
def test_an_address_is_told_once_and_at_once_if_any_of_its_routes_is(recipients: list[Recipient]) -> None:
    chosen = unique_recipients(recipients)
    addresses = [(recipient.channel, recipient.address) for recipient in chosen]
    assert sorted(addresses) == sorted({(recipient.channel, recipient.address) for recipient in recipients})
    for recipient in chosen:
        same = [
            other for other in recipients if (other.channel, other.address) == (recipient.channel, recipient.address)
        ]
        assert recipient.may_delay == all(other.may_delay for other in same)


@pytest.mark.parametrize("category", CATEGORIES)
def test_severity_falls_with_the_tier(category: str) -> None:
    ranks = [alert_template(tier, slas.severity, category).severity.rank for tier, slas in sorted(TIERS.items())]
    assert ranks == sorted(ranks, reverse=True)


def test_the_template_says_why() -> None:
    assert alert_template(0, "page", "freshness").severity is Severity.CRITICAL
    others = alert_template(1, "page", "others")
    assert (others.severity, others.because) == (Severity.MEDIUM, "tier 1, urgency page; others is one step quieter")
    assert alert_template(5, "mail", "others").severity is Severity.LOW


def test_what_a_person_set_counts_in_place_of_the_template() -> None:
    assert effective_setting(Severity.HIGH, {}).severity is Severity.HIGH
    assert effective_setting(Severity.HIGH, {"severity": "low"}).severity is Severity.LOW
    assert effective_setting(Severity.HIGH, {"muted": True, "why": "known"}).muted


@pytest.mark.parametrize(
    ("override", "problems"),
    [
        ({"severity": "hihg"}, {"severity": "There is no severity `hihg`. Did you mean `high`?"}),
        ({"muted": True}, {"why": "Say why nobody is to be told: whoever misses a message will ask."}),
        ({"muted": "yes"}, {"muted": "`yes` is neither true nor false."}),
        ({"severty": "high"}, {"severty": "An alert has no `severty` to override. Did you mean `severity`?"}),
        ({"severity": "high", "muted": False}, {}),
    ],
)
def test_an_override_that_cannot_be_used_says_why(override: dict[str, Any], problems: dict[str, str]) -> None:
    assert override_problems(override) == problems


@pytest.mark.parametrize(("urgency", "tier"), [("page", 0), ("page", 1), ("message", 2), ("mail", 4)])
def test_the_table_of_severities_is_the_one_in_the_docs(urgency: str, tier: int) -> None:
    name = "page, tier 0" if tier == 0 else urgency
    row = next(line for line in DOCS.read_text().splitlines() if line.startswith(f"| {name} |"))
    cells = [cell.strip() for cell in row.split("|")[2:4]]
    assert cells == [alert_template(tier, urgency, category).severity for category in ("freshness", "others")]
