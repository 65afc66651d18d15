"""`manage.py scores --by team --days 30 --json`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from incidents.api.serializers.scores import GroupSerializer, NoisySerializer, ReactionsSerializer, ScoreSerializer
from incidents.scores.noisy_tests import NoisyTest, noisy_tests
from incidents.scores.response_times import response_times_of
from incidents.scores.scope import DEFAULT_DAYS, parse_scope, parse_window
from incidents.scores.scoring import GROUPINGS, Score, Scores, scores_of, with_test_names
from lakehub import wiring
from lakehub.kernel.errors import Refused


class Command(BaseCommand):
    help = "Shows precision, recall and quality of a window, of all or by group, and the tests to retire or to tune."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset", nargs="?", default="")
        parser.add_argument("--days", default=str(DEFAULT_DAYS), help="before now, or before --to")
        parser.add_argument("--from", default="", help="a date of UTC, or a time with its offset")
        parser.add_argument("--to", default="")
        parser.add_argument("--team", default="")
        parser.add_argument("--tier", default="")
        parser.add_argument("--category", default="")
        parser.add_argument("--by", default="", help=f"one of {', '.join(GROUPINGS)}")
        parser.add_argument("--limit", type=int, default=50, help="groups that are shown")
        parser.add_argument("--noisy", action="store_true", help="the tests to retire or to tune instead")
        parser.add_argument("--json", action="store_true", help="one line of JSON for the whole, and one a group")

    def handle(self, **options: Any) -> None:
        now = wiring.clock.now()
        words = {name: str(options[name]) for name in ("dataset", "days", "from", "to", "team", "tier", "category")}
        try:
            scores = scores_of(parse_window(words, now=now), now=now, scope=parse_scope(words))
            groups = scores.by(options["by"])[: options["limit"]] if options["by"] else []
        except Refused as error:
            raise CommandError("; ".join(error.fields.values()) or str(error)) from error
        if options["noisy"]:
            for noisy_test in noisy_tests(scores)[: options["limit"]]:
                self.stdout.write(
                    json.dumps(NoisySerializer(noisy_test).data) if options["json"] else _advice(noisy_test)
                )
            return
        named_groups = with_test_names(groups) if options["by"] == "test" else groups
        self._show(scores, named_groups, as_json=options["json"])

    def _show(self, scores: Scores, groups: list[Score], *, as_json: bool) -> None:
        if as_json:
            times = ReactionsSerializer(response_times_of(scores.window, scores.scope)).data
            self.stdout.write(json.dumps({**ScoreSerializer(scores.whole).data, "times": times}))
            for score in groups:
                self.stdout.write(json.dumps(GroupSerializer(score).data))
            return
        self.stdout.write(f"{'':32} precision    recall   quality        TP        FP        FN")
        for score in [scores.whole, *groups]:
            self.stdout.write(_line(score))


def _line(score: Score) -> str:
    name = f"{score.dataset}: {score.name}" if score.test else score.name or "all"
    shares = (score.durations.precision, score.durations.recall, score.quality)
    durations = (score.durations.tp, score.durations.fp, score.durations.fn)
    return f"{name:32.32} " + " ".join(
        [*(f"{_share(share):>9}" for share in shares), *(f"{_hours(duration):>9}" for duration in durations)]
    )


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"


def _hours(span: timedelta) -> str:
    return f"{span / timedelta(hours=1):,.1f} h"


def _advice(noisy: NoisyTest) -> str:
    return f"{noisy.advice:<10} {noisy.score.dataset}: {noisy.score.name}. {noisy.because}."
