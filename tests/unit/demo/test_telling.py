from __future__ import annotations

from io import StringIO

import pytest

from lakehub.demo.telling import Teller, Untrue


def test_what_holds_is_told() -> None:
    out = StringIO()
    Teller(out).show("each row is there once", holds=True)
    assert out.getvalue() == "   ✓ each row is there once\n"


def test_what_does_not_hold_is_told_and_ends_the_story() -> None:
    out = StringIO()
    with pytest.raises(Untrue, match="each row is there once"):
        Teller(out).show("each row is there once", holds=False)
    assert out.getvalue() == "   ✗ each row is there once\n"


def test_a_step_tells_its_seconds_also_when_it_fails() -> None:
    out = StringIO()
    teller = Teller(out)
    with pytest.raises(Untrue), teller.step(1, "a title"):
        raise Untrue("no")
    assert out.getvalue().startswith("\n1  a title\n")
    assert out.getvalue().endswith(" s\n")


def test_nothing_is_rewritten_in_place_where_nobody_watches() -> None:
    out = StringIO()
    Teller(out).progress("waiting")
    assert out.getvalue() == ""
