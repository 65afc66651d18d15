"""kill -9 of each kind of process of the instance, wherever it is in its work."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random

from lakehub.processes.supervisor.process_tree import descendants
from tests.soak.faults import Fault
from tests.soak.stand.instance import PROCESSES
from tests.soak.stand.stage import Stage

Pick = Callable[[Stage], int]


def _child_of(name: str, stage: Stage) -> int:
    parent = stage.instance.process(name)
    return next(iter(descendants(parent)), 0) if parent else 0


def _named(name: str, stage: Stage) -> int:
    return stage.instance.process(name)


def _kill(pick: Pick, stage: Stage, _rng: Random) -> Sequence[str]:
    stage.wait_until(lambda: bool(pick(stage)), "a process to kill")
    with suppress(ProcessLookupError):  # it has ended by itself
        os.kill(pick(stage), signal.SIGKILL)
    return ()


_PICKS: dict[str, Pick] = {
    **{name: partial(_named, name) for name in PROCESSES},
    "child of web": partial(_child_of, "web"),
    "child of worker": partial(_child_of, "worker"),
    "JVM": partial(_named, "java"),
    "supervisor": lambda stage: stage.instance.supervisor,
    "up": lambda stage: stage.instance.guard,
}
_EXPLAINED = {
    "JVM": "Py4J|ConnectionRefusedError|ConnectionResetError|BrokenPipeError|JAVA_GATEWAY_EXITED",
    "child of worker": "WorkerLostError",
}
"""What those say that have lost it."""
FAULTS = tuple(
    Fault(f"kill -9 {name}", partial(_kill, pick), explains=_EXPLAINED.get(name, "")) for name, pick in _PICKS.items()
)
