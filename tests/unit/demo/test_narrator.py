from __future__ import annotations

from io import StringIO

import pytest

from lakehub.demo.play.narrator import ClaimFailed, Narrator


def test_what_holds_is_told() -> None:
    out = StringIO()
    Narrator(out).check("each row is there once", holds=True)
    assert out.getvalue() == "   ✓ each row is there once\n"


def test_what_does_not_hold_is_told_and_ends_the_story() -> None:
    out = StringIO()
    with pytest.raises(ClaimFailed, match="each row is there once"):
        Narrator(out).check("each row is there once", holds=False)
    assert out.getvalue() == "   ✗ each row is there once\n"


def test_a_step_tells_its_seconds_also_when_it_fails() -> None:
    out = StringIO()
    teller = Narrator(out)
    with pytest.raises(ClaimFailed), teller.step(1, "a title"):
        raise ClaimFailed("no")
    assert out.getvalue().startswith("\n1  a title\n")
    assert out.getvalue().endswith(" s\n")


def test_nothing_is_rewritten_in_place_where_nobody_watches() -> None:
    out = StringIO()
    Narrator(out).progress("waiting")
    assert out.getvalue() == ""
