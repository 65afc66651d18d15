"""The effort of a pattern is counted before it is matched; a matcher that goes back never takes more ways than were counted."""

from __future__ import annotations

import itertools
import math
import os
import random
import sys
import time
from collections.abc import Callable

import pytest

from quality.engines.scans import pattern_effort
from quality.engines.scans.pattern_effort import MAX_UNCERTAIN, check_effort, log_ways
from quality.engines.scans.pattern_tree import (
    CharacterSet,
    Choice,
    PartSequence,
    PatternNode,
    TooMuchEffort,
    parse_pattern,
)
from tests.rounds import rounds


def _uncertain(pattern: str) -> float:
    return log_ways(pattern) / math.log(pattern_effort.TEXT_LENGTH + 1)


@pytest.mark.parametrize(
    ("pattern", "uncertain"),
    [
        ("N[0-9]+[A-Z]*", 0),
        ("[A-Z]{2}-?[0-9]{4,}", 0),
        (r"\d+\.\d+\.\d+\.\d+", 0),
        ("(JFK|LGA|EWR|JFKX)", 0),
        ("(?:ab|ac)*", 0),
        ("([A-Z]{2},)*[A-Z]{2}", 0),
        (r"[^@]+@[^@]+\.[^@]+", 1),
        (".*foo.*", 1),
        (".*foo.*bar.*", 2),
        ("a*a*a*b", 2),
        ("a*a*a*a*b", 3),
        (r"\s*\S+\s*", 0),
        (r"^\bx\Z", 0),
    ],
)
def test_what_a_text_may_be_split_in_is_counted(pattern: str, uncertain: int) -> None:
    assert _uncertain(pattern) == pytest.approx(uncertain, abs=0.01)


@pytest.mark.parametrize(
    "pattern",
    [
        "a*a*a*a*b",
        "a*?" * 20 + "b",
        "(a|a)*b",
        "(a|aa)+b",
        "(?:a|ab|b)*c",
        "(a|a){40}b",
        "(aa|aa)*b",
        "a?" * 25 + "a" * 25,
        "a{0,900}" * 4 + "b",
        "(?:a?b?c?)*d",
        "(.*)(.*)(.*)(.*)x",
        "(x+x+)+y",
        r"(\w+\s?)*x",
        ".*a.*b.*c.*d",
        "((a*)*)*b",
    ],
)
def test_a_pattern_that_may_be_tried_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(TooMuchEffort, match="in more than a million ways"):
        check_effort(pattern)


def test_case_counts() -> None:
    check_effort("a*A*a*A*b")
    with pytest.raises(TooMuchEffort):
        check_effort("a*A*a*A*b", ignore_case=True)


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", "(?=a)b", "(?<!a)b", "a*+", "a++", "(?>a)", "(?i:a)", "a**", "*a", "(", "(a", "a)", "[a", r"\Qa*\E", "[a&&b]", "[a[b]]", r"\k<x>", "\\"],
)  # fmt: skip
def test_syntax_that_is_not_known_is_refused(pattern: str) -> None:
    with pytest.raises(TooMuchEffort, match="is not taken here"):
        check_effort(pattern)


def test_length_and_nesting_are_bounded_before() -> None:
    """So the count itself is quick, whatever the pattern."""
    begun = time.process_time()
    for pattern in ("a" * 1001, "(" * 31 + "a" + ")" * 31, "(" * 900, "a*" * 500, "a*" * 100, "(?:a|b)*" * 99):
        with pytest.raises(TooMuchEffort):
            check_effort(pattern)
    check_effort(
        "|".join("".join(letters) for letters in itertools.islice(itertools.product("ABCDEFG", repeat=3), 250))
    )
    assert time.process_time() - begun < 5


# Against a matcher that goes back


def test_a_matcher_that_goes_back_takes_no_more_ways_than_were_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = int(os.environ.get("LAKEHUB_TEST_SEED") or random.SystemRandom().randrange(10**9))
    print(f"LAKEHUB_TEST_SEED={seed}", file=sys.stderr)
    chance, length = random.Random(seed), 14
    monkeypatch.setattr(pattern_effort, "TEXT_LENGTH", length)
    log_ways.cache_clear()
    seen = 0
    made = rounds(300)
    for _ in range(made):
        pattern = _random_pattern(chance, 3)
        ways = math.exp(min(log_ways(pattern), 50))
        if ways > 2_000:
            continue
        seen += 1
        text = "".join(chance.choice("ab") for _ in range(chance.choice((2, length)))) + "c"
        # Each way is gone along once: at most the text and the pattern long, where it also fails within a look ahead.
        bound = 40 * ways * (length + 1) * (len(pattern) + 1)
        assert _steps(pattern, text, most=bound) <= bound, (pattern, text, ways)
    log_ways.cache_clear()
    assert seen > made / 3


def test_that_matcher_sees_what_was_not_counted() -> None:
    """It is no proof where it takes few steps whatever the pattern."""
    assert _steps("(a|a)*b", "a" * 11, most=10**6) > 2**11
    assert _steps("a*a*a*a*b", "a" * 14, most=10**6) > 2_000
    assert _steps("[ab]*c", "ab" * 7, most=10**6) < 200


def _random_pattern(chance: random.Random, depth: int) -> str:
    kind = chance.randrange(8) if depth else 0
    if kind < 3:
        return chance.choice(["a", "b", "[ab]", "c", ".", "ab"])
    if kind < 5:
        return _random_pattern(chance, depth - 1) + _random_pattern(chance, depth - 1)
    if kind == 5:
        return f"(?:{_random_pattern(chance, depth - 1)}|{_random_pattern(chance, depth - 1)})"
    return f"(?:{_random_pattern(chance, depth - 1)}){chance.choice(['*', '+', '?', '{2}', '{1,3}'])}"


class _Enough(Exception):
    pass


def _steps(pattern: str, text: str, most: float) -> int:
    """How many characters a matcher of the simplest kind looks at until it has found or given up."""
    tree = parse_pattern(pattern)
    steps = 0

    def match(node: PatternNode, at: int, then: Callable[[int], bool]) -> bool:
        nonlocal steps
        if isinstance(node, CharacterSet):
            steps += 1
            if steps > most:
                raise _Enough
            assert node.characters is not None
            return at < len(text) and text[at] in node.characters and then(at + 1)
        if isinstance(node, Choice):
            return any(match(option, at, then) for option in node.options)
        if isinstance(node, PartSequence):
            parts = node.parts

            def after(number: int) -> Callable[[int], bool]:
                return lambda place: (
                    then(place) if number == len(parts) else match(parts[number], place, after(number + 1))
                )

            return after(0)(at)

        def again(count: int, begun: int) -> Callable[[int], bool]:
            def go(place: int) -> bool:
                if count > node.least and place == begun:
                    return False  # it took nothing: like the libraries, not once more
                if (node.most is None or count < node.most) and match(node.body, place, again(count + 1, place)):
                    return True
                return count >= node.least and then(place)

            return go

        return again(0, -1)(at)

    try:
        match(tree, 0, lambda place: place == len(text))
    except _Enough:
        return int(most) + 1
    return steps


def test_two_uncertain_repetitions_are_the_most() -> None:
    assert MAX_UNCERTAIN == 2


def test_texts_that_end_together_are_not_told_apart() -> None:
    assert log_ways("a?a?") == pytest.approx(math.log(2))
