"""What a person writes is bounded by count, before any work: parts, characters, numbers and lengths of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from lakehub.kernel.interval import BEGINNING, FOREVER, earlier, later
from lakehub.kernel.outcome import Outcome, Verdict
from quality.domain.language import ExpressionError, Scope, flattened, macros, parse, understand
from quality.domain.language.macros import MAX_NODES, expand_macros, expanded_size
from quality.domain.language.tree.nodes import Call, Node, post_order
from quality.domain.parsed import is_parsable, parsed_or_blank
from quality.domain.periods import MAX_DURATION, MAX_PERIOD
from quality.domain.verdicts.unit_verdict import UnitFacts, VerdictReason, judge
from tests.fuzz_seed import REPEAT, SEED

SCOPE = Scope({"this": None, "upstream": None}, primary_key=("id",), metrics={"revenue": "SELECT count(*) FROM this"})
NOW = datetime(2026, 11, 17, tzinfo=UTC)
AGES = timedelta(weeks=400_000)


@pytest.mark.parametrize(
    "text",
    [
        "same_weekday(same_weekday(same_weekday(rows(this), 52), 52), 52) > 0",
        "same_weekday(same_weekday(rows(this), 52), 52) > 0",
        " + ".join(["same_weekday(duplicates(this), 52)"] * 30) + " > 0",
    ],
)
def test_short_forms_are_counted_before_they_are_written_out(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three in each other were 283,975 parts."""
    monkeypatch.setattr(macros, "shift_back", lambda node, back: pytest.fail("It was written out."))
    with pytest.raises(ExpressionError, match="5,000 parts are the most"):
        understand(text, SCOPE)


def test_what_is_counted_is_not_less_than_what_is_made() -> None:
    chance, sizes = Random(SEED), []
    for _ in range(200):
        expression = parse(f"{_value(chance, 3)} > 0")
        counted = expanded_size(expression.assertion)
        if counted <= MAX_NODES:
            sizes.append(sum(1 for _ in post_order(expand_macros(expression, SCOPE).assertion)))
            assert sizes[-1] <= counted, (flattened(expression), REPEAT)
    assert max(sizes) > 100, REPEAT


def _value(chance: Random, depth: int) -> str:
    if not depth or chance.random() < 0.2:
        return chance.choice(
            ("rows(this)", "duplicates(this)", "completeness(this)", "null_share(this.a)", "metric(revenue)", "7")
        )
    inner = _value(chance, depth - 1)
    forms = (
        f"same_weekday({inner}, {chance.randint(1, 9)})",
        f"before({inner}, 7d)",
        f"({inner} + {_value(chance, depth - 1)})",
    )
    return chance.choice(forms)


def test_what_would_be_too_long_to_be_parsed_again_is_refused() -> None:
    text = "same_weekday(" + " + ".join(["rows(this)"] * 30) + ", 20) > 0"
    with pytest.raises(ExpressionError, match="characters with its short forms written out; 10,000 are the most"):
        understand(text, SCOPE)
    kept = understand(text.replace("20)", "5)"), SCOPE)
    assert parse(flattened(kept)) == kept


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("freshness(this) < 400000w", "write 36,525 days or less"),
        ("freshness(this) < 99999999999d", "write 36,525 days or less"),
        (f"freshness(this) < {'9' * 5000}d", "write 36,525 days or less"),
        (f"freshness(this) < {'9' * 400}.5d", "write 36,525 days or less"),
        ("freshness(this) < 2h with sustain=400000w", "`sustain` is 366d at most, not `400000w`"),
        ("freshness(this) < 2h with sustain=367d", "`sustain` is 366d at most, not 52w3d"),
        ("freshness(this) < 2h with cadence=400000w", "`cadence` is 366d at most"),
        ("freshness(this) < 2h with timeout=400000w", "`timeout` is 30m at most"),
        ("rows(this[-400000w]) > 0", "A shift of `400000w` is too far"),
        (f"rows(this) > {'9' * 41}", "40 are the most"),
        (f"rows(this) > {'9' * 309}%", "40 are the most"),
        (f"rows(this) > 0 with most={'9' * 5000}", "`most` is a number of 15 digits at most"),
        (f"rows(this) > 0 with by=a, least={'9' * 400}", "`least` is a number of 15 digits at most"),
        (f"sampled(this, upstream, {'9' * 40}) > 0%", "A sample has 1 to 100,000 rows"),
    ],
)  # fmt: skip
def test_a_number_or_length_beyond_the_bound_is_refused_with_it(text: str, says: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        understand(text, SCOPE)
    assert says in str(refused.value)


def test_the_longest_that_may_be_written_is() -> None:
    assert understand(f"freshness(this) < {MAX_DURATION.days}d with sustain={MAX_PERIOD.days}d", SCOPE)


def test_what_was_stored_beyond_the_bounds_measures_nothing_and_holds_up_nobody() -> None:
    stored = "lt(freshness(this), 400000w)"
    assert not is_parsable(stored)
    assert [node for node in post_order(parsed_or_blank(stored).assertion) if isinstance(node, Call)] == []
    sound: Node = parsed_or_blank("gt(rows(this), 0)").assertion
    assert isinstance(sound, Call)


@pytest.mark.parametrize(
    "facts",
    [
        UnitFacts(first_fail_at=NOW, last_fail_at=NOW, latest_outcome=Outcome.FAIL, latest_at=NOW, sustain=AGES),
        UnitFacts(last_pass_at=NOW, latest_outcome=Outcome.PASS, latest_at=NOW, cadence=AGES),
        UnitFacts(last_pass_at=NOW, latest_outcome=Outcome.PASS, latest_at=NOW, cadence=timedelta.max),
    ],
)
def test_a_stored_period_beyond_the_bound_makes_a_verdict_unknown_and_says_so(facts: UnitFacts) -> None:
    judgement = judge(facts, now=NOW)
    assert (judgement.verdict, judgement.reason) == (Verdict.UNKNOWN, VerdictReason.PERIOD_TOO_LONG)


def test_what_is_computed_from_any_period_stays_within_the_calendar() -> None:
    for period in (AGES, timedelta.max):
        assert later(NOW, period) == FOREVER or period < FOREVER - NOW
        assert earlier(NOW, period) == BEGINNING
    assert (later(NOW, timedelta(1)) - NOW, NOW - earlier(NOW, timedelta(1))) == (timedelta(1), timedelta(1))
