"""`manage.py scores --by team --days 30 --json`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from incidents.scores.noise import Noisy, noisy_tests
from incidents.scores.reactions import reactions_of
from incidents.scores.scope import DAYS, wanted_scope, wanted_window
from incidents.scores.scoring import GROUPINGS, Score, Scores, named, scores_of
from incidents.shapes.scores import GroupSerializer, NoisySerializer, ReactionsSerializer, ScoreSerializer
from lakehub import wiring
from lakehub.kernel.errors import Refused


class Command(BaseCommand):
    help = "Shows precision, recall and quality of a window, of all or by group, and the tests to retire or to tune."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset", nargs="?", default="")
        parser.add_argument("--days", default=str(DAYS), help="before now, or before --to")
        parser.add_argument("--from", default="", help="a date of UTC, or a time with its offset")
        parser.add_argument("--to", default="")
        parser.add_argument("--team", default="")
        parser.add_argument("--tier", default="")
        parser.add_argument("--category", default="")
        parser.add_argument("--by", default="", help=f"one of {', '.join(GROUPINGS)}")
        parser.add_argument("--limit", type=int, default=50, help="groups that are shown")
        parser.add_argument("--noisy", action="store_true", help="the tests to retire or to tune instead")
        parser.add_argument("--json", action="store_true", help="one line of JSON for the whole, and one a group")

    def handle(self, **asked: Any) -> None:
        now = wiring.clock.now()
        words = {name: str(asked[name]) for name in ("dataset", "days", "from", "to", "team", "tier", "category")}
        try:
            found = scores_of(wanted_window(words, now=now), now=now, scope=wanted_scope(words))
            groups = found.by(asked["by"])[: asked["limit"]] if asked["by"] else []
        except Refused as error:
            raise CommandError("; ".join(error.fields.values()) or str(error)) from error
        if asked["noisy"]:
            for one in noisy_tests(found)[: asked["limit"]]:
                self.stdout.write(json.dumps(NoisySerializer(one).data) if asked["json"] else _advice(one))
            return
        named_groups = named(groups) if asked["by"] == "test" else groups
        self._show(found, named_groups, as_json=asked["json"])

    def _show(self, found: Scores, groups: list[Score], *, as_json: bool) -> None:
        if as_json:
            times = ReactionsSerializer(reactions_of(found.window, found.scope)).data
            self.stdout.write(json.dumps({**ScoreSerializer(found.whole).data, "times": times}))
            for one in groups:
                self.stdout.write(json.dumps(GroupSerializer(one).data))
            return
        self.stdout.write(f"{'':32} precision    recall   quality        TP        FP        FN")
        for one in [found.whole, *groups]:
            self.stdout.write(_line(one))


def _line(score: Score) -> str:
    name = f"{score.dataset}: {score.name}" if score.test else score.name or "all"
    shares = (score.durations.precision, score.durations.recall, score.quality)
    told = (score.durations.tp, score.durations.fp, score.durations.fn)
    return f"{name:32.32} " + " ".join(
        [*(f"{_share(one):>9}" for one in shares), *(f"{_hours(one):>9}" for one in told)]
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def _hours(span: timedelta) -> str:
    return f"{span / timedelta(hours=1):,.1f} h"


def _advice(noisy: Noisy) -> str:
    return f"{noisy.advice:<10} {noisy.score.dataset}: {noisy.score.name}. {noisy.because}."
