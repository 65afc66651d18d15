"""The steps in order, and what is around them: a fresh instance before, the web application after."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime, timedelta
from types import ModuleType

from django.core.management import call_command

from lakehub.clock.models import ClockShift
from lakehub.demo.dates import window_at
from lakehub.demo.instance import Instance, NotStarted
from lakehub.demo.operations import Operations
from lakehub.demo.stage import Stage
from lakehub.demo.steps import bootstrap, day, defects, fault, healing, onboarding, operations
from lakehub.demo.telling import Teller, Untrue

STEPS: tuple[ModuleType, ...] = (operations, onboarding, bootstrap, day, defects, fault, healing)

PLAYED = timedelta(hours=27)
"""How much time the story plays. It begins that long ago, so that it ends now."""
GO_ON_EVERY_S = 20


def tell(instance: Instance, *, serve: bool) -> int:
    """Play every step; 0 where each showed what it should."""
    # Whoever ends the story ends what it started, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    teller = Teller()
    call_command("migrate", interactive=False, verbosity=0)
    now = datetime.now(UTC)
    ClockShift.move_to(now - PLAYED)
    try:
        with instance.running() as processes:
            stage = Stage(
                instance=instance,
                operations=Operations(instance.folder),
                window=window_at(now),
                tell=teller,
                processes=processes,
            )
            _play(stage)
            if serve:
                _serve(stage)
    except (Untrue, NotStarted) as problem:
        teller.say(str(problem))
        return 1
    except KeyboardInterrupt:
        teller.say("ended")
        return 0 if teller.told else 130
    return 0


def _play(stage: Stage) -> None:
    for number, step in enumerate(STEPS, 1):
        with stage.tell.step(number, step.TITLE):
            step.play(stage)
    stage.tell.end()


def _serve(stage: Stage) -> None:
    who = f"sign in as {onboarding.ACTOR}, password {onboarding.PASSWORD}"
    stage.tell.say(f"{stage.instance.url} goes on with the day: {who}. Ctrl-C ends it.")
    while stage.processes.alive():
        stage.play_to(datetime.now(UTC))
        time.sleep(GO_ON_EVERY_S)
