"""Serves plotly's script out of the installed Python package, so that no copy of it is kept here and no CDN is asked."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any, Literal, overload

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

FOLDER = "plotly"
SCRIPT = "plotly.min.js"


class PlotlyFinder(BaseFinder):
    """Finds `plotly/plotly.min.js` and nothing else."""

    def __init__(self) -> None:
        self._storage = FileSystemStorage(location=str(files("plotly").joinpath("package_data")))
        # collectstatic reads where a storage's files go from this attribute.
        self._storage.prefix = FOLDER  # type: ignore[attr-defined]  # the stub lacks what Django documents

    @overload
    def find(self, path: str, find_all: Literal[False] = False, **kwargs: Any) -> str | None: ...
    @overload
    def find(self, path: str, find_all: Literal[True], **kwargs: Any) -> list[str]: ...
    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        if path != f"{FOLDER}/{SCRIPT}":
            # Like Django's own finders in both ways of asking: `finders.find` takes None for a match.
            return []
        script_path = self._storage.path(SCRIPT)
        return [script_path] if find_all else script_path

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterable[tuple[str, Storage]]:
        yield SCRIPT, self._storage
