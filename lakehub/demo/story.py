"""The steps in order, and what is around them: a fresh instance before, the web application after."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime, timedelta
from types import ModuleType

from django.core.management import call_command

from lakehub.clock.models import ClockShift
from lakehub.demo.flights.operational_database import OperationalDatabase
from lakehub.demo.flights.replay_window import replay_window_at
from lakehub.demo.instance import Instance, ProcessesNotStarted
from lakehub.demo.play.narrator import ClaimFailed, Narrator
from lakehub.demo.play.story_context import StoryContext
from lakehub.demo.steps import bootstrap, day, defects, fault, healing, onboarding, operations

STEPS: tuple[ModuleType, ...] = (operations, onboarding, bootstrap, day, defects, fault, healing)

PLAYED_TIME = timedelta(hours=27)
"""How much time the story plays. It begins that long ago, so that it ends now."""
SERVE_INTERVAL_S = 20


def tell_story(instance: Instance, *, serve: bool) -> int:
    """Play every step; 0 where each showed what it should."""
    # Whoever ends the story ends what it started, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    teller = Narrator()
    call_command("migrate", interactive=False, verbosity=0)
    now = datetime.now(UTC)
    ClockShift.move_to(now - PLAYED_TIME)
    try:
        with instance.running() as processes:
            stage = StoryContext(
                instance=instance,
                operations=OperationalDatabase(instance.folder),
                window=replay_window_at(now),
                narrator=teller,
                processes=processes,
            )
            _play_steps(stage)
            if serve:
                _serve(stage)
    except (ClaimFailed, ProcessesNotStarted) as problem:
        teller.say(str(problem))
        return 1
    except KeyboardInterrupt:
        teller.say("ended")
        return 0 if teller.is_finished else 130
    return 0


def _play_steps(stage: StoryContext) -> None:
    for number, step in enumerate(STEPS, 1):
        with stage.narrator.step(number, step.TITLE):
            step.play(stage)
    stage.narrator.end()


def _serve(stage: StoryContext) -> None:
    who = f"sign in as {onboarding.ACTOR}, password {onboarding.PASSWORD}"
    stage.narrator.say(f"{stage.instance.url} goes on with the day: {who}. Ctrl-C ends it.")
    while stage.processes.are_alive():
        stage.play_to(datetime.now(UTC))
        time.sleep(SERVE_INTERVAL_S)
