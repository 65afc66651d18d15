"""Transformers that a pipeline names, and the operator's folder in which their files are."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from pathlib import Path

import pytest

from ingestion.domain.pipelines.definition import Transformer
from ingestion.domain.pipelines.plan import Effect, changes_between, code_changes
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.spark.etl.transformers import jars
from ingestion.spark.etl.transformers.errors import error_place
from ingestion.spark.etl.transformers.files import MAX_BYTES, NoTransformer, read_transformer
from ingestion.spark.etl.transformers.jars import copied, read_jars
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM, problems

TWO = "transformers:\n  - python: fares.py:round_fares\n  - {python: fares.py:with_zone}\n"
TEXTS = {"table.sql": TABLE, "pipeline.yaml": PIPELINE + TWO, "transform.sql": TRANSFORM}


def test_they_are_read_in_their_order_with_their_lines() -> None:
    read = read_pipeline(TEXTS).transformers
    assert read == (Transformer("fares.py:round_fares"), Transformer("fares.py:with_zone"))
    assert [each.line for each in read] == [12, 13]


@pytest.mark.parametrize(
    ("transformers", "why"),
    [
        ("transformers: fares.py:f\n", "pipeline.yaml:11: `transformers` is a list"),
        ("transformers:\n  - fares.py:f\n", "pipeline.yaml:12: A transformer is a function in Python or a class of the JVM: write `- python: fares.py:round_fares`, or `- jvm: fares.jar:com.example.RoundFares`."),
        ("transformers:\n  - pyton: fares.py:f\n", "pipeline.yaml:12: A transformer has no field `pyton`. Did you mean `python`?"),
        ("transformers:\n  - class: org.example.Fares\n", "pipeline.yaml:12: A transformer has no field `class`"),
        ("transformers:\n  - python: [a, b]\n", "pipeline.yaml:12: A transformer is a function"),
        ("transformers:\n  - {python: fares.py:f, properties: {a: b}}\n", "pipeline.yaml:12: A function in Python has no field `properties`."),
        ("transformers:\n  - {python: fares.py:f, jvm: fares.jar:F}\n", "pipeline.yaml:12: A class of the JVM has no field `python`."),
        ("transformers:\n  - {jvm: fares.jar:F, property: {a: b}}\n", "pipeline.yaml:12: A class of the JVM has no field `property`. Did you mean `properties`?"),
        ("transformers:\n  - jvm: com.example.Fares\n", "pipeline.yaml:12: `jvm` is 'com.example.Fares': write `fares.jar:com.example.RoundFares`, with a jar that is in the operator's folder itself"),
        ("transformers:\n  - jvm: ../fares.jar:F\n", "pipeline.yaml:12: `jvm` is '../fares.jar:F'"),
        ("transformers:\n  - jvm: fares.jar:a..B\n", "pipeline.yaml:12: `jvm` is 'fares.jar:a..B'"),
        ("transformers:\n  - {jvm: a.jar:F, jars: [x/y.jar]}\n", "pipeline.yaml:12: `jars` is a list of 10 jars at most"),
        ("transformers:\n  - {jvm: a.jar:F, jars: b.jar}\n", "pipeline.yaml:12: `jars` is a list of 10 jars at most"),
        ("transformers:\n  - {jvm: a.jar:F, jars: [b.jar, [c.jar]]}\n", "pipeline.yaml:12: `jars` is a list of 10 jars at most"),
        ("transformers:\n  - {jvm: a.jar:F, properties: [a]}\n", "pipeline.yaml:12: `properties` gives each name one text"),
        ("transformers:\n  - {jvm: a.jar:F, properties: {a: [b]}}\n", "pipeline.yaml:12: `properties` gives each name one text"),
        ("transformers:\n  - {jvm: a.jar:F, properties: {a: " + "x" * 1001 + "}}\n", "pipeline.yaml:12: `properties` has 50 names at most, and no name or value of more than 1,000 characters."),
        ("transformers:\n  - {jvm: a.jar:F, properties: {" + ", ".join(f"k{n}: v" for n in range(51)) + "}}\n", "pipeline.yaml:12: `properties` has 50 names at most"),
        ("transformers:\n  - python: ../fares.py:f\n", "pipeline.yaml:12: `python` is '../fares.py:f': write `fares.py:round_fares`, with a file that is in the operator's folder itself"),
        ("transformers:\n  - python: fares.round\n", "pipeline.yaml:12: `python` is 'fares.round': write"),
        ("transformers:\n  - python: /etc/x.py:f\n", "pipeline.yaml:12: `python` is '/etc/x.py:f'"),
        ("transformers:\n" + "  - python: a.py:f\n" * 21, "pipeline.yaml:11: It has 21 transformers, 20 at most."),
        ("transformer:\n  - python: a.py:f\n", "pipeline.yaml:11: There is no field `transformer`. Did you mean `transformers`?"),
    ],
)  # fmt: skip
def test_what_is_none_is_refused_with_its_line(transformers: str, why: str) -> None:
    assert any(problem.startswith(why) for problem in problems(pipeline=PIPELINE + transformers))


def test_they_make_columns_that_the_select_lacks_and_no_key_partition_or_precombine() -> None:
    less = TRANSFORM.replace(", sum(f.delay) AS delay", "")
    assert problems(transform=less)
    assert not problems(transform=less, pipeline=PIPELINE + TWO)
    (problem,) = problems(transform=less, pipeline=PIPELINE + TWO + "precombine: delay\n")
    assert "The SELECT has no column `delay` of its own" in problem
    (problem,) = problems(transform=TRANSFORM.replace("f.day,", "f.day AS at,", 1), pipeline=PIPELINE + TWO)
    assert "The SELECT has no column `day` of its own" in problem


def test_in_place_of_the_select_they_get_all_of_the_source() -> None:
    texts = {"table.sql": TABLE, "pipeline.yaml": PIPELINE.partition("inputs:")[0] + TWO}
    read = read_pipeline(texts, {"flights": ("id", "day", "airline")})
    assert re.sub(r"\s+", " ", read.transform) == "SELECT * FROM `flights`"
    assert "transform.sql: The file is missing." in _problems_of({**texts, "pipeline.yaml": PIPELINE})


def _problems_of(texts: dict[str, str]) -> str:
    with pytest.raises(ValueError) as bad:  # noqa: PT011  # any
        read_pipeline(texts)
    return str(bad.value)


def test_others_another_order_or_other_code_may_make_other_rows() -> None:
    turned = {**TEXTS, "pipeline.yaml": PIPELINE + "transformers: [{python: fares.py:with_zone}, {python: fares.py:round_fares}]\n"}  # fmt: skip
    (change,) = changes_between(read_pipeline(TEXTS), read_pipeline(turned))
    assert (change.what, change.before, change.effect) == ("transformers", "fares.py:round_fares, fares.py:with_zone", Effect.ALL_ROWS)  # fmt: skip
    before, after = {"a.py:f": "1" * 64, "b.py:f": "2" * 64}, {"a.py:f": "3" * 64, "b.py:f": "2" * 64, "c.py:f": "4" * 64}  # fmt: skip
    (code,) = code_changes(before, after)
    assert (code.what, code.before, code.after, code.effect) == ("code of a.py:f", "1" * 12, "3" * 12, Effect.ALL_ROWS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "transformers"
    folder.mkdir()
    (folder / "fares.py").write_text("raise SystemExit\ndef round_fares(rows):\n    return rows\n")
    return folder


def test_a_file_is_read_and_not_run(folder: Path) -> None:
    code = read_transformer(str(folder), "fares.py:round_fares")
    assert (code.file, code.function, len(code.digest)) == ("fares.py", "round_fares", 64)
    (folder / "fares.py").write_text(f"{code.text}\n")
    assert read_transformer(str(folder), "fares.py:round_fares").digest != code.digest


def test_what_is_not_in_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    def refusal(name: str, in_folder: str = str(folder)) -> str:
        with pytest.raises(NoTransformer) as refused:
            read_transformer(in_folder, name)
        return str(refused.value)

    assert "has no file `fars.py`. Did you mean `fares.py`?" in refusal("fars.py:round_fares")
    assert "fares.py has no function `round`. Did you mean `round_fares`?" in refusal("fares.py:round")
    assert "this instance takes none" in refusal("fares.py:round_fares", "")
    assert "is not on this machine" in refusal("fares.py:round_fares", str(tmp_path / "gone"))
    outside = tmp_path / "outside.py"
    outside.write_text("def f(rows): return rows")
    (folder / "link.py").symlink_to(outside)
    assert "`link.py` leads out of the folder" in refusal("link.py:f")
    assert "leads out of the folder" in refusal("../outside.py:f")
    (folder / "below").mkdir()
    (folder / "below" / "deep.py").write_text("def f(rows): return rows")
    assert "leads out of the folder" in refusal("below/deep.py:f")
    (folder / "inside.py").symlink_to(folder / "fares.py")
    assert read_transformer(str(folder), "inside.py:round_fares").file == "inside.py"
    (folder / "broken.py").write_text("x = 1\ndef f(:\n")
    assert "broken.py:2 is no Python" in refusal("broken.py:f")
    (folder / "bytes.py").write_bytes(b"\xff")
    assert "is no text in UTF-8" in refusal("bytes.py:f")
    (folder / "large.py").write_text("#" * (MAX_BYTES + 1))
    assert "has more than 1,000,000 bytes" in refusal("large.py:f")
    os.mkfifo(folder / "pipe.py")
    assert "has no file `pipe.py`" in refusal("pipe.py:f")
    (folder / "folder.py").mkdir()
    assert "has no file `folder.py`" in refusal("folder.py:f")


def test_of_an_error_of_a_worker_its_words_and_line_are_told() -> None:
    text = """An error occurred while calling o77.parquet.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.Foo(Foo.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/usr/lib/pyspark/worker.py", line 1247, in main
    process()
  File "fares.py", line 45, in inverse
ZeroDivisionError: integer division or modulo by zero

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:572)
"""
    assert error_place(RuntimeError(text)) == "fares.py:45: ZeroDivisionError"


def test_no_line_of_the_words_of_an_error_is_told() -> None:
    text = """An error occurred while calling o77.parquet.
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "fares.py", line 45, in checked
    raise ValueError(f"These rows are wrong:\\n{rows}")
ValueError: These rows are wrong:
  File "Annkathrin.py", line 4711
Annkathrin

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:572)
"""
    assert error_place(RuntimeError(text)) == "fares.py:45: ValueError"


JVM = "transformers:\n  - jvm: fares.jar:com.example.Round\n    properties: {fares.digits: 2}\n    jars: [rates.jar]\n"


def test_a_class_of_the_jvm_has_its_jar_its_properties_and_the_jars_that_it_needs() -> None:
    (read,) = read_pipeline({**TEXTS, "pipeline.yaml": PIPELINE + JVM}).transformers
    assert read == Transformer("fares.jar:com.example.Round", 12, (("fares.digits", "2"),), ("rates.jar",))
    assert (read.is_jvm, read.code) == (True, "fares.jar:com.example.Round + rates.jar")
    assert not Transformer("jar.py:f").is_jvm
    (change,) = changes_between(
        read_pipeline({**TEXTS, "pipeline.yaml": PIPELINE + JVM}),
        read_pipeline({**TEXTS, "pipeline.yaml": PIPELINE + JVM.replace("digits: 2", "digits: 3")}),
    )
    assert (change.after, change.effect) == ("fares.jar:com.example.Round + rates.jar {fares.digits: 3}", Effect.ALL_ROWS)  # fmt: skip


def jar(path: Path, *classes: str) -> bytes:
    with zipfile.ZipFile(path, "w") as made:
        for each in classes:
            made.writestr(f"{each.replace('.', '/')}.class", each)
    return path.read_bytes()


def test_a_jar_is_read_and_not_run_and_its_digest_is_of_all_jars(folder: Path) -> None:
    content = jar(folder / "fares.jar", "com.example.Round", "com.example.Round$Inner")
    jar(folder / "rates.jar", "com.example.Rates")
    code = read_jars(str(folder), "fares.jar:com.example.Round")
    assert (code.class_name, code.digest) == ("com.example.Round", hashlib.sha256(content).hexdigest())
    assert read_jars(str(folder), "fares.jar:com.example.Round$Inner").digest == code.digest
    both = read_jars(str(folder), "fares.jar:com.example.Round", ("rates.jar",))
    assert [path.name for path in both.paths] == ["fares.jar", "rates.jar"]
    jar(folder / "rates.jar", "com.example.Rates", "com.example.More")
    assert read_jars(str(folder), "fares.jar:com.example.Round").digest == code.digest
    assert read_jars(str(folder), "fares.jar:com.example.Round", ("rates.jar",)).digest != both.digest


def test_a_jar_or_class_that_is_not_there_is_refused(folder: Path, tmp_path: Path) -> None:
    def refusal(name: str, *jars: str, in_folder: str = str(folder)) -> str:
        with pytest.raises(NoTransformer) as refused:
            read_jars(in_folder, name, jars)
        return str(refused.value)

    jar(folder / "fares.jar", "com.example.Round")
    assert "fares.jar has no class `com.example.Rond`. Did you mean `com.example.Round`?" in refusal("fares.jar:com.example.Rond")  # fmt: skip
    assert "has no file `fars.jar`. Did you mean `fares.jar`?" in refusal("fars.jar:com.example.Round")
    assert "has no file `rates.jar`" in refusal("fares.jar:com.example.Round", "rates.jar")
    assert "this instance takes none" in refusal("fares.jar:com.example.Round", in_folder="")
    (folder / "text.jar").write_text("no jar")
    assert "`text.jar` is no jar" in refusal("text.jar:com.example.Round")
    jar(tmp_path / "outside.jar", "com.example.Round")
    (folder / "link.jar").symlink_to(tmp_path / "outside.jar")
    assert "`link.jar` leads out of the folder" in refusal("link.jar:com.example.Round")
    assert "`link.jar` leads out of the folder" in refusal("fares.jar:com.example.Round", "link.jar")


def test_a_jvm_opens_a_copy_that_nobody_replaces(folder: Path, tmp_path: Path) -> None:
    content = jar(folder / "fares.jar", "com.example.Round")
    code = read_jars(str(folder), "fares.jar:com.example.Round")
    (copy,) = copied(code, tmp_path)
    assert copy == tmp_path / f"{code.digest}.jar"
    jar(folder / "fares.jar", "com.example.Round", "com.example.More")
    assert copied(code, tmp_path) == [copy]
    assert copy.read_bytes() == content
    copy.unlink()
    with pytest.raises(NoTransformer, match=r"`fares.jar` was written while it was read"):
        copied(code, tmp_path)


def test_a_jar_that_is_named_often_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar(folder / "large.jar", "com.example.Round")
    read, count = list[Path](), jars._content_digest

    def counted(path: Path) -> str:
        read.append(path)
        return count(path)

    monkeypatch.setattr(jars, "_content_digest", counted)
    for _ in range(20):
        read_jars(str(folder), "large.jar:com.example.Round", ("large.jar",) * 10)
    assert len(read) == 1
