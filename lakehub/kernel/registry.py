"""A plug-in folder's table of names; implementations are imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from lakehub.kernel.suggest import did_you_mean

T = TypeVar("T")


class UnknownPlugin(LookupError):
    """No plug-in has that name."""


class Registry(Generic[T]):
    """`name -> "module:attribute"`; loading one does not import its neighbours."""

    def __init__(self, kind: str, entries: Mapping[str, str]) -> None:
        self.kind = kind
        self._entries = dict(entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def get(self, name: str) -> T:
        try:
            module, attribute = self._entries[name].split(":")
        except KeyError:
            raise UnknownPlugin(f"There is no {self.kind} `{name}`.{did_you_mean(name, self._entries)}") from None
        plugin: Any = getattr(import_module(module), attribute)
        implementation: T = plugin
        return implementation
