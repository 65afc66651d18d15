"""`resources`: the size of the Spark session in which the jobs of a pipeline make its rows. Spark's names of settings are taken for ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ingestion.domain.pipelines.yaml_nodes import Fields, Text, Value
from ingestion.domain.resources.job_resources import JobResources
from lakehub.kernel.sizes.memory import memory_mib
from lakehub.kernel.suggest import did_you_mean

SPARK_NAMES = {
    "spark.driver.memory": "memory",
    "spark.executor.cores": "cores",
    "spark.executor.instances": "executors",
    "spark.executor.memory": "executor_memory",
    "spark.sql.shuffle.partitions": "shuffle_partitions",
}
_MEMORY = ("memory", "executor_memory")
_MOST = {"cores": 1_000, "executors": 10_000, "shuffle_partitions": 100_000}
_LEAST_MIB, _MOST_MIB = 512, 16 * 1024**2
"""With less than 450 MiB Spark does not start."""


def read_resources(
    value: Value | None, refuse: Callable[[int, str], None]
) -> tuple[JobResources | None, Mapping[str, int]]:
    """And the lines of its fields. What is wrong is told to `refuse`, with its line."""
    if value is None:
        return None, {}
    if not isinstance(value, Fields) or not value.fields:
        refuse(
            value.line,
            "`resources` has fields, such as `{memory: 4g, cores: 4}`. Leave it out where it asks for nothing.",
        )
        return None, {}
    numbers, lines = dict[str, int](), dict[str, int]()
    for written, each in value.fields.items():
        line = value.lines[written]
        name = SPARK_NAMES.get(written, written)
        if name not in (*_MEMORY, *_MOST):
            refuse(
                line, f"`resources` has no field `{written}`.{did_you_mean(written, (*_MEMORY, *_MOST, *SPARK_NAMES))}"
            )
        elif name in lines:
            refuse(line, f"`{written}` says `{name}` once more.")
        else:
            lines[name] = line
            number = (
                _memory(written, each, line, refuse)
                if name in _MEMORY
                else _number(written, each, line, _MOST[name], refuse)
            )
            if number is not None:
                numbers[f"{name}_mib" if name in _MEMORY else name] = number
    return JobResources(**numbers), lines


def _memory(name: str, value: Value, line: int, refuse: Callable[[int, str], None]) -> int | None:
    mib = memory_mib(value.text) if isinstance(value, Text) else None
    if mib is not None and _LEAST_MIB <= mib <= _MOST_MIB:
        return mib
    refuse(line, f"`{name}` is {_shown(value)}: write memory from 512m on, such as 2g or 1536m.")
    return None


def _number(name: str, value: Value, line: int, most: int, refuse: Callable[[int, str], None]) -> int | None:
    text = value.text.strip() if isinstance(value, Text) else ""
    if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 1 <= int(text) <= most:
        return int(text)
    refuse(line, f"`{name}` is {_shown(value)}: write a whole number from 1 to {most:,}.")
    return None


def _shown(value: Value) -> str:
    return repr(value.text[:80]) if isinstance(value, Text) else "no single value"
