"""What the process of the transformers is told, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from ingestion.spark.contract.spec import TransformerSpec


@dataclass(frozen=True)
class Request:
    """`port` and `token`: of the JVM that the job has. `group`: of Spark's jobs, by which they are cancelled with the job.

    `given_uri`: rows that have each of the `record_key` once; `rows_uri`: where to write what is made of them, in `columns`, types by name. The columns `stays`, among them
    the record key, no transformer changes. `tries_halves`: also that they make of the two halves of the rows what they make of all.
    """

    port: int
    token: str = field(repr=False)
    group: str
    folder: str
    transformers: tuple[TransformerSpec, ...]
    given_uri: str
    rows_uri: str
    columns: dict[str, str]
    stays: tuple[str, ...]
    tries_halves: bool = False


@dataclass(frozen=True)
class Answer:
    """`problem`: what is wrong, with the transformer's name; empty: the rows are written. `is_done`: the process has come to its end. `running`: the transformer that was called last."""

    is_done: bool = False
    problem: str = ""
    running: str = ""
