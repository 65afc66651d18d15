"""Temporary folders: each says whose it is, and only what ended processes left is swept."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lakehub import scratch
from lakehub.setup.locations import PACKAGES

MAKE_ONE = "from lakehub import scratch; print(scratch.owned_folder('spill'), flush=True); "
"""In a process of its own."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAKEHUB_HOME", str(tmp_path))
    return tmp_path


def run(program: str) -> Path:
    """The folder that the process made, after it ended."""
    done = subprocess.run(
        [sys.executable, "-c", MAKE_ONE + program], cwd=PACKAGES, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return Path(done.stdout.strip())


def named(host: str, pid: int, start: int, *, silent_s: float = 0) -> Path:
    folder = scratch.scratch_root() / f"{scratch.Owner(host, pid, start).name}~spill1"
    folder.mkdir(parents=True)
    (folder / "rows").write_text("spilled")
    os.utime(folder, (at := time.time() - silent_s, at))
    return folder


def test_a_folder_goes_with_its_block_and_with_its_process() -> None:
    with scratch.temporary_folder("spill") as folder:
        (folder / "rows").write_text("spilled")
    assert not folder.exists()
    assert not run("").exists()


def test_what_a_killed_process_left_is_swept() -> None:
    left = run("import os; os.kill(os.getpid(), 9)")
    assert left.is_dir()
    assert scratch.sweep_scratch() == [left]
    assert not left.exists()


def test_nothing_of_a_live_process_is_swept() -> None:
    with scratch.temporary_folder("spill") as folder:
        assert scratch.sweep_scratch() == []
        assert folder.is_dir()


def test_a_process_that_got_the_number_of_one_that_ended_is_another() -> None:
    mine = scratch._owner_of(os.getpid())
    left = named(mine.host, mine.pid, mine.start - 1)
    assert scratch.sweep_scratch() == [left]


def test_a_folder_stays_while_another_process_that_uses_it_runs() -> None:
    """A JVM may outlive the Python that started it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as heir:
        left = run(
            f"import os; scratch.add_owner(next(scratch.scratch_root().iterdir()), {heir.pid}); os.kill(os.getpid(), 9)"
        )
        orderly = run(
            f"scratch.add_owner(next(f for f in scratch.scratch_root().iterdir() if f.name != {left.name!r}), {heir.pid})"
        )
        assert scratch.sweep_scratch() == []
        assert left.is_dir()
        assert orderly.is_dir()
        heir.communicate(b"\n")
    assert set(scratch.sweep_scratch()) == {left, orderly}


def test_what_another_host_renewed_within_a_day_is_left_alone() -> None:
    fresh, old = named("elsewhere.1", 7, 9, silent_s=23 * 3600), named("elsewhere.2", 7, 9, silent_s=25 * 3600)
    assert scratch.sweep_scratch() == [old]
    assert fresh.is_dir()


def test_a_lease_is_renewed_while_its_process_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Twice:
        """Waits no longer than the loop needs for two rounds."""

        rounds = 0

        def wait(self, _seconds: float) -> bool:
            self.rounds += 1
            return self.rounds > 2

    with scratch.temporary_folder("spill") as folder:
        os.utime(folder, (0, 0))
        scratch._renew_leases(scratch.scratch_root(), scratch._owner_of(os.getpid()), Twice())  # type: ignore[arg-type]
        assert time.time() - folder.stat().st_mtime < 60


def test_what_has_no_owner_is_nobody_s_to_remove() -> None:
    strange = scratch.scratch_root() / "notes"
    strange.mkdir(parents=True)
    assert scratch.sweep_scratch() == []
    assert strange.is_dir()


def test_no_folder_of_temporary_files_is_made_elsewhere() -> None:
    """The system's temporary folder belongs to nobody: what a killed process leaves there stays."""
    makers = {"mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile", "gettempdir"}
    callers = {
        path.relative_to(PACKAGES).as_posix()
        for package in ("lakehub", "ingestion", "quality", "incidents", "frontend")
        for path in (PACKAGES / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in makers
        and not any(keyword.arg == "dir" for keyword in node.keywords)
    }
    # A node of a cluster has no instance; a child without rights to any other folder has one of its own.
    assert callers == {"lakehub/scratch.py", "ingestion/spark/session.py", "quality/engines/user_sql/sandbox.py"}
