"""Does a soak fail where a line of the product is broken? Each line is broken in a copy of this tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lakehub.setup.artifacts import PROJECT_ROOT

_LINKED = (".venv", ".cache")
"""Of the tree, and not in git."""


@dataclass(frozen=True)
class Break:
    """`line` of `file`, which has it once, becomes `broken`. `rounds`: the arguments that show it. `finding`: a pattern of what the rounds say then."""

    name: str
    file: str
    line: str
    broken: str
    rounds: tuple[str, ...]
    finding: str


def play_broken(breaks: Sequence[Break], soak: Sequence[str]) -> int:
    """0 where each of them is found. `soak`: the module that plays, and its arguments beside those of a break."""
    held = 0
    for each in breaks:
        require_line(PROJECT_ROOT / each.file, each)
    for each in breaks:
        problem = _problem(each, soak)
        held += bool(problem)
        print(f"{'HELD' if problem else 'failed, as it must'}  {each.name}{problem}", flush=True)
    return 1 if held else 0


def _problem(broken: Break, soak: Sequence[str]) -> str:
    """Empty: the rounds found it."""
    folder = Path(tempfile.mkdtemp(prefix="lakehub-broken-"))
    scratch = folder / "tmp"
    scratch.mkdir()
    # MariaDB runs as a user of its own, with temporary files.
    folder.chmod(0o755)
    scratch.chmod(0o1777)
    _copy_tree(folder)
    _break_line(folder / broken.file, broken)
    command = [sys.executable, "-m", *soak, *broken.rounds]
    env = os.environ | {"TMPDIR": str(scratch)}
    played = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    finding = re.search(rf".*(?:{broken.finding}).*", played.stdout)
    if played.returncode != 1 or finding is None:
        (folder / "output").write_text(played.stdout + played.stderr)
        return f": ended with {played.returncode}, and not by {broken.finding!r}: {folder}/output"
    print(f"  {finding[0].strip()[:300]}", flush=True)
    shutil.rmtree(folder)
    return ""


def _copy_tree(folder: Path) -> None:
    """With what is changed and not committed yet."""
    for name in _files():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PROJECT_ROOT / name, target)
    for name in _LINKED:
        (folder / name).symlink_to((PROJECT_ROOT / name).resolve())


def _files() -> Sequence[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=PROJECT_ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (PROJECT_ROOT / name).is_file()]


def require_line(file: Path, broken: Break) -> None:
    """Once, so that nothing else is broken. Raises SystemExit."""
    times = file.read_text().splitlines().count(broken.line)
    if times != 1:
        raise SystemExit(f"{broken.file} has this line {times} times, and not once: {broken.line.strip()}")


def _break_line(file: Path, broken: Break) -> None:
    lines = [broken.broken if line == broken.line else line for line in file.read_text().splitlines()]
    file.write_text("\n".join([*lines, ""]))
