"""What a replica remembers of its source, in files of its own folder."""

from __future__ import annotations

import json
from dataclasses import asdict

from ingestion.domain.replication.plan import ReplicaState
from ingestion.spark.replication.copying import INCOMING
from ingestion.spark.replication.table_folder import TableFolder

STATE = ".hoodie/.replica/state.json"
"""Written when the replica is whole: one that is being made has none."""
BUILT_OF = ".hoodie/.replica/source"


def read_state(target: TableFolder) -> ReplicaState | None:
    """None: it is no replica."""
    try:
        return ReplicaState(**json.loads(target.read(STATE)))
    except FileNotFoundError:
        return None


def write_state(target: TableFolder, state: ReplicaState) -> None:
    if read_state(target) != state:
        write_whole(target, STATE, json.dumps(asdict(state)).encode())


def write_whole(target: TableFolder, path: str, content: bytes) -> None:
    """Whole or not at all."""
    incoming = f"{INCOMING}/{path.rpartition('/')[2]}"
    with target.create(incoming) as file:
        file.write(content)
    target.move(incoming, path)
