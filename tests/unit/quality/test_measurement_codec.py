"""What is kept comes back as what was measured, with its type."""

from __future__ import annotations

import json
from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from quality.domain.language.measures import Answer
from quality.domain.measurement_codec import from_json, storable_json, to_json
from tests.text_strategies import CHARACTER, SURROGATE, text_of

texts = text_of(CHARACTER | SURROGATE | st.sampled_from("\\ux0d8"), 20)
scalars = st.one_of(
    st.none(),
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.dates(),
    st.datetimes(timezones=st.just(UTC)),
    st.datetimes(),
    texts,
)
groups = st.dictionaries(st.one_of(st.none(), texts), scalars, max_size=5)
answers = st.one_of(scalars, groups, st.dictionaries(st.one_of(st.none(), texts), groups, max_size=3))


@given(answers)
def test_an_answer_survives_json(answer: Answer) -> None:
    again = from_json(json.loads(json.dumps(to_json(answer))))
    assert (again, type(again)) == (answer, type(answer))


@given(answers)
def test_every_database_can_store_an_answer(answer: Answer) -> None:
    assert is_storable(json.dumps(to_json(answer), ensure_ascii=False))


def is_storable(written: str) -> bool:
    written.encode()  # raises where a surrogate is alone
    return "\\u0000" not in written.replace("\\\\", "")


def test_what_people_read_has_it_written_out() -> None:
    detail = {
        "cause": "it is 'AA\x00'",
        "missing": [{"id": 1, "na\x00me": "\ud800b"}],
        "groups": ("a", None),
        "of": 1.5,
    }
    written = storable_json(detail)
    assert written == {
        "cause": r"it is 'AA\x00'",
        "missing": [{"id": 1, r"na\x00me": r"\ud800b"}],
        "groups": ["a", None],
        "of": 1.5,
    }
    assert is_storable(json.dumps(written, ensure_ascii=False))
