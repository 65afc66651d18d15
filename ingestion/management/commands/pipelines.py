"""`manage.py pipelines check flights-by-day`, `manage.py pipelines register flights-by-day`"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.pipelines.folder import read_folder
from ingestion.pipelines.registering import check_pipeline
from ingestion.runs.modelled_tables.registration import register
from lakehub import wiring
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.output.terminal import printable

_ACTOR = "manage.py"


class Command(BaseCommand):
    help = "Looks at the files of a pipeline, with the file and line of what is wrong, or registers it: a worker then makes its table."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["check", "register"])
        parser.add_argument("folder", type=Path, help="with table.sql, pipeline.yaml and transform.sql")

    def handle(self, *, action: str, folder: Path, **options: Any) -> None:
        try:
            texts = read_folder(folder)
            if action == "check":
                self._tell_checked(texts)
                return
            done = register(texts, actor=_ACTOR, now=wiring.clock.now())
        except (BadPipeline, Refused, Conflict) as problem:
            raise CommandError(printable(str(problem))) from problem
        change = "registered" if done.is_new else "changed"
        anew = f"; {done.rebuilds} of its tables are made anew, as rows may be others" if done.rebuilds else ""
        self.stdout.write(f"The pipeline {done.dataset} is {change}{anew}.")

    def _tell_checked(self, texts: dict[str, str]) -> None:
        checked = check_pipeline(texts)
        pipeline = checked.pipeline
        self.stdout.write(
            f"{pipeline.name}: nothing is wrong. It makes {len(pipeline.columns.columns)} columns, keyed by {', '.join(pipeline.record_key)}."
        )
        for each in pipeline.inputs:
            behaviour = (
                "each change leads to the rows that it reaches"
                if each.is_followed
                else "its changes are seen by rows that are made anew for another reason"
            )
            self.stdout.write(f"  {each.name} ({each.dataset}): {behaviour}")
        self.stdout.write(f"  in {', '.join(str(center) for center in checked.data_centers)}")
