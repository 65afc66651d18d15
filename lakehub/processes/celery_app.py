"""Celery is the wake-up only: what is due, who has claimed it and until when is in the database."""

from __future__ import annotations

import logging
import logging.config
import os
from collections.abc import Mapping
from multiprocessing.process import current_process
from typing import Any

from celery import Celery, signals
from celery.exceptions import SoftTimeLimitExceeded, TimeLimitExceeded
from django.conf import settings
from kombu.transport import TRANSPORT_ALIASES
from structlog.contextvars import bind_contextvars, unbind_contextvars

from lakehub.kernel.error_isolation import log_and_continue
from lakehub.processes import file_broker
from lakehub.processes.niceness import come_last
from lakehub.processes.task_watchdog import watch_tasks
from lakehub.scratch import owned_folder, sweep_scratch

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakehub.settings")

file_broker.register_transport()
# By name: what a broker needs is imported where it is used.
TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "lakehub.processes.redis_broker:Transport"))

SPARK_QUEUE, SPARK_NICENESS = "spark", 10
"""Its worker, and the JVM that it starts, have a tenth of the processor time of another process that wants it too."""

logger = logging.getLogger(__name__)

app = Celery("lakehub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def _configure_logging(**_: Any) -> None:
    """As Django does; without this Celery would set the level and the handlers by itself."""
    logging.config.dictConfig(settings.LOGGING)


@signals.celeryd_init.connect
def _come_last(options: Mapping[str, Any], **_: Any) -> None:
    """Loads and other long jobs leave the processors of a machine to pages, to taps and to copies that are followed, where these want them."""
    if SPARK_QUEUE in (options.get("queues") or ()):
        come_last(SPARK_NICENESS)


@signals.worker_init.connect
def _sweep(**_: Any) -> None:
    """What the processes before this one left, where they were killed."""
    with log_and_continue("Removing the temporary folders of processes that ended"):
        sweep_scratch()


@signals.worker_init.connect
def _own_temporary_folder(**_: Any) -> None:
    """What a pool shares through files is swept like our own folders, should this process be killed."""
    with log_and_continue("Making a temporary folder of this worker's own"):
        # Where multiprocessing, and billiard with it, looks first; nothing public tells it.
        current_process()._config["tempdir"] = str(owned_folder("pool"))  # type: ignore[attr-defined]


@signals.worker_init.connect
def _watch_tasks(**_: Any) -> None:
    watch_tasks()


@signals.task_prerun.connect
def _bind_task(task_id: str, task: Any, **_: Any) -> None:
    bind_contextvars(task=task.name, task_id=task_id)


@signals.task_failure.connect
def _tell_what_was_stopped(exception: BaseException, sender: Any = None, **_: Any) -> None:
    if isinstance(exception, SoftTimeLimitExceeded | TimeLimitExceeded):
        logger.error(
            "%s was stopped, as it ran for longer than LAKEHUB_TASK_MINUTES=%s. What it had claimed is claimed again; "
            "what it waited for is in the traceback before.",
            getattr(sender, "name", "A task"),
            settings.LAKEHUB_TASK_MINUTES,
        )


@signals.task_postrun.connect
def _unbind_task(**_: Any) -> None:
    unbind_contextvars("task", "task_id")
