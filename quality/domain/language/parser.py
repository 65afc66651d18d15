"""Text to nodes. Functions must exist and parameters be known; names and kinds are for the checker."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from fractions import Fraction
from functools import cache
from typing import cast

from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

from lakehub.kernel.suggest import did_you_mean
from quality.domain.language.functions import FUNCTIONS
from quality.domain.language.grammar import GRAMMAR, TERMINAL_LABELS
from quality.domain.language.lookback import parse_lookback
from quality.domain.language.macros import MACROS
from quality.domain.language.operators import BINARY, OPERATORS
from quality.domain.language.parameters import PARAMETERS, parse_parameter
from quality.domain.language.tree.errors import ExpressionError, TextRange
from quality.domain.language.tree.literals import parse_duration, unquote_name, unquote_text
from quality.domain.language.tree.nodes import Call, Expression, Literal, Name, Node, Parameters
from quality.domain.language.window_functions import WINDOW_FUNCTIONS
from quality.domain.periods import MAX_DURATION
from quality.domain.value_types import ValueType

MAX_LENGTH = 10_000
MAX_DEPTH = 40
_MAX_DIGITS = 40


def parse(text: str) -> Expression:
    """The expression that `text` says, in the readable or the flattened form. Raises ExpressionError with the place."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"The expression has {len(text)} characters; {MAX_LENGTH} are the most.")
    try:
        expression = cast("Expression", _lark().parse(text))
    except VisitError as wrapped:
        raise _with_text(wrapped.orig_exc, text) from None
    except ExpressionError as error:
        raise error.located_in(text) from None
    except UnexpectedInput as unexpected:
        raise _syntax_error(unexpected, text) from None
    _refuse_too_deep(expression.assertion, text)
    return expression


@cache
def _lark() -> Lark:
    return Lark(GRAMMAR, parser="lalr", transformer=_TreeBuilder(), maybe_placeholders=False)


def _with_text(error: Exception, text: str) -> Exception:
    return error.located_in(text) if isinstance(error, ExpressionError) else error


def _refuse_too_deep(node: Node, text: str) -> None:
    level: list[Node] = [node]
    for _ in range(MAX_DEPTH):
        level = [arg for parent in level if isinstance(parent, Call) for arg in parent.args]
        if not level:
            return
    raise ExpressionError(f"The expression is nested more than {MAX_DEPTH} deep.", text=text, where=level[0].where)


def _range_of(token: Token) -> TextRange:
    start = token.start_pos or 0
    return TextRange(start, token.end_pos or start + len(token))


def _number(digits: str, where: TextRange) -> Fraction:
    if len(digits) > _MAX_DIGITS:
        raise ExpressionError(f"A number of {len(digits)} digits; {_MAX_DIGITS} are the most.", where=where)
    return Fraction(digits)


@v_args(inline=True)
class _TreeBuilder(Transformer[Token, Expression]):
    """Called bottom-up while parsing, so that nesting costs no recursion."""

    def start(self, assertion: Node, *parameters: tuple[str, object, TextRange]) -> Expression:
        given = {name: value for name, value, _ in parameters}
        places = {name: where for name, _, where in parameters}
        return Expression(assertion, Parameters(**given), places)  # type: ignore[arg-type]  # each value was checked by name

    def binary(self, left: Node, symbol: Token, right: Node) -> Call:
        return Call(BINARY[symbol.lower()], (left, right), TextRange(left.where.start, right.where.end))

    def negation(self, word: Token, operand: Node) -> Call:
        return Call("not", (operand,), TextRange(_range_of(word).start, operand.where.end))

    def minus(self, sign: Token, operand: Node) -> Call:
        return Call("neg", (operand,), TextRange(_range_of(sign).start, operand.where.end))

    def percent(self, token: Token) -> Literal:
        return Literal(_number(token.rstrip("% \t\n"), _range_of(token)) / 100, ValueType.RATIO, _range_of(token))

    def number(self, token: Token) -> Literal:
        return Literal(_number(token, _range_of(token)), ValueType.NUMBER, _range_of(token))

    def duration(self, token: Token) -> Literal:
        try:
            return Literal(parse_duration(token), ValueType.DURATION, _range_of(token))
        except (OverflowError, ValueError):
            raise ExpressionError(
                f"The duration is too long: write {MAX_DURATION.days:,} days or less.", where=_range_of(token)
            ) from None

    def text(self, token: Token) -> Literal:
        return Literal(unquote_text(token), ValueType.TEXT, _range_of(token))

    def boolean(self, token: Token) -> Literal:
        return Literal(token.lower() == "true", ValueType.BOOLEAN, _range_of(token))

    def call(self, function: Token, *args: Node) -> Call:
        known_functions = [*OPERATORS, *FUNCTIONS, *WINDOW_FUNCTIONS, *MACROS]
        if function.lower() not in known_functions:
            raise ExpressionError(
                f"There is no function `{function}`.{did_you_mean(function.lower(), known_functions)}",
                where=_range_of(function),
            )
        end = args[-1].where.end + 1 if args else _range_of(function).end + 2
        return Call(function.lower(), args, TextRange(_range_of(function).start, end))

    def word(self, token: Token) -> Token:
        return token.update(value=unquote_name(token))

    def at(self, word: Token) -> dict[str, Token]:
        return {"data_center": word}

    def shift(self, *tokens: Token) -> dict[str, Token]:
        length = tokens[-1]
        where = TextRange(_range_of(tokens[0]).start, _range_of(length).end)
        if tokens[0] != "-" or length.type != "DURATION":
            suggested_shift = f"[-{length}]" if length.type == "DURATION" else f"[-{length}d]"
            raise ExpressionError(f"A shift looks back so many hours or days; write {suggested_shift}.", where=where)
        parse_lookback(length, where)
        return {"shift": length}

    def column(self, word: Token) -> dict[str, Token]:
        return {"column": word}

    def name(self, dataset: Token, *parts: dict[str, Token]) -> Name:
        given = {key: token for part in parts for key, token in part.items()}
        last = next(reversed(given), "")
        end = _range_of([dataset, *given.values()][-1]).end + (last == "shift")
        return Name(
            str(dataset),
            str(given.get("data_center", "")),
            str(given.get("column", "")),
            -parse_lookback(given["shift"], _range_of(dataset)) if "shift" in given else timedelta(),
            TextRange(_range_of(dataset).start, end),
        )

    def parameter(self, name: Token, value: Token) -> tuple[str, object, TextRange]:
        if name.lower() not in PARAMETERS:
            raise ExpressionError(
                f"There is no parameter `{name}`.{did_you_mean(name.lower(), PARAMETERS)}", where=_range_of(name)
            )
        return name.lower(), parse_parameter(name.lower(), value.type, value, _range_of(value)), _range_of(value)


def _syntax_error(error: UnexpectedInput, text: str) -> ExpressionError:
    start = min(error.pos_in_stream or 0, len(text))
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        return ExpressionError(
            f"`{error.token}` is not expected here; {_expected_terminals(error.accepts or error.expected)}.",
            text=text,
            where=_range_of(error.token),
        )
    if isinstance(error, UnexpectedCharacters):
        return ExpressionError(f"`{error.char}` is not expected here.", text=text, where=TextRange(start, start + 1))
    end = len(text.rstrip())
    expected = _expected_terminals(error.accepts or error.expected) if isinstance(error, UnexpectedToken) else ""
    return ExpressionError(
        f"The expression ends too early; {expected}.", text=text or " ", where=TextRange(end, end + 1)
    )


def _expected_terminals(terminals: Iterable[str]) -> str:
    if "NUMBER" in terminals:
        return "wanted: a value such as rows(this), 99.9% or 2h"
    words = sorted({TERMINAL_LABELS.get(terminal, f"`{terminal.lower()}`") for terminal in terminals})
    return f"wanted: {', '.join(words)}"


def parse_literal(text: str) -> Literal:
    """One value such as `30m` or `99.9%`. Raises ExpressionError."""
    node = parse(text).assertion
    if not isinstance(node, Literal):
        raise ExpressionError("Only a value is wanted, such as 30m or 99.9%.", text=text, where=node.where)
    return node
