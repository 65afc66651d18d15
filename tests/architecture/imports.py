"""The product's imports as a graph, those for type checking and those inside functions counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("lakehub", "ingestion", "quality", "incidents", "frontend")
Edges = Mapping[str, frozenset[str]]


@lru_cache(maxsize=1)
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


@lru_cache(maxsize=1)
def module_edges() -> Edges:
    """Module -> the modules that it imports; without migrations."""
    modules = [name for name in graph().modules if ".migrations" not in name]
    return {name: frozenset(graph().find_modules_directly_imported_by(name)) for name in modules}


def root_edges(package: str) -> set[tuple[str, str]]:
    """The imports between what lies in the root of a package, files and folders alike."""
    depth = package.count(".") + 2
    edges = set()
    for importer, imported in ((name, other) for name, others in module_edges().items() for other in others):
        pair = tuple(".".join(name.split(".")[:depth]) for name in (importer, imported))
        if all(name.startswith(f"{package}.") for name in pair) and pair[0] != pair[1]:
            edges.add((pair[0], pair[1]))
    return edges


def root_nodes(package: str) -> set[str]:
    depth = package.count(".") + 2
    return {".".join(name.split(".")[:depth]) for name in module_edges() if name.startswith(f"{package}.")}


def circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups of names that reach each other (Tarjan, without recursion)."""
    following: dict[str, set[str]] = defaultdict(set)
    for importer, imported in edges:
        following[importer].add(imported)
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []
    for start in sorted(following):
        if start in index:
            continue
        work = [(start, iter(sorted(following[start])))]
        index[start] = lowest[start] = len(index)
        stack.append(start)
        while work:
            name, rest = work[-1]
            after = next(rest, None)
            if after is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == index[name]:
                    group = stack[stack.index(name) :]
                    del stack[stack.index(name) :]
                    if len(group) > 1:
                        groups.append(sorted(group))
            elif after not in index:
                index[after] = lowest[after] = len(index)
                stack.append(after)
                work.append((after, iter(sorted(following[after]))))
            elif after in stack:
                lowest[name] = min(lowest[name], index[after])
    return groups
