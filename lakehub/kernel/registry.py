"""A plug-in folder's table of names; implementations are imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from lakehub.kernel.suggest import did_you_mean

T = TypeVar("T")


class UnknownPlugin(LookupError):
    """No plug-in has that name."""


class UnusablePlugin(UnknownPlugin):
    """A plug-in of an installed package cannot be loaded: it is as if there were none."""


class DuplicatePlugin(RuntimeError):
    """Two plug-ins have one name; the message says which package brought the second."""


class Registry(Generic[T]):
    """`name -> "module:attribute"`; loading one does not import its neighbours.

    With `group`, installed packages add theirs by entry points of that group, after those of `entries`. Raises DuplicatePlugin
    on first use where one of them takes a name that is in use.
    """

    def __init__(self, kind: str, entries: Mapping[str, str], *, group: str = "") -> None:
        self.kind = kind
        self.group = group
        self._own = dict(entries)
        self._all: dict[str, str] | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def get(self, name: str) -> T:
        """Raises UnknownPlugin where there is none, or UnusablePlugin where a package brings one that cannot be loaded."""
        if name not in self._entries:
            raise UnknownPlugin(f"There is no {self.kind} `{name}`.{did_you_mean(name, self._entries)}")
        target = self._entries[name]
        module, _, attribute = target.partition(":")
        try:
            plugin: Any = getattr(import_module(module), attribute)
        except Exception as problem:
            if name in self._own:
                raise
            raise UnusablePlugin(
                f"The {self.kind} `{name}` (`{target}`) of an installed package cannot be loaded "
                f"({type(problem).__name__}: {problem}): mend or uninstall the package."
            ) from problem
        implementation: T = plugin
        return implementation

    def usable(self) -> Iterator[tuple[str, T]]:
        """All by name, without those of installed packages that cannot be loaded."""
        for name in self:
            with suppress(UnusablePlugin):
                yield name, self.get(name)

    def problems(self) -> list[str]:
        """Why plug-ins of installed packages cannot be used. Ours are not loaded for it: their libraries are large."""
        try:
            installed = self._entries.keys() - self._own.keys()
        except DuplicatePlugin as problem:
            return [str(problem)]
        reasons = []
        for name in sorted(installed):
            try:
                self.get(name)
            except UnusablePlugin as problem:
                reasons.append(str(problem))
        return reasons

    @property
    def _entries(self) -> dict[str, str]:
        if self._all is None:
            self._all = self._own | (self._installed() if self.group else {})
        return self._all

    def _installed(self) -> dict[str, str]:
        installed: dict[str, str] = {}
        for entry in sorted(entry_points(group=self.group), key=lambda entry: entry.name):
            if entry.name in self._own or installed.get(entry.name, entry.value) != entry.value:
                package = entry.dist.name if entry.dist else "An installed package"
                raise DuplicatePlugin(
                    f"{package} brings the {self.kind} `{entry.name}` (`{entry.value}`), but there is one already: "
                    f"`{(self._own | installed)[entry.name]}`. Rename it in its entry points of the group `{self.group}`."
                )
            installed[entry.name] = entry.value
        return installed
