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
from quality.domain.expression.amounts import duration_of, text_of
from quality.domain.expression.errors import ExpressionError, Where
from quality.domain.expression.grammar import DESCRIBED, GRAMMAR
from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import LEAVES
from quality.domain.expression.nodes import Call, Expression, Literal, Name, Node, Parameters
from quality.domain.expression.operators import BINARY, OPERATORS
from quality.domain.expression.parameters import PARAMETERS, parameter_value
from quality.domain.expression.series import SERIES
from quality.domain.expression.shifts import look_back
from quality.domain.expression.sugar import SUGAR

LONGEST = 10_000
DEEPEST = 40
_DIGITS = 40


def parse(text: str) -> Expression:
    """The expression that `text` says, in the readable or the flattened form. Raises ExpressionError with the place."""
    if len(text) > LONGEST:
        raise ExpressionError(f"The expression has {len(text)} characters; {LONGEST} are the most.")
    try:
        expression = cast("Expression", _lark().parse(text))
    except VisitError as wrapped:
        raise _placed(wrapped.orig_exc, text) from None
    except ExpressionError as error:
        raise error.located_in(text) from None
    except UnexpectedInput as unexpected:
        raise _unexpected(unexpected, text) from None
    _refuse_too_deep(expression.assertion, text)
    return expression


@cache
def _lark() -> Lark:
    return Lark(GRAMMAR, parser="lalr", transformer=_Build(), maybe_placeholders=False)


def _placed(error: Exception, text: str) -> Exception:
    return error.located_in(text) if isinstance(error, ExpressionError) else error


def _refuse_too_deep(node: Node, text: str) -> None:
    level: list[Node] = [node]
    for _ in range(DEEPEST):
        level = [arg for parent in level if isinstance(parent, Call) for arg in parent.args]
        if not level:
            return
    raise ExpressionError(f"The expression is nested more than {DEEPEST} deep.", text=text, where=level[0].where)


def _at(token: Token) -> Where:
    start = token.start_pos or 0
    return Where(start, token.end_pos or start + len(token))


def _number(digits: str, where: Where) -> Fraction:
    if len(digits) > _DIGITS:
        raise ExpressionError(f"A number of {len(digits)} digits; {_DIGITS} are the most.", where=where)
    return Fraction(digits)


@v_args(inline=True)
class _Build(Transformer[Token, Expression]):
    """Called bottom-up while parsing, so that nesting costs no recursion."""

    def start(self, assertion: Node, *parameters: tuple[str, object, Where]) -> Expression:
        given = {name: value for name, value, _ in parameters}
        places = {name: where for name, _, where in parameters}
        return Expression(assertion, Parameters(**given), places)  # type: ignore[arg-type]  # each value was checked by name

    def binary(self, left: Node, symbol: Token, right: Node) -> Call:
        return Call(BINARY[symbol.lower()], (left, right), Where(left.where.start, right.where.end))

    def negation(self, word: Token, operand: Node) -> Call:
        return Call("not", (operand,), Where(_at(word).start, operand.where.end))

    def minus(self, sign: Token, operand: Node) -> Call:
        return Call("neg", (operand,), Where(_at(sign).start, operand.where.end))

    def percent(self, token: Token) -> Literal:
        return Literal(_number(token.rstrip("% \t\n"), _at(token)) / 100, Kind.RATIO, _at(token))

    def number(self, token: Token) -> Literal:
        return Literal(_number(token, _at(token)), Kind.NUMBER, _at(token))

    def duration(self, token: Token) -> Literal:
        try:
            return Literal(duration_of(token), Kind.DURATION, _at(token))
        except (OverflowError, ValueError):
            raise ExpressionError("The duration is too long.", where=_at(token)) from None

    def text(self, token: Token) -> Literal:
        return Literal(text_of(token), Kind.TEXT, _at(token))

    def boolean(self, token: Token) -> Literal:
        return Literal(token.lower() == "true", Kind.BOOLEAN, _at(token))

    def call(self, function: Token, *args: Node) -> Call:
        known = [*OPERATORS, *LEAVES, *SERIES, *SUGAR]
        if function.lower() not in known:
            raise ExpressionError(
                f"There is no function `{function}`.{did_you_mean(function.lower(), known)}", where=_at(function)
            )
        end = args[-1].where.end + 1 if args else _at(function).end + 2
        return Call(function.lower(), args, Where(_at(function).start, end))

    def word(self, token: Token) -> Token:
        return token.update(value=token.strip('"'))

    def at(self, word: Token) -> dict[str, Token]:
        return {"data_center": word}

    def shift(self, *tokens: Token) -> dict[str, Token]:
        length = tokens[-1]
        where = Where(_at(tokens[0]).start, _at(length).end)
        if tokens[0] != "-" or length.type != "DURATION":
            wanted = f"[-{length}]" if length.type == "DURATION" else f"[-{length}d]"
            raise ExpressionError(f"A shift looks back so many hours or days; write {wanted}.", where=where)
        look_back(length, where)
        return {"shift": length}

    def column(self, word: Token) -> dict[str, Token]:
        return {"column": word}

    def name(self, dataset: Token, *parts: dict[str, Token]) -> Name:
        given = {key: token for part in parts for key, token in part.items()}
        last = next(reversed(given), "")
        end = _at([dataset, *given.values()][-1]).end + (last == "shift")
        return Name(
            str(dataset),
            str(given.get("data_center", "")),
            str(given.get("column", "")),
            -look_back(given["shift"], _at(dataset)) if "shift" in given else timedelta(),
            Where(_at(dataset).start, end),
        )

    def parameter(self, name: Token, value: Token) -> tuple[str, object, Where]:
        if name.lower() not in PARAMETERS:
            raise ExpressionError(
                f"There is no parameter `{name}`.{did_you_mean(name.lower(), PARAMETERS)}", where=_at(name)
            )
        return name.lower(), parameter_value(name.lower(), value.type, value, _at(value)), _at(value)


def _unexpected(error: UnexpectedInput, text: str) -> ExpressionError:
    start = min(error.pos_in_stream or 0, len(text))
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        return ExpressionError(
            f"`{error.token}` is not expected here; {_wanted(error.accepts or error.expected)}.",
            text=text,
            where=_at(error.token),
        )
    if isinstance(error, UnexpectedCharacters):
        return ExpressionError(f"`{error.char}` is not expected here.", text=text, where=Where(start, start + 1))
    end = len(text.rstrip())
    wanted = _wanted(error.accepts or error.expected) if isinstance(error, UnexpectedToken) else ""
    return ExpressionError(f"The expression ends too early; {wanted}.", text=text or " ", where=Where(end, end + 1))


def _wanted(terminals: Iterable[str]) -> str:
    if "NUMBER" in terminals:
        return "wanted: a value such as rows(this), 99.9% or 2h"
    words = sorted({DESCRIBED.get(terminal, f"`{terminal.lower()}`") for terminal in terminals})
    return f"wanted: {', '.join(words)}"


def parse_literal(text: str) -> Literal:
    """One value such as `30m` or `99.9%`. Raises ExpressionError."""
    node = parse(text).assertion
    if not isinstance(node, Literal):
        raise ExpressionError("Only a value is wanted, such as 30m or 99.9%.", text=text, where=node.where)
    return node
