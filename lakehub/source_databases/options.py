"""What a URL may say behind its `?`: each option has a type, and what is not of it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MAX_CONNECT_TIMEOUT_S = 60


@dataclass(frozen=True)
class Option:
    """`form` says for people what `parse` takes; `parse` raises ValueError for anything else. `is_file`: it names a file here."""

    form: str
    parse: Callable[[str], object]
    is_file: bool = False


def whole_number(least: int, most: int) -> Option:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return Option(f"a whole number from {least} to {most}", parse)


def one_of(*values: str) -> Option:
    def parse(text: str) -> str:
        if text not in values:
            raise ValueError(text)
        return text

    return Option(f"one of {', '.join(values)}", parse)


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


def matching(pattern: str, form: str) -> Option:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(text)
        return text

    return Option(form, parse)


def _certificate_path(text: str) -> str:
    if not Path(text).is_absolute() or ".." in Path(text).parts or not text.isprintable():
        raise ValueError(text)
    return text


CONNECT_TIMEOUT = whole_number(1, MAX_CONNECT_TIMEOUT_S)
FLAG = Option("true or false", _flag)
ENCODING = matching(r"[A-Za-z0-9_-]{1,30}", "the name of an encoding, such as utf8")
NAME = matching(r"[ -~]{1,63}", "a name of at most 63 characters")
IDENTIFIER = matching(r"[A-Za-z_][A-Za-z0-9_$]{0,62}", "a name of letters, digits and _")
CERTIFICATE = Option("the absolute path of a certificate file", _certificate_path, is_file=True)
SESSION_SETTINGS = matching(
    r"-c ?(search_path|role)=[\w$,]{1,200}( -c ?(search_path|role)=[\w$,]{1,200})?",
    "-csearch_path=sales,public or -crole=reader; other settings are the server's to make for the account",
)
