"""A locked list of jars, as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehub.setup.artifacts import Artifact
from lakehub.setup.jar_list import main, read_jar_list
from tests.architecture.imports import ROOT

SHA = "ab" * 32


def written(folder: Path, text: str) -> Path:
    file = folder / "some.jars"
    file.write_text(text)
    return file


def test_each_line_is_an_artifact(tmp_path: Path) -> None:
    file = written(tmp_path, f"# what it is for\n\norg.example:thing:1.0 {SHA}\n  org.example:other:2 {SHA}\n")
    assert read_jar_list(file) == [
        Artifact("org.example", "thing", "1.0", SHA),
        Artifact("org.example", "other", "2", SHA),
    ]


@pytest.mark.parametrize("line", ["org.example:thing:1.0", f"thing:1.0 {SHA}", "a:b:1 " + "g" * 64, f"a:b:1 {SHA}0"])
def test_a_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(
        ValueError, match=f"some.jars has the line '{line}': expected `organisation:module:revision sha256`"
    ):
        read_jar_list(written(tmp_path, line))


def test_two_jars_of_the_same_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"lists thing-1.0.jar twice"):
        read_jar_list(written(tmp_path, f"org.example:thing:1.0 {SHA}\ncom.example:thing:1.0 {SHA}\n"))


def test_a_list_that_is_not_there_is_an_error_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.jars")]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "none.jars" in err


@pytest.mark.parametrize(("name", "module"), [("kafka", "kafka_2.13"), ("hbase", "hbase-server")])
def test_the_list_of_a_server_can_be_read(name: str, module: str) -> None:
    assert module in {artifact.module for artifact in read_jar_list(ROOT / f"deploy/services/{name}.jars")}


def test_lists_agree_on_a_jar_of_the_same_name() -> None:
    """They share the cache: one would replace the other's at each start."""
    lists = [file for folder in ("deploy", "bench", "tests") for file in (ROOT / folder).rglob("*.jars")]
    artifacts = {artifact for file in lists for artifact in read_jar_list(file)}
    names = [artifact.file_name for artifact in artifacts]
    assert len(lists) > 1
    assert sorted(names) == sorted(set(names))
