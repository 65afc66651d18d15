"""What a terminal would obey is written out."""

from __future__ import annotations

import pytest

from lakehub.kernel.output.terminal import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Größe 3 µm, it's 5 °C", "Größe 3 µm, it's 5 °C"),
        ("", ""),
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\x9b31m", r"a\x9b31m"),
        ("a\nrun 7 succeeded", r"a\nrun 7 succeeded"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
    ],
)
def test_text_for_a_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown
