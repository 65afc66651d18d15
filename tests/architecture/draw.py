"""`python -m tests.architecture.draw`: the pictures of docs/architecture.md, from the import contracts and the imports.

`--check` writes nothing and fails where the page is not what would be drawn.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

from tests.architecture.imports import ROOT, module_edges

PAGE = ROOT / "docs" / "architecture.md"


def contracts() -> list[dict[str, object]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layer_contracts: list[dict[str, object]] = settings["tool"]["importlinter"]["contracts"]
    return layer_contracts


def layers(container: str) -> list[list[str]]:
    """The layers below a package, highest first; empty container: those of the whole house."""
    for contract in contracts():
        if contract["type"] != "layers" or container not in contract.get("containers", [""]):  # type: ignore[operator]
            continue
        rows = contract["layers"]
        assert isinstance(rows, list)
        return [[name.strip("() ") for name in row.replace("|", ":").split(":")] for row in rows]
    raise LookupError(f"No contract has layers in `{container}`.")


def drawing(container: str) -> str:
    """The layers as boxes, each with the number of modules in it and of imports that leave it downwards."""
    prefix = f"{container}." if container else ""
    modules: Counter[str] = Counter()
    leaving: Counter[str] = Counter()
    names = [name for row in layers(container) for name in row]
    for importer, many in module_edges().items():
        home = _home(importer, prefix, names)
        if home is None:
            continue
        modules[home] += 1
        leaving[home] += sum(_home(imported, prefix, names) not in (None, home) for imported in many)
    lines = ["```text"]
    for row in layers(container):
        cells = [f"{name} ({modules[name]} → {leaving[name]})" for name in row if modules[name]]
        if cells:
            lines.append("  |  ".join(cells))
    lines.append("```")
    return "\n".join(lines)


def _home(module: str, prefix: str, names: list[str]) -> str | None:
    if not module.startswith(prefix):
        return None
    rest = module.removeprefix(prefix)
    fitting = [name for name in names if rest == name or rest.startswith(f"{name}.")]
    return max(fitting, key=len, default=None)


def drawn(page: str) -> str:
    """The page with what stands between `<!-- layers: X -->` and `<!-- end -->` drawn anew."""
    out, keep = [], True
    for line in page.splitlines():
        if line.startswith("<!-- layers:"):
            container = line.removeprefix("<!-- layers:").removesuffix("-->").strip()
            out += [line, "", drawing("" if container == "house" else container), ""]
            keep = False
        elif line == "<!-- end -->":
            keep = True
        if keep:
            out.append(line)
    return "\n".join(out) + "\n"


def main(arguments: list[str]) -> int:
    page = PAGE.read_text()
    fresh = drawn(page)
    if "--check" in arguments:
        return int(fresh != page)
    Path(PAGE).write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
