"""Every address of the resolver with its methods, and what stands in place of its variables, for tests that go everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.db import transaction
from django.urls import URLPattern, URLResolver, get_resolver

from tests.callers import World

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NOT_OURS = ("console/jsi18n/", "console/<url>")
"""Words of the console in the browser's language; what catches every other address below it."""


def addresses(resolver: URLResolver | None = None, before: str = "") -> Iterator[tuple[str, Any]]:
    """Each address of the resolver as it is written there, and what answers."""
    for pattern in (resolver or get_resolver()).url_patterns:
        here = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern, here)
        elif isinstance(pattern, URLPattern):
            yield here.replace("(?P<url>.*)$", "<url>"), pattern.callback


def methods_of(view: Any) -> tuple[str, ...]:
    """Those that it answers: a class says so; of a function, its code does."""
    cls = getattr(view, "view_class", None) or getattr(view, "cls", None)
    if cls is not None:
        allowed = {name.upper() for name in cls.http_method_names if hasattr(cls, name)}
        return tuple(method for method in METHODS if method in allowed)
    while hasattr(view, "__wrapped__"):
        if (allowed := _required(view)) is not None:
            return tuple(method for method in METHODS if method in allowed)
        view = view.__wrapped__
    posts = "POST" in (*view.__code__.co_names, *view.__code__.co_consts)
    return ("GET", "POST") if posts else ("GET",)


def _required(view: Any) -> tuple[str, ...] | None:
    """What `require_POST` and its like hold."""
    cells = zip(view.__code__.co_freevars, view.__closure__ or (), strict=True)
    return next((tuple(cell.cell_contents) for name, cell in cells if name == "request_method_list"), None)


@cache
def walk() -> tuple[tuple[str, str], ...]:
    """(method, address) of all that is ours, and of what is read on the console."""
    requests = []
    for address, view in addresses():
        if address in NOT_OURS:
            continue
        if address.startswith("console/"):
            requests.append(("GET", address))
        else:
            requests.extend((method, address) for method in methods_of(view))
    return tuple(dict.fromkeys(requests))


OURS = [(method, address) for method, address in walk() if not address.startswith("console/")]
CONSOLE = [address for _, address in walk() if address.startswith("console/")]


def place(address: str, world: World) -> str:
    """The address with what is there in place of its variables."""
    for pattern, thing in sorted(world.places.items(), key=lambda place: -len(place[0])):
        address = address.replace(pattern, re.sub(r"<[^>]*>", thing, pattern))
    assert "<" not in address, f"tests/callers.py has nothing that stands for the variables of {address}"
    return address


def filled(body: Any, world: World) -> Any:
    """The body with the numbers and names of what is there."""
    if isinstance(body, Mapping):
        return {name: filled(value, world) for name, value in body.items()}
    if isinstance(body, list):
        return [filled(element, world) for element in body]
    return (
        world.places[body[1:-1]] if isinstance(body, str) and body[:1] == "{" and body[1:-1] in world.places else body
    )


@contextmanager
def undone() -> Iterator[None]:
    """What is done within never was."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
