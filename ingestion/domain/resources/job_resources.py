"""What a pipeline asks of a Spark session of its own, and how much an instance allows."""

from __future__ import annotations

from dataclasses import dataclass

from lakehub.kernel.sizes.memory import memory_text

_EXECUTOR_MEMORY_MIB = 1024
"""What Spark gives an executor whose memory is not named."""


@dataclass(frozen=True)
class JobResources:
    """None: what any other session has. `memory_mib`: of the driver, in which on one machine all tasks run. `cores`: tasks at once, on one machine of the driver, on a cluster of
    each executor. `executors` and their memory: on a cluster."""

    memory_mib: int | None = None
    cores: int | None = None
    executors: int | None = None
    executor_memory_mib: int | None = None
    shuffle_partitions: int | None = None

    def memory_in_all(self, *, on_cluster: bool) -> int:
        """MiB. An executor that is not named is one."""
        driver = self.memory_mib or 0
        if not (on_cluster and self.has_executors):
            return driver
        return driver + (self.executors or 1) * (self.executor_memory_mib or _EXECUTOR_MEMORY_MIB)

    def cores_in_all(self, *, on_cluster: bool) -> int:
        if not on_cluster:
            return self.cores or 0
        return (self.executors or 1) * (self.cores or 1) if self.has_executors else 0

    @property
    def has_executors(self) -> bool:
        """It says something of them, on a cluster."""
        return bool(self.cores or self.executors or self.executor_memory_mib)


@dataclass(frozen=True)
class ResourceLimits:
    """The most that one session may have. `on_cluster`: its tasks run on executors, which count as well."""

    memory_mib: int
    cores: int
    on_cluster: bool = False


def excess(asked: JobResources, limits: ResourceLimits) -> dict[str, str]:
    """By the field that says it, in words what is more than is allowed, and what to do."""
    memory, cores = (
        asked.memory_in_all(on_cluster=limits.on_cluster),
        asked.cores_in_all(on_cluster=limits.on_cluster),
    )
    problems = dict[str, str]()
    if memory > limits.memory_mib:
        field = "executor_memory" if limits.on_cluster and asked.executor_memory_mib else "memory"
        problems[field] = (
            f"`resources` asks for {memory_text(memory)} of memory{_in_all(limits)}, and this instance allows {memory_text(limits.memory_mib)} for a session. "
            "Ask for less, or ask its operator to raise LAKEHUB_SPARK_MAX_MEMORY."
        )
    if cores > limits.cores:
        problems["cores"] = (
            f"`resources` asks for {cores:,} cores{_in_all(limits)}, and this instance allows {limits.cores:,} for a session. "
            "Ask for less, or ask its operator to raise LAKEHUB_SPARK_MAX_CORES."
        )
    return problems


def _in_all(limits: ResourceLimits) -> str:
    return " in all" if limits.on_cluster else ""
