"""Which queries give the same answer of the same data, whenever they are asked."""

from __future__ import annotations

import pytest

from quality.domain.user_sql import parsed_query


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM this",
        "SELECT sum(distance) FROM this JOIN planes USING (tailnum) WHERE flight_date >= :start",
        "SELECT count(*) FROM this WHERE origin = 'EWR' AND note <> 'now and then'",
    ],
)
def test_what_only_looks_at_data_is(sql: str) -> None:
    assert parsed_query(sql).repeatable


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM this WHERE d < now()",
        "SELECT count(*) FROM this WHERE d < CURRENT_DATE",
        "SELECT count(*) FROM this WHERE d < CURRENT_TIMESTAMP",
        "SELECT count(*) FROM this WHERE d < today()",
        "SELECT count(*) FROM this WHERE d < CAST('Today ' AS DATE)",
        "SELECT count(*) FROM this WHERE random() < 0.5",
        "SELECT count(*) FROM this WHERE something_of_tomorrow(d)",
        "SELECT count(*) FROM (SELECT d FROM this WHERE d < current_date()) late",
    ],
)
def test_what_may_look_at_the_clock_is_not(sql: str) -> None:
    assert not parsed_query(sql).repeatable
