"""The words of an expression: CEL's lexical grammar (cel-go `parser/gen/CEL.g4`), each with its span."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from dradriver.cel.errors import CompileError, Span


class Kind(Enum):
    """What a token is; `END` stands once after the last."""

    IDENTIFIER = "an identifier"
    INT = "an integer"
    UINT = "an unsigned integer"
    DOUBLE = "a number"
    STRING = "a string"
    BYTES = "bytes"
    QUOTED = "a quoted name"
    SIGN = "a sign"
    END = "the end of the expression"


class Token(NamedTuple):
    """One word; `text` is as written."""

    kind: Kind
    text: str
    span: Span


KEYWORDS = frozenset({"true", "false", "null", "in"})
RESERVED = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "namespace",
        "package",
        "return",
        "var",
        "void",
        "while",
    }
)

# `\\.` lets a wrong escape pass here: literals.py names it.
_STRING = r"""(?:
    [rR](?:\"{3}.*?\"{3} | '{3}.*?'{3} | "[^"\n\r]*" | '[^'\n\r]*')
  | \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
  | "(?:\\.|[^"\\\n\r])*" | '(?:\\.|[^'\\\n\r])*'
)"""
_WORDS = re.compile(
    rf"""
      (?P<space>[\t \r\n\f]+ | //[^\n]*)
    | (?P<DOUBLE>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | \.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<UINT>(?:0x[0-9a-fA-F]+ | [0-9]+)[uU])
    | (?P<INT>0x[0-9a-fA-F]+ | [0-9]+)
    | (?P<BYTES>[bB]{_STRING})
    | (?P<STRING>{_STRING})
    | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<QUOTED>`[A-Za-z0-9_.\-/ ]+`)
    | (?P<SIGN>== | != | <= | >= | && | \|\| | [<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE | re.DOTALL,
)
_REMEDIES = {
    "=": "a single = is no operator: use == to compare",
    "&": "a single & is no operator: use && for and",
    "|": "a single | is no operator: use || for or",
    "'": "this string is not closed: end it with the quote that began it",
    '"': "this string is not closed: end it with the quote that began it",
    "`": "a name in ` has letters, digits, and _.-/ or spaces: use an index, as in m['name']",
    "“": "typographic quotes do not make a string: use plain \" or '",
    "”": "typographic quotes do not make a string: use plain \" or '",
    "‘": "typographic quotes do not make a string: use plain \" or '",  # noqa: RUF001 - the sign people paste
    "’": "typographic quotes do not make a string: use plain \" or '",  # noqa: RUF001 - the sign people paste
    "~": "there is no pattern operator: use .matches(pattern)",
    "^": "there is no bitwise operator in CEL",
    ";": "one selector is one expression: join conditions with &&, no ; at the end",
}


def split(text: str) -> list[Token]:
    """The tokens of an expression, spaces and comments left out, `END` last. Raises CompileError."""
    tokens = []
    position = 0
    while position < len(text):
        word = _WORDS.match(text, position)
        if word is None:
            sign = text[position]
            message = _REMEDIES.get(sign, f"{sign!r} cannot stand in an expression: remove it")
            raise CompileError(Span(position, position + 1), message)
        if word.lastgroup != "space":
            kind = Kind[word.lastgroup or "SIGN"]
            tokens.append(Token(kind, word.group(), Span(*word.span())))
        position = word.end()
    tokens.append(Token(Kind.END, "", Span(len(text), len(text))))
    return tokens
