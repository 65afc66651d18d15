"""Fetching a jar by its coordinates, through the real resolver, from a repository in a folder."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from lakehub.setup.artifacts import Artifact, ArtifactNotFetched, artifact_path, fetch_artifact, fetch_artifacts
from lakehub.setup.jar_list import main as jar_list

CONTENT = b"PK\x03\x04 not much of a jar"


def artifact(content: bytes = CONTENT, module: str = "thing") -> Artifact:
    return Artifact("org.example", module, "1.0", hashlib.sha256(content).hexdigest())


def put_into_mirror(mirror: Path, module: str) -> None:
    folder = mirror / "org" / "example" / module / "1.0"
    folder.mkdir(parents=True)
    (folder / f"{module}-1.0.jar").write_bytes(CONTENT)
    (folder / f"{module}-1.0.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
        f"<artifactId>{module}</artifactId><version>1.0</version></project>"
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a mirror that has org.example:thing:1.0 and org.example:other:1.0."""
    for module in ("thing", "other"):
        put_into_mirror(tmp_path / "mirror", module)
    monkeypatch.setenv("LAKEHUB_MAVEN_REPOSITORY", (tmp_path / "mirror").as_uri() + "/")
    monkeypatch.setenv("LAKEHUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_fetched_from_the_mirror_and_kept(cache: Path) -> None:
    assert fetch_artifact(artifact()).read_bytes() == CONTENT
    assert artifact_path(artifact()) == cache / "jars" / "thing-1.0.jar"


def test_what_is_there_is_not_fetched_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch_artifact(artifact())
    monkeypatch.setenv("LAKEHUB_MAVEN_REPOSITORY", "file:///nowhere/")
    assert fetch_artifact(artifact()).read_bytes() == CONTENT


def test_a_damaged_file_is_replaced(cache: Path) -> None:
    fetch_artifact(artifact()).write_bytes(b"half")
    assert fetch_artifact(artifact()).read_bytes() == CONTENT


def test_another_checksum_is_refused_and_nothing_is_left(cache: Path) -> None:
    with pytest.raises(ArtifactNotFetched, match=r"came with SHA-256 .* was expected"):
        fetch_artifact(artifact(b"what was pinned"))
    assert list((cache / "jars").iterdir()) == []


def test_what_the_repository_lacks_is_said_with_what_to_do(cache: Path) -> None:
    with pytest.raises(ArtifactNotFetched, match="LAKEHUB_MAVEN_REPOSITORY may name a mirror"):
        fetch_artifact(artifact(module="thnig"))


def test_what_was_never_fetched_is_said_with_what_to_do(cache: Path) -> None:
    with pytest.raises(ArtifactNotFetched, match="Run `lakehub setup`"):
        artifact_path(artifact())


def test_a_list_is_fetched_at_once_and_printed_as_a_class_path(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifacts = [artifact(), artifact(module="other")]
    (cache.parent / "some.jars").write_text("".join(f"{each} {each.sha256}\n" for each in artifacts))
    assert jar_list([str(cache.parent / "some.jars")]) == 0
    assert capsys.readouterr().out == f"{cache}/jars/thing-1.0.jar:{cache}/jars/other-1.0.jar\n"
    assert [path.read_bytes() for path in (cache / "jars").iterdir()] == [CONTENT, CONTENT]


def test_of_a_list_nothing_is_kept_where_a_jar_is_another(cache: Path) -> None:
    replaced = replace(artifact(module="other"), sha256="0" * 64)
    with pytest.raises(ArtifactNotFetched, match=r"org.example:other:1.0 came with SHA-256"):
        fetch_artifacts([artifact(), replaced])
    assert list((cache / "jars").iterdir()) == []
