"""What is kept comes back as what was measured, with its type."""

from __future__ import annotations

import json
from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from quality.domain.expression.measures import Answer
from quality.domain.stored import from_json, to_json

scalars = st.one_of(
    st.none(),
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    st.dates(),
    st.datetimes(timezones=st.just(UTC)),
    st.datetimes(),
    st.text(),
)
groups = st.dictionaries(st.one_of(st.none(), st.text()), scalars, max_size=5)
answers = st.one_of(scalars, groups, st.dictionaries(st.one_of(st.none(), st.text()), groups, max_size=3))


@given(answers)
def test_an_answer_survives_json(answer: Answer) -> None:
    again = from_json(json.loads(json.dumps(to_json(answer))))
    assert (again, type(again)) == (answer, type(answer))
