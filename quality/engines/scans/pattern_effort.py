"""How often an engine that goes back and tries again may have to split a text in another way, counted before anything is matched.

Java's regular expressions, PCRE and their like try one way after the other. `.*a.*b` may be split in as many ways as the text has
characters, `a*a*a*b` in as many as there are pairs of places, `(a|a)*b` in two for each character. A way that is known to be wrong
within a few characters does not count: `[A-Z]+-\\d+` is split in one way only.

Syntax that is not known here is refused, for nobody knows its effort.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from quality.engines.scans.pattern_tree import (
    CharacterSet,
    Choice,
    PatternNode,
    Repeat,
    TooMuchEffort,
    parse_pattern,
)

TEXT_LENGTH = 1_000
"""The text for which ways are counted."""
MAX_UNCERTAIN = 2
"""So many repetitions without a bound may be uncertain where they end, or what comes to as many ways."""
MAX_CHARACTERS = 1_000
_LOOKAHEAD = 16
_MAX_LOG_WAYS = MAX_UNCERTAIN * math.log(TEXT_LENGTH + 1) + 1e-9


def check_effort(pattern: str, *, ignore_case: bool = False) -> None:
    """Raises TooMuchEffort."""
    if len(pattern) > MAX_CHARACTERS:
        raise TooMuchEffort(f"A pattern has {MAX_CHARACTERS:,} characters at most here, not {len(pattern):,}.")
    if log_ways(pattern, ignore_case=ignore_case) > _MAX_LOG_WAYS:
        raise TooMuchEffort(
            f"`{pattern}` may be held against a text of {TEXT_LENGTH:,} characters in more than a million ways: this engine tries "
            f"them one after the other. At most {MAX_UNCERTAIN} repetitions may be followed by what they match themselves."
        )


@lru_cache(maxsize=1024)
def log_ways(pattern: str, *, ignore_case: bool = False) -> float:
    """The logarithm of the number of ways, at most. Raises TooMuchEffort for syntax that is not known."""
    tree = parse_pattern(pattern, ignore_case=ignore_case)
    automaton = _Automaton()
    outline = automaton.add(tree)
    automaton.link(outline.last, {_END})
    automaton.follow[_END] = {_END}
    return automaton.log_ways(tree, frozenset({_END}))


# Its automaton: a place for each set of characters

_END = -1
Places = frozenset[int]


@dataclass(frozen=True)
class _Outline:
    """Where texts of a part begin and end; `empty`: it takes no characters too."""

    first: Places
    last: Places
    empty: bool


@dataclass
class _Automaton:
    sets: dict[int, frozenset[str]] = field(default_factory=dict)
    follow: dict[int, set[int]] = field(default_factory=dict)
    outlines: dict[int, _Outline] = field(default_factory=dict)

    def link(self, sources: Iterable[int], targets: Iterable[int]) -> None:
        for source in sources:
            self.follow.setdefault(source, set()).update(targets)

    def add(self, node: PatternNode) -> _Outline:
        outline = self.outlines[id(node)] = self._outline(node)
        return outline

    def _outline(self, node: PatternNode) -> _Outline:
        if isinstance(node, CharacterSet):
            if node.characters is None:
                return _Outline(frozenset(), frozenset(), empty=True)
            place = len(self.sets)
            self.sets[place] = node.characters
            self.follow.setdefault(place, set())
            return _Outline(frozenset({place}), frozenset({place}), empty=False)
        if isinstance(node, Repeat):
            body = self.add(node.body)
            if node.most != 1:
                self.link(body.last, body.first)
            return _Outline(body.first, body.last, body.empty or node.least == 0)
        if isinstance(node, Choice):
            options = [self.add(option) for option in node.options]
            first, last = (
                frozenset[int]().union(*places) for places in zip(*((o.first, o.last) for o in options), strict=True)
            )
            return _Outline(first, last, any(option.empty for option in options))
        whole = _Outline(frozenset(), frozenset(), empty=True)
        for part in map(self.add, node.parts):
            self.link(whole.last, part.first)
            whole = _Outline(
                whole.first | part.first if whole.empty else whole.first,
                part.last | whole.last if part.empty else part.last,
                whole.empty and part.empty,
            )
        return whole

    def log_ways(self, node: PatternNode, after: Places) -> float:
        """`after`: where a text goes on behind the part."""
        if isinstance(node, CharacterSet):
            return 0.0
        if isinstance(node, Repeat):
            return self._log_ways_of_repeat(node, after)
        if isinstance(node, Choice):
            entries = [self._entry(option, after) for option in node.options]
            uncertain = any(not self._are_told_apart(*pair) for pair in _pairs(entries))
            ways = math.log(len(entries)) if uncertain else 0.0
            return ways + max(self.log_ways(option, after) for option in node.options)
        total, behind = 0.0, after
        for part in reversed(node.parts):
            total += self.log_ways(part, behind)
            behind = self._entry(part, behind)
        return total

    def _log_ways_of_repeat(self, node: Repeat, after: Places) -> float:
        body = self.outlines[id(node.body)]
        most = TEXT_LENGTH if node.most is None else min(node.most, TEXT_LENGTH)
        goes_on = body.first | after if most > 1 else after
        within = self.log_ways(node.body, goes_on) * most
        if node.most == node.least or self._are_told_apart(body.first, after):
            return within
        return within + math.log(most - min(node.least, most) + 1)

    def _entry(self, node: PatternNode, after: Places) -> Places:
        outline = self.outlines[id(node)]
        return outline.first | after if outline.empty else outline.first

    def _are_told_apart(self, left: Places, right: Places) -> bool:
        """A text that goes on by `left` differs within a few characters from each that goes on by `right`."""
        for _ in range(_LOOKAHEAD):
            if not self._can_be_equal(left, right):
                return True
            left, right = self._next(left), self._next(right)
        return False

    def _can_be_equal(self, left: Places, right: Places) -> bool:
        if _END in left and _END in right:
            return True
        return not self._characters(left).isdisjoint(self._characters(right))

    def _characters(self, places: Places) -> frozenset[str]:
        return frozenset[str]().union(*(self.sets[place] for place in places if place != _END))

    def _next(self, places: Places) -> Places:
        return frozenset[int]().union(*(self.follow[place] for place in places))


def _pairs(entries: list[Places]) -> Iterator[tuple[Places, Places]]:
    return ((left, right) for at, left in enumerate(entries) for right in entries[:at])
