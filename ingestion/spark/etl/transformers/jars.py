"""Jars of the operator's folder, from which pipelines name classes. They are read here, and nothing in them is run."""

from __future__ import annotations

import os
import shutil
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from hashlib import file_digest, sha256
from pathlib import Path

from ingestion.spark.etl.transformers.files import NoTransformer, path_in_folder
from lakehub.kernel.suggest import did_you_mean

MAX_BYTES = 512 * 2**20
_ENDING = ".class"


@dataclass(frozen=True)
class JarCode:
    """`name`: as `fares.jar:com.example.RoundFares`. `paths`: of its jar, and of those that it needs besides."""

    name: str
    paths: tuple[Path, ...]
    digests: tuple[str, ...]

    @property
    def class_name(self) -> str:
        return self.name.partition(":")[2]

    @property
    def digest(self) -> str:
        """Of all of them, in their order; of one, that of the file."""
        return self.digests[0] if len(self.digests) == 1 else sha256("".join(self.digests).encode()).hexdigest()


def read_jars(folder: str, name: str, more: tuple[str, ...] = ()) -> JarCode:
    """`more`: jars that the class needs besides. Raises NoTransformer."""
    file, _, class_name = name.partition(":")
    paths = tuple(path_in_folder(folder, each, name) for each in (file, *more))
    for path in paths:
        if path.stat().st_size > MAX_BYTES:
            raise NoTransformer(
                f"The transformer `{name}` cannot be used: `{path.name}` has more than {MAX_BYTES:,} bytes."
            )
    classes = _classes_of(paths[0], name)
    if class_name not in classes:
        raise NoTransformer(
            f"The transformer `{name}` is not there: {file} has no class `{class_name}`.{did_you_mean(class_name, classes)}"
        )
    return JarCode(name, paths, tuple(_digest_of(path) for path in paths))


def _classes_of(path: Path, name: str) -> list[str]:
    try:
        with zipfile.ZipFile(path) as jar:
            entries = jar.namelist()
    except (zipfile.BadZipFile, OSError, ValueError) as problem:
        raise NoTransformer(f"The transformer `{name}` cannot be used: `{path.name}` is no jar: {problem}.") from None
    return [entry.removesuffix(_ENDING).replace("/", ".") for entry in entries if entry.endswith(_ENDING)]


def _digest_of(path: Path) -> str:
    """One check may name a large jar many times."""
    facts = path.stat()
    return _digest_of_version(path, facts.st_ino, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=64)
def _digest_of_version(path: Path, *version: int) -> str:
    return _content_digest(path)


def _content_digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def copied(code: JarCode, folder: Path) -> list[Path]:
    """Under names by their content: a jar that is replaced while a JVM has it open ends that JVM. Raises NoTransformer."""
    return [_copy_of(path, digest, folder, code.name) for path, digest in zip(code.paths, code.digests, strict=True)]


def _copy_of(path: Path, digest: str, folder: Path, name: str) -> Path:
    target = folder / f"{digest}.jar"
    if target.is_file():
        return target
    copy = Path(shutil.copyfile(path, folder / f"{digest}.{os.getpid()}"))
    if _content_digest(copy) != digest:
        raise NoTransformer(
            f"The transformer `{name}` cannot be used: `{path.name}` was written while it was read. Run it again."
        )
    return copy.rename(target)
