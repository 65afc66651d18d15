"""What a task logs carries its name and id, also from the thread that renews its lease."""

from __future__ import annotations

import logging
from datetime import timedelta
from threading import Event

from celery import shared_task

from lakehub.db.lease_renewal import keep_renewed
from tests.json_log import json_log
from tests.polling import scaled

logger = logging.getLogger("lakehub.tests")


@shared_task
def renewing() -> None:
    renewed = Event()

    def renew() -> None:
        logger.warning("renewed")
        renewed.set()

    with keep_renewed(renew, every=timedelta(milliseconds=1)):
        assert renewed.wait(scaled(10))
    logger.warning("done")


def test_a_task_is_named_in_its_lines_and_in_no_other() -> None:
    with json_log() as lines:
        ran = renewing.apply()
        logger.warning("after it")
    assert ran.successful()
    lines = [line for line in lines if line["logger"] == logger.name]
    assert {line["message"] for line in lines} == {"renewed", "done", "after it"}
    for line in lines[:-1]:
        assert (line["task"], line["task_id"]) == (renewing.name, ran.id)
    assert "task_id" not in lines[-1]
