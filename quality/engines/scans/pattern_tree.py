"""A regular expression as a tree, for whoever counts its effort: the syntax that all libraries share, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_NESTING = 30
MAX_REPETITIONS = 100
UNROLLED = 16
"""A character that has to be there so many times, or fewer, is a sequence."""


class TooMuchEffort(ValueError):
    """Says what of the pattern, and what would do."""


@dataclass(frozen=True, eq=False)
class CharacterSet:
    """One character of these; of nothing: an assertion, which takes none."""

    characters: frozenset[str] | None


@dataclass(frozen=True, eq=False)
class PartSequence:
    parts: tuple[PatternNode, ...]


@dataclass(frozen=True, eq=False)
class Choice:
    options: tuple[PatternNode, ...]


@dataclass(frozen=True, eq=False)
class Repeat:
    body: PatternNode
    least: int
    most: int | None


PatternNode = CharacterSet | PartSequence | Choice | Repeat

_TOKEN = re.compile(
    r"""\\x[0-9A-Fa-f]{2} | \\[pP]\{\^?\w+\} | \\. | \[\^?\]?(?:\\x[0-9A-Fa-f]{2}|\\[^pPx0-9]|[^\]\\\[&])*\]
    | \(\?: | \(\?. | (?:[*+?]|\{\d+(?:,\d*)?\}) | .""",
    re.DOTALL | re.VERBOSE,
)
_QUANTIFIER = re.compile(r"[*+?]|\{(?P<least>\d+)(?P<comma>,)?(?P<most>\d+)?\}")
_ASSERTIONS = frozenset({"^", "$", r"\A", r"\z", r"\Z", r"\b", r"\B"})
_CLASS_ESCAPES = frozenset("dDwWsS")
_CONTROL_ESCAPES = frozenset("tnrf")
_FAR_CHARACTERS = "\x80\u00e9\u0131\u017f\u212a\u4e2d\U0001f600"
"""Some of those that no pattern is likely to name, also those that are a letter of ASCII in another case."""


def parse_pattern(pattern: str, *, ignore_case: bool = False) -> PatternNode:
    """Raises TooMuchEffort for syntax that is not known, and for too much of any."""
    return _Parser(pattern, re.IGNORECASE if ignore_case else re.NOFLAG).parse()


class _Parser:
    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self._pattern, self._flags = pattern, flags
        self._tokens = [match.group() for match in _TOKEN.finditer(pattern)]
        self._at = self._repetitions = 0
        near = {chr(min(max(ord(letter) + step, 0), 0x10FFFF)) for letter in pattern for step in (-1, 0, 1)}
        both = {other for letter in near for other in (letter, letter.lower(), letter.upper()) if len(other) == 1}
        # Every set of characters that the pattern can tell apart has one of these.
        self._alphabet = frozenset(map(chr, range(128))) | both | frozenset(_FAR_CHARACTERS)
        self._known_sets: dict[str, frozenset[str]] = {}

    def parse(self) -> PatternNode:
        tree = self._choice(depth=0)
        if self._at < len(self._tokens):
            raise self._unknown(self._tokens[self._at])
        return tree

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _choice(self, depth: int) -> PatternNode:
        if depth > MAX_NESTING:
            raise TooMuchEffort(f"`{self._pattern}` nests groups more than {MAX_NESTING} deep.")
        options = [self._sequence(depth)]
        while self._peek() == "|":
            self._at += 1
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> PatternNode:
        parts = list[PatternNode]()
        while (piece := self._peek()) and piece not in ("|", ")"):
            self._at += 1
            parts.append(self._repeated(self._atom(piece, depth)))
        return parts[0] if len(parts) == 1 else PartSequence(tuple(parts))

    def _repeated(self, body: PatternNode) -> PatternNode:
        match = _QUANTIFIER.fullmatch(self._peek())
        if match is None:
            return body
        self._at += 1
        self._repetitions += 1
        if self._repetitions > MAX_REPETITIONS:
            raise TooMuchEffort(f"A pattern has {MAX_REPETITIONS} repetitions at most here.")
        if self._peek() == "?":  # the fewest first: as many ways
            self._at += 1
        if _QUANTIFIER.fullmatch(self._peek()):
            raise self._unknown(match.group() + self._peek())
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(match.group(), (None, None))
        if least is None:
            least = int(match["least"])
            most = least if not match["comma"] else int(match["most"]) if match["most"] else None
        return _unrolled(body, least, most)

    def _atom(self, piece: str, depth: int) -> PatternNode:
        if piece in ("(", "(?:"):
            body = self._choice(depth + 1)
            if self._peek() != ")":
                raise self._unknown(piece)
            self._at += 1
            return body
        if piece in _ASSERTIONS:
            return CharacterSet(None)
        if piece == "." or piece[:2] in (r"\p", r"\P"):
            return CharacterSet(self._alphabet)
        if piece.startswith("(?") or _QUANTIFIER.fullmatch(piece) or piece in ("[", "\\"):
            raise self._unknown(piece)
        if (
            piece[0] == "\\"
            and len(piece) == 2
            and piece[1].isalnum()
            and piece[1] not in _CLASS_ESCAPES | _CONTROL_ESCAPES
        ):
            raise self._unknown(piece)
        return CharacterSet(self._characters(piece))

    def _characters(self, piece: str) -> frozenset[str]:
        if piece not in self._known_sets:
            try:
                matches = re.compile(piece if len(piece) > 1 else re.escape(piece), self._flags).fullmatch
            except re.error:
                raise self._unknown(piece) from None
            self._known_sets[piece] = frozenset(filter(matches, self._alphabet))
        return self._known_sets[piece]

    def _unknown(self, piece: str) -> TooMuchEffort:
        return TooMuchEffort(
            f"`{piece}` in `{self._pattern}` is not taken here, where a pattern may be tried for ever: write it with literals, classes, "
            "groups, |, * + ? {m,n}, ^ and $."
        )


def _unrolled(body: PatternNode, least: int, most: int | None) -> PatternNode:
    """What has to be there some times is told from what follows by its length too."""
    if not isinstance(body, CharacterSet) or not 1 <= least <= UNROLLED:
        return Repeat(body, least, most)
    copies: tuple[PatternNode, ...] = tuple(CharacterSet(body.characters) for _ in range(least))
    rest = None if most is None else most - least
    return PartSequence(copies) if rest == 0 else PartSequence((*copies, Repeat(body, 0, rest)))
