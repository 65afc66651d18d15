"""The grammar. One for both forms: what people write, `rows(this) / rows(upstream) > 99.9%`, and what is stored,
`gt(div(rows(this), rows(upstream)), 99.9%) with engine=duckdb`."""

GRAMMAR = r"""
start: disjunction [_WITH parameter ("," parameter)*]

?disjunction: conjunction
    | disjunction OR conjunction        -> binary
?conjunction: negation
    | conjunction AND negation          -> binary
?negation: comparison
    | NOT negation                      -> negation
?comparison: sum
    | sum COMPARISON sum                -> binary
?sum: product
    | sum (PLUS | MINUS) product        -> binary
?product: unary
    | product (TIMES | DIVIDED) unary   -> binary
?unary: atom
    | MINUS unary                       -> minus
?atom: "(" disjunction ")"
    | PERCENT                           -> percent
    | DURATION                          -> duration
    | NUMBER                            -> number
    | TEXT                              -> text
    | TRUE                              -> boolean
    | FALSE                             -> boolean
    | IDENTIFIER "(" [disjunction ("," disjunction)*] ")" -> call
    | name

name: word [at] [shift] [column]
at: "@" word
shift: "[" [PLUS | MINUS] (DURATION | NUMBER) "]"
column: "." word
word: IDENTIFIER | QUOTED
parameter: IDENTIFIER "=" (DURATION | NUMBER | IDENTIFIER | QUOTED | TEXT)

_WITH: "with"i
OR.2: /or\b/i
AND.2: /and\b/i
NOT.2: /not\b/i
TRUE.2: /true\b/i
FALSE.2: /false\b/i
COMPARISON: "<=" | ">=" | "==" | "!=" | "<" | ">"
PLUS: "+"
MINUS: "-"
TIMES: "*"
DIVIDED: "/"
PERCENT.3: /\d+(\.\d+)?\s?%/
DURATION.2: /(\d+(\.\d+)?(ms|us|[wdhms]))+(?![A-Za-z0-9_])/
NUMBER: /\d+(\.\d+)?(?![A-Za-z0-9_.])/
IDENTIFIER: /[A-Za-z_][A-Za-z0-9_]*/
QUOTED: /"(""|[^"])+"/
TEXT: /'(''|[^'])*'/

%import common.WS
%ignore WS
"""

RESERVED_WORDS = frozenset({"with", "or", "and", "not", "true", "false"})
"""Words that must be quoted to be a name."""

TERMINAL_LABELS = {
    "IDENTIFIER": "a name",
    "QUOTED": "a name",
    "DURATION": "a duration",
    "NUMBER": "a number",
    "TEXT": "a text in single quotes",
    "COMPARISON": "a comparison",
    "PLUS": "`+`",
    "MINUS": "`-`",
    "TIMES": "`*`",
    "DIVIDED": "`/`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COMMA": "`,`",
    "EQUAL": "`=`",
    "DOT": "`.`",
    "AT": "`@`",
    "_WITH": "`with`",
    "$END": "the end",
}
"""Terminals in the words of an error; the operators speak for themselves."""
