"""What operators do: a second start in the same folder, and a stop while the source hangs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

from lakehub.demo.instance import free_address
from tests.soak.faults import Fault
from tests.soak.stand.forwarder import Line
from tests.soak.stand.stage import Stage

STOPS_WITHIN_S = 15.0
_HANGS_S = 3.0


def _start_twice(stage: Stage, _rng: Random) -> Sequence[str]:
    stage.wait_until(stage.instance.is_up, "the first is up")
    first = stage.instance.guard
    second = stage.instance.command("up", "--bind", free_address())
    refusal, findings = second.stderr + second.stdout, []
    if second.returncode != 1:
        findings.append(f"the second start ended with {second.returncode}")
    if f"process {first} " not in refusal:
        findings.append(f"the second start does not name process {first}: {refusal[-500:]}")
    if stage.instance.guard != first or not stage.instance.is_up():
        findings.append("the first does not go on")
    return findings


def _stop_while_source_hangs(stage: Stage, _rng: Random) -> Sequence[str]:
    with _silent_source(stage):
        stage.wait_until(stage.instance.is_up, "the instance is up")
        stage.wait_until(lambda: stage.forwarder.open_connections > 0, "somebody waits for the source")
        time.sleep(_HANGS_S)
        before, began = stage.instance.guard, time.monotonic()
        stage.instance.terminate()
        stage.wait_until(lambda: stage.instance.guard != before, "it ends after SIGTERM")
        took_s = time.monotonic() - began
    return [f"it took {took_s:.1f} s to end"] if took_s > STOPS_WITHIN_S else []


@contextmanager
def _silent_source(stage: Stage) -> Iterator[None]:
    stage.forwarder.set_line(Line.SILENT)
    try:
        yield
    finally:
        stage.forwarder.set_line(Line.PASSES)


FAULTS = (
    Fault("started twice", _start_twice, is_alone=True, may_double=False),
    Fault(
        "SIGTERM while the source hangs",
        _stop_while_source_hangs,
        is_alone=True,
        explains="OperationalError|SourceError|MetadataUnavailable",
    ),
)
