"""What the peers need, away from our own environment, with which they clash. `python -m bench.peers` makes them: minutes, once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

from bench.harness import cached
from lakehub.setup.artifacts import PROJECT_ROOT, Artifact, ArtifactNotFetched, fetch_artifact
from lakehub.setup.java import java_home

REQUIREMENTS = Path(__file__).with_name("requirements-peers.txt")
RELADIFF_REQUIREMENTS = Path(__file__).with_name("requirements-reladiff.txt")
DEEQU = Artifact(
    organisation="com.amazon.deequ",
    module="deequ",
    revision="2.0.7-spark-3.5",
    sha256="97c2736b1d9df4d4bb3303dd1eaa5f42db70605c79be1769ba9ef5c0cd744faa",
)


class PeersNotInstalled(RuntimeError):
    """The peers are not installed here; says why."""


def python(requirements: Path = REQUIREMENTS) -> Path:
    """The interpreter of the peers' own environment, which belongs to these requirements. Raises PeersNotInstalled where it was not made."""
    interpreter = _folder(requirements) / "bin" / "python"
    if not (_folder(requirements) / "whole").exists():
        raise PeersNotInstalled("not installed here: run `python -m bench.peers`")
    return interpreter


def install() -> None:
    """Raises PeersNotInstalled with what pip said, ArtifactNotFetched for the jar."""
    _install_environment(RELADIFF_REQUIREMENTS)
    fetch_artifact(DEEQU)
    _install_environment(REQUIREMENTS)


def _install_environment(requirements: Path) -> None:
    folder = _folder(requirements)
    if (folder / "whole").exists():
        return
    venv.create(folder, clear=True, with_pip=True)
    # The file names everything with its version: nothing is left to resolve.
    command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "-r", requirements]
    ended = subprocess.run(
        [*map(str, command), "--disable-pip-version-check"], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise PeersNotInstalled(f"could not be installed: {ended.stderr.strip().splitlines()[-1]}")
    (folder / "whole").touch()


def environ() -> dict[str, str]:
    """What a contender is started with. Nobody sends anything home."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {
        **inherited,
        "PYTHONPATH": str(PROJECT_ROOT),
        "GX_ANALYTICS_ENABLED": "false",
        "SODA_CORE_TELEMETRY_ENABLED": "false",
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "DEEQU_JAR": str(_jar()),
    }


def _folder(requirements: Path) -> Path:
    return cached(f"peers-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}")


def _jar() -> Path:
    """Where the jar lies, or would."""
    try:
        return fetch_artifact(DEEQU)
    except ArtifactNotFetched:
        return Path("missing.jar")


def main() -> None:
    install()
    print(python())


if __name__ == "__main__":
    try:
        main()
    except (PeersNotInstalled, ArtifactNotFetched) as problem:
        sys.exit(str(problem))
