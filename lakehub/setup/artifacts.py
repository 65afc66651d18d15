"""The jars that Lakehub needs besides PySpark's own: named by Maven coordinates, checked by SHA-256, kept in a cache.

They are resolved by Ivy, which PySpark ships, so no other build tool is needed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from lakehub.setup.java import java_home
from lakehub.setup.locations import PACKAGES, cache_folder
from lakehub.setup.truststore import PASSWORD, write_java_truststore

PROJECT_ROOT = PACKAGES
FETCH_TIMEOUT_S = 420
_MAX_NAMED = 3


class ArtifactNotFetched(RuntimeError):
    """An artifact could not be had, or is not the one that was asked for."""


@dataclass(frozen=True)
class Artifact:
    """One jar of a Maven repository, without what it depends on."""

    organisation: str
    module: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.module}-{self.revision}.jar"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.module}:{self.revision}"


HUDI = Artifact(
    organisation="org.apache.hudi",
    module="hudi-spark3.5-bundle_2.12",
    revision="1.2.0",
    sha256="cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676",
)

HUDI_JAVA_CLIENT = Artifact(
    organisation="org.apache.hudi",
    module="hudi-java-client",
    revision="1.2.0",
    sha256="5416eb8f57d179a9ac6e6d2b424420b5dad67f32368521d1499d02df69a1a69a",
)
"""Writes small commits without Spark jobs; the rest of what it needs is in the bundle."""
SPARK_JARS = (HUDI, HUDI_JAVA_CLIENT)
"""What Lakehub's own Spark sessions are given."""

HBASE_JARS = (
    Artifact(
        "org.apache.hbase",
        "hbase-shaded-mapreduce",
        "2.6.4-hadoop3",
        "534e1d19415b579eb8598ab0b721bf2c7fe2fe7abc2659d8c08a8fa7fb4fa1eb",
    ),
    Artifact(
        "io.opentelemetry",
        "opentelemetry-api",
        "1.49.0",
        "a813c9a92b82a4ffa3a62e88216a9e9ef9a407fcd41614fe596b2895167ed638",
    ),
    Artifact(
        "io.opentelemetry",
        "opentelemetry-context",
        "1.49.0",
        "17de3c85b341240b3b216c43adbd244c9fbd39c9e5448306d56460f80599a76b",
    ),
    Artifact(
        "io.opentelemetry.semconv",
        "opentelemetry-semconv",
        "1.29.0-alpha",
        "a95f1aed7e3f64353ec625c6def72a0caaf06b6c53970f578fdd513dafd995fd",
    ),
    Artifact(
        "org.apache.yetus",
        "audience-annotations",
        "0.13.0",
        "3bfbb397b06f63a2a0a361f62ed32cf199bd92ddd48ea99281f4987edec9777b",
    ),
)
"""HBase's client, for datasets with a Global Index there: in a class loader of its own, beside Spark's."""


def artifact_path(artifact: Artifact) -> Path:
    """Where a fetched artifact lies. Raises `ArtifactNotFetched` where it was never fetched."""
    path = _cached_path(artifact)
    if not path.is_file():
        raise ArtifactNotFetched(f"{artifact} is not at {path}. Run `lakehub setup`, or `make setup` in a checkout.")
    return path


def fetch_artifact(artifact: Artifact) -> Path:
    """The artifact's file, fetched where it is missing; a copy with another checksum is fetched again."""
    (path,) = fetch_artifacts([artifact])
    return path


def fetch_artifacts(artifacts: Sequence[Artifact]) -> list[Path]:
    """Those that are missing are fetched together: the resolver takes seconds to start. None is kept where one is not the one that was asked for."""
    paths = {artifact: _cached_path(artifact) for artifact in artifacts}
    missing = [artifact for artifact, path in paths.items() if not path.is_file() or _sha256(path) != artifact.sha256]
    if missing:
        folder = cache_folder() / "jars"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
            fetched = _resolve(missing, Path(scratch))
            for artifact, file in fetched.items():
                _check(artifact, file)
            for artifact, file in fetched.items():
                file.replace(paths[artifact])
    return [paths[artifact] for artifact in artifacts]


def _check(artifact: Artifact, fetched: Path) -> None:
    checksum = _sha256(fetched)
    if checksum != artifact.sha256:
        raise ArtifactNotFetched(
            f"{artifact} came with SHA-256 {checksum}, but {artifact.sha256} was expected. It was thrown away: check the repository that served it."
        )


def _cached_path(artifact: Artifact) -> Path:
    return cache_folder() / "jars" / artifact.file_name


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _resolve(artifacts: Sequence[Artifact], scratch: Path) -> dict[Artifact, Path]:
    """Let Ivy fetch them into `scratch`, each without what it depends on."""
    wanted = scratch / "wanted.xml"
    wanted.write_text(_ivy_file(artifacts))
    command = [*_ivy_command(scratch), "-ivy", str(wanted), "-types", "jar", "bundle", "-confs", "default"]
    command += ["-retrieve", str(scratch / "[artifact]-[revision].[ext]")]
    named = ", ".join(map(str, artifacts[:_MAX_NAMED])) + (" and others" if len(artifacts) > _MAX_NAMED else "")
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise ArtifactNotFetched(
            f"{named} was not fetched within {FETCH_TIMEOUT_S} s. Is the network up? {_MIRROR_HINT}"
        ) from None
    fetched = {artifact: scratch / artifact.file_name for artifact in artifacts}
    if run.returncode or not all(file.is_file() for file in fetched.values()):
        raise ArtifactNotFetched(
            f"{named} could not be fetched. {_MIRROR_HINT} Ivy said:\n{_ivy_errors(run.stdout + run.stderr)}"
        )
    return fetched


def _ivy_file(artifacts: Sequence[Artifact]) -> str:
    dependencies = "".join(
        f"<dependency org={quoteattr(each.organisation)} name={quoteattr(each.module)} rev={quoteattr(each.revision)} "
        'transitive="false" conf="default->master"/>'
        for each in artifacts
    )
    return (
        '<ivy-module version="2.0"><info organisation="lakehub" module="jars"/><configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


_MIRROR_HINT = (
    "LAKEHUB_MAVEN_REPOSITORY may name a mirror, and LAKEHUB_CACHE a folder whose `jars` has the file already."
)


def _ivy_command(scratch: Path) -> list[str]:
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise ArtifactNotFetched(
            "PySpark is not installed. Install the package `lakehub`, or run `make setup` in a checkout."
        )
    (ivy,) = (Path(spark.origin).parent / "jars").glob("ivy-*.jar")
    command = [str(java_home() / "bin" / "java"), f"-Divy.default.ivy.user.dir={scratch}"]
    truststore = scratch / "trusted.p12"
    if write_java_truststore(truststore):
        command += [f"-Djavax.net.ssl.trustStore={truststore}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]
    return [*command, "-jar", str(ivy), "-cache", str(scratch / "ivy"), "-m2compatible", *_mirror_settings(scratch)]


def _mirror_settings(scratch: Path) -> list[str]:
    """Ivy's default is the public repository; a mirror needs a settings file."""
    mirror = os.environ.get("LAKEHUB_MAVEN_REPOSITORY")
    if not mirror:
        return []
    file = scratch / "settings.xml"
    file.write_text(
        '<ivysettings><settings defaultResolver="mirror"/><resolvers>'
        f'<ibiblio name="mirror" m2compatible="true" root={quoteattr(mirror)}/></resolvers></ivysettings>'
    )
    return ["-settings", str(file)]


def _ivy_errors(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip() and set(line.strip()) != {"."}]
    return "\n".join(lines[-12:])
