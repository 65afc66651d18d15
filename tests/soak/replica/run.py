"""`python -m tests.soak.replica.run file:///lake/dc1/planes file:///lake/dc2/planes 0.05`: one run of a replication at so many MiB in a second, to be killed. 0: as fast as it can."""

from __future__ import annotations

import sys

from ingestion.domain.pace import Pace
from ingestion.spark.replication.copying import Bandwidth
from ingestion.spark.replication.replicating import Replicated, Replication
from ingestion.spark.replication.table_folder import TableFolder


def replicate(source: str, target: str, mib_per_s: float) -> Replicated:
    """Files that the source no longer has are deleted at once, so that this is killed as well."""
    pace = Pace(mib_per_s * 2**20) if mib_per_s else None
    return Replication(TableFolder(source), TableFolder(target), Bandwidth(pace=pace), grace_s=0.0).run()


if __name__ == "__main__":
    replicate(sys.argv[1], sys.argv[2], float(sys.argv[3]))
