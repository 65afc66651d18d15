"""Texts for random tests, without hypothesis' tables of Unicode, which take a second to build in a fresh checkout."""

from __future__ import annotations

import string

from hypothesis import strategies as st

_SURROGATES = range(0xD800, 0xE000)
_CODES = st.integers(0, 0x10FFFF).filter(lambda code: code not in _SURROGATES)
SURROGATE = st.integers(_SURROGATES.start, _SURROGATES.stop - 1).map(chr)
CHARACTER = st.sampled_from(string.printable + "\x00éß²९") | _CODES.map(chr)


def any_text(max_size: int) -> st.SearchStrategy[str]:
    return text_of(CHARACTER, max_size)


def text_of(characters: str | st.SearchStrategy[str], max_size: int, min_size: int = 0) -> st.SearchStrategy[str]:
    character = st.sampled_from(characters) if isinstance(characters, str) else characters
    return st.lists(character, min_size=min_size, max_size=max_size).map("".join)
