"""`manage.py replicate flights --to dc2 --from dc1`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.runs.job_runs import find_copy
from ingestion.runs.replicas.setting import end_replication, replicate
from ingestion.runs.replicas.states import replica_states
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.output.terminal import printable

_ACTOR = "manage.py"


class Command(BaseCommand):
    help = "Makes a copy a replica of another one of its dataset, feeds it again, or shows how far the replicas of a dataset are."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--to", help="the data center of the copy")
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--from", dest="source", help="the data center whose copy it is made from")
        action.add_argument("--end", action="store_true", help="feed the copy again; it is bootstrapped anew")
        parser.add_argument("--mib-per-s", type=int, help="how fast its jobs may read; without it as fast as they can")

    def handle(
        self, *, name: str, to: str | None, source: str | None, end: bool, mib_per_s: int | None, **_: Any
    ) -> None:
        if (source is not None or end) and to is None:
            raise CommandError("Say which copy: --to DATA_CENTER.")
        now = wiring.clock.now()
        try:
            dataset = live_dataset(name)
            if end:
                end_replication(find_copy(dataset, to or ""), actor=_ACTOR, now=now)
            elif source is not None:
                copy, origin = find_copy(dataset, to or ""), find_copy(dataset, source)
                replicate(copy, origin, mib_per_s=mib_per_s, actor=_ACTOR, now=now)
        except (Conflict, NotFound, Refused) as problem:
            raise CommandError(printable(str(problem))) from problem
        self._tell(dataset)

    def _tell(self, dataset: Dataset) -> None:
        states = replica_states(dataset)
        if not states:
            self.stdout.write(f"No copy of {dataset} is replicated.")
        for state in states:
            limit = f", at most {state.mib_per_s} MiB/s" if state.mib_per_s else ""
            commit = f"equal to its commit {state.instant}" if state.instant else "not replicated yet"
            error = f" Last run: {printable(state.error)}" if state.error else ""
            self.stdout.write(f"{state.data_center} from {state.replicated_from}{limit}: {commit}.{error}")
