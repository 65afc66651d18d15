"""A pattern that the language takes is one that every engine takes: nobody learns from a result that his test cannot run."""

from __future__ import annotations

import pytest

from quality.domain.language import ExpressionError, parse
from quality.domain.language.type_checker import check_expression
from quality.engines.sql.portable_patterns import JAVA, PCRE, POSTGRESQL, RE2, NotPortable, RegexFlavour, write_pattern

TAKEN = (
    "N[0-9]+", "(?i)n[a-z]*", r"\d{3}", "a*?", "(?:a|b)", r"[^\d]", "a{2,}", r"\x41", "é+", r"[\]]", "[]a]", r"\/", "",
    "a|", r"\S\W\D", r"\_", r"\.", "{", "a{x}", "a{999}", r"a\\",
)  # fmt: skip
REFUSED = (
    r"\bx", "a*+", "(?=a)", "(?<!a)b", "(?P<x>a)", "[[:alpha:]]", r"\p{L}", r"\Ax\Z", "[a-z&&[b]]", r"(a)\1", r"\u0041",
    "(?#c)", "(?i:x)", "x(?i)", r"\h", "a{1001}", "a**", "a{2}{3}", r"[a-\d]", r"\C", "(", "[z-a]", "a++", "[[]", r"a\\\b",
)  # fmt: skip


def in_the_language(pattern: str) -> bool:
    quoted = pattern.replace("'", "''")
    try:
        check_expression(parse(f"mismatched(this.a, '{quoted}') == 0"))
    except ExpressionError:
        return False
    return True


def in_the_engines(pattern: str) -> bool:
    try:
        write_pattern(pattern, RE2)
    except NotPortable:
        return False
    return True


@pytest.mark.parametrize("pattern", ["(" * 500 + "a" + ")" * 500, "(?:" * 51 + "a" + "){1,2}" * 51, "[ab]" * 251])
def test_length_and_groups_are_bounded_before_anything_reads_it(pattern: str) -> None:
    with pytest.raises(ExpressionError, match=r"The pattern has [0-9,]+ (characters|groups); (1,000|50) are the most"):
        check_expression(parse(f"mismatched(this.a, '{pattern}') == 0"))


@pytest.mark.parametrize("pattern", TAKEN)
def test_it_is_taken(pattern: str) -> None:
    assert (in_the_language(pattern), in_the_engines(pattern)) == (True, True)


@pytest.mark.parametrize("pattern", REFUSED)
def test_it_is_refused(pattern: str) -> None:
    assert (in_the_language(pattern), in_the_engines(pattern)) == (False, False)


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(?:a*b?)*", "((a|b)+c){2}", "(x(y[a-z]{1,3}))+", "(?i)(a{2,})*", "((a+)?)*", r"(\(+)+"]
)
@pytest.mark.parametrize("flavour", [JAVA, PCRE])
def test_a_repetition_of_repetitions_is_refused_where_it_may_be_tried_for_ever(
    pattern: str, flavour: RegexFlavour
) -> None:
    assert in_the_language(pattern)
    for once in (RE2, POSTGRESQL):
        assert write_pattern(pattern, once)
    with pytest.raises(NotPortable, match=r"repeats a group that repeats something itself.*engine=duckdb"):
        write_pattern(pattern, flavour)


@pytest.mark.parametrize(
    "pattern", [*TAKEN, "(a|b)+c*", "([A-Z]{2},)*[A-Z]{2}", "(a+)?", "[(+]+", r"(\+)+", "([+])+", "(a+b)c+", "{+"]
)
@pytest.mark.parametrize("flavour", [JAVA, PCRE])
def test_one_repetition_is_not(pattern: str, flavour: RegexFlavour) -> None:
    assert write_pattern(pattern, flavour)
