"""A lease is renewed while the work goes on, also after the database could not be asked once."""

from __future__ import annotations

from datetime import timedelta
from threading import Event

import pytest
from django.db import InterfaceError, OperationalError

from lakehub.db.lease_renewal import keep_renewed
from tests.polling import scaled

OFTEN = timedelta(milliseconds=5)


@pytest.mark.parametrize("problem", [OperationalError("database is locked"), InterfaceError("connection is closed")])
def test_a_busy_database_costs_one_renewal_and_not_the_lease(problem: Exception) -> None:
    asked, renewed = [], Event()

    def renew() -> None:
        asked.append(1)
        if len(asked) == 1:
            raise problem
        renewed.set()

    with keep_renewed(renew, every=OFTEN):
        assert renewed.wait(scaled(10))


def test_nothing_is_renewed_after_the_work() -> None:
    asked: list[int] = []
    with keep_renewed(lambda: asked.append(1), every=timedelta(hours=1)):
        pass
    assert asked == []
